"""Claims that are read by an untrained stance reader with two narrow layers, and rungs that tune it
in a second."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelled_workspaces import WordReader
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.model.runtime import Runtime
from lpf.reading import PairReader, StanceReader
from lpf.schema import Predicate, Schema
from lpf.training import Examples, ladder, lexical, linear, model_choice, trainer
from lpf.training.ladder import Rung
from lpf.training.model_choice import ChosenModel
from lpf.training.reader_choice import RungOutcome
from lpf.training.tuning import TuningSettings
from tiny_stance import tiny_stance

VALUES = ("yes", "no")
SCHEMA = Schema((Predicate("verdict", VALUES),))
COLOURS = ("red", "blue", "green", "white")
QUICK_RUNGS = (
    Rung("two passes", TuningSettings(rate=1e-3, head_rate=1e-3, passes=2)),
    Rung("one pass", TuningSettings(rate=1e-3, head_rate=1e-3, passes=1)),
)


def tiny_reader(folder: Path) -> PairReader:
    """Words of claim and text, and the stances of an untrained network."""
    stance = StanceReader(
        source=tiny_stance(folder / "weights"),
        weights_dir=folder / "weights",
        cache_dir=folder,
        threads=1,
    )
    return PairReader(WordReader(), stance)


def coloured(count: int, *, seed: int = 0, own_labels: bool = False) -> Dataset:
    """Claims about the colour of a box, with one or two texts; yes if the colours agree. With
    ``own_labels``, the second text says no. Without splits."""
    generator = np.random.default_rng(seed)
    entities = []
    for number in range(count):
        claimed, seen = generator.choice(len(COLOURS), 2)
        if generator.random() < 0.4:
            seen = claimed
        label = VALUES[int(claimed != seen)]
        texts = [f"box {number} was painted {COLOURS[seen]} in spring"]
        if number % 3 == 0:
            texts.append(f"nobody has looked into room {number} yet")
        own = {"verdict": "no"} if own_labels else {}
        items = tuple(
            DatasetItem(f"E{number}:{place}", text, own if place else {})
            for place, text in enumerate(texts)
        )
        claim = f"box {number} is {COLOURS[claimed]}"
        entities.append(DatasetEntity(f"E{number}", {"verdict": label}, items, claim=claim))
    return Dataset("coloured", SCHEMA, tuple(entities))


def quick_ladder(monkeypatch: pytest.MonkeyPatch, *, always_better: bool = True) -> None:
    """Few entities suffice, tuning takes a second, and a tuned reader is always preferred. Linear
    models are searched for in few steps, and on the same features only once per process."""
    monkeypatch.setattr(ladder, "FEWEST_LABELS", 20)
    monkeypatch.setattr(ladder, "RUNGS", QUICK_RUNGS)
    monkeypatch.setattr(trainer, "RUNGS", QUICK_RUNGS)
    monkeypatch.setattr(lexical, "FOLDS", 2)
    monkeypatch.setattr(model_choice, "FOLDS", 2)
    monkeypatch.setattr(linear, "PENALTIES", (3.0, 0.3))
    monkeypatch.setattr(linear, "WORDS_PENALTIES", (30.0, 3.0))
    for choose in (model_choice.choose_model, model_choice.choose_linear):
        monkeypatch.setattr(trainer, choose.__name__, _once(choose))
    if always_better:
        monkeypatch.setattr(RungOutcome, "is_better", property(lambda one: one.nll is not None))


_CHOSEN: dict[tuple[object, ...], ChosenModel] = {}


def _once(choose: Callable[..., ChosenModel]) -> Callable[..., ChosenModel]:
    """Answers a repeated call with the result of the first."""

    def chosen(*given: object) -> ChosenModel:
        key = (choose.__name__, *map(_content, given))
        if key not in _CHOSEN:
            _CHOSEN[key] = choose(*given)
        return _CHOSEN[key]

    return chosen


def _content(given: Any) -> object:
    """What a search depends on, as a key."""
    if isinstance(given, Runtime):
        return repr(given.config), _digest(given.tensors[name] for name in sorted(given.tensors))
    if isinstance(given, Examples):
        arrays = (given.features, given.credibility, given.groups, given.wordless)
        return given.dataset.digest, _digest(arrays)
    return given


def _digest(arrays: Iterable[np.ndarray | None]) -> str:
    hashed = hashlib.sha256()
    for one in arrays:
        hashed.update(b"none" if one is None else one.tobytes())
    return hashed.hexdigest()
