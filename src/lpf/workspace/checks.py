"""What is looked at in a workspace beside its store, part by part. Nothing of it is changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lpf.engine import Engine, Items
from lpf.engine.background import check_values_agree
from lpf.errors import LPFError
from lpf.model.artefact import Artefact
from lpf.storage.cache import open_cache
from lpf.types import QueryOptions
from lpf.workspace.circuit_file import FILE_NAME as CIRCUIT_FILE
from lpf.workspace.workspace import Workspace

State = Literal["ok", "warning", "fault"]

ANOTHER_MODEL = "train again: lpf train, or use another: lpf models list, lpf models use VERSION"
LOW_SPACE, NO_SPACE = 2**30, 100 * 2**20


@dataclass(frozen=True)
class Check:
    """One thing looked at. ``remedy`` says how to mend it, where it is not ok."""

    name: str
    state: State
    message: str
    remedy: str = ""


Examination = Callable[[Workspace, bool], Iterator[Check]]


def reader_id_of(workspace: Workspace) -> str:
    """The reader that questions go by: the model's, else the workspace's own."""
    model = workspace.model
    return (model and model.config.reader_id) or workspace.reader.reader_id


def _model(workspace: Workspace, _: bool) -> Iterator[Check]:
    model = workspace.model
    if model is None:
        remedy = "train one: lpf train, or add one: lpf models add FOLDER"
        yield Check("model", "warning", "there is none: only known facts can answer", remedy)
        return
    heads = {head.name: head.values for head in model.config.predicates}
    check_values_agree(workspace.schema, heads, "model")
    unknown = {one.name for one in workspace.schema} - heads.keys()
    faults = list(_unanswered(workspace, model))
    if faults:
        yield from faults
    elif unknown:
        yield Check(
            "model",
            "warning",
            f"{model.version} knows nothing of {sorted(unknown)}",
            "train a model for all predicates, or take these out of lpf.toml",
        )
    else:
        yield Check("model", "ok", f"{model.version} loads and answers all predicates")


def _unanswered(workspace: Workspace, model: Artefact) -> Iterator[Check]:
    """A model may load and yet fail at every question: each predicate is asked about once, with
    features that are made up."""
    engine = Engine(model.runtime(), workspace.schema)
    width = model.config.encoder.input_width
    features = np.random.default_rng(0).standard_normal((2, width)) / np.sqrt(width)
    items = Items(features.astype(np.float32), credibility=np.array([0.9, np.nan]))
    learned = [] if model.config.aggregator is None else [QueryOptions(variant="learned")]
    for name in (head.name for head in model.config.predicates if head.name in workspace.schema):
        try:
            for options in (QueryOptions(), *learned):
                engine.answer(items, name, options)
        except Exception as error:
            told = str(error) if isinstance(error, LPFError) else f"{type(error).__name__}: {error}"
            message = f"{model.version} loads, but cannot answer {name!r}: {told}"
            yield Check("model", "fault", message, ANOTHER_MODEL)


def _reader(workspace: Workspace, _: bool) -> Iterator[Check]:
    reader_id, wanted = workspace.reader.reader_id, reader_id_of(workspace)
    if wanted == reader_id:
        yield Check("reader", "ok", f"{reader_id} opens")
        return
    yield Check(
        "reader",
        "fault",
        f"the model was trained with {wanted}, the workspace reads with {reader_id}",
        "set [reader] in lpf.toml to the model's, or use a model of this reader",
    )


def _circuit(workspace: Workspace, _: bool) -> Iterator[Check]:
    remedy = "learn it again: lpf facts learn"
    try:
        covers = workspace.background.covers
    except LPFError as error:
        message = f"{workspace.folder / CIRCUIT_FILE}: {error}"
        yield Check("circuit", "fault", message, remedy)
        return
    uncovered = [one.name for one in workspace.schema if not covers(one.name)]
    if uncovered:
        yield Check("circuit", "warning", f"it does not cover {uncovered}", remedy)
    else:
        yield Check("circuit", "ok", "covers all predicates")


def _cache(workspace: Workspace, _: bool) -> Iterator[Check]:
    settings = workspace.settings
    cache = open_cache(settings.cache_url, ttl_seconds=settings.cache.ttl_seconds)
    try:
        cache.get_many([bytes(16)], b"doctor")
        stats = cache.stats()
    finally:
        cache.close()
    if stats.failures:
        remedy = "start Redis, or set [cache] url = 'memory' in lpf.toml"
        message = "the shared cache does not answer: questions work, erasing does not"
        yield Check("cache", "warning", message, remedy)
    else:
        yield Check("cache", "ok", f"{stats.kind} answers")


def _disk(workspace: Workspace, _: bool) -> Iterator[Check]:
    free = shutil.disk_usage(workspace.folder).free
    state: State = "fault" if free < NO_SPACE else "warning" if free < LOW_SPACE else "ok"
    remedy = "" if state == "ok" else "free some space: a full disk stops every answer"
    yield Check("disk", state, f"{free / 2**30:.1f} GiB free", remedy)


WITHOUT_STORE: dict[str, Examination] = {
    "model": _model,
    "reader": _reader,
    "circuit": _circuit,
    "cache": _cache,
    "disk": _disk,
}
