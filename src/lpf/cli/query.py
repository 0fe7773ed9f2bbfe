"""``lpf query``: asks one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, opened, print_document
from lpf.cli.query_options import (
    Alpha,
    AsOf,
    AsyncAudit,
    Draws,
    Fallback,
    MinCredibility,
    Mode,
    NearText,
    Sampler,
    Samples,
    Seed,
    Temperature,
    TopK,
    Variant,
    changed,
    named_as_given,
    options_given,
)
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.results import QueryResult
    from lpf.types import Evidence
    from lpf.workspace import Workspace


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf query C0001 compliance_level",
        "lpf query C0001 --mode paper --alpha 2 --json",
    )(query)


def query(
    entity: Annotated[str, typer.Argument(help="About whom.")],
    predicate: Annotated[
        str | None, typer.Argument(help="What; may be left out where the schema has only one.")
    ] = None,
    variant: Variant = None,
    mode: Mode = None,
    sampler: Sampler = None,
    samples: Samples = None,
    temperature: Temperature = None,
    alpha: Alpha = None,
    uncertainty: Draws = None,
    fallback: Fallback = None,
    seed: Seed = None,
    top_k: TopK = None,
    min_credibility: MinCredibility = None,
    text: NearText = None,
    as_of: AsOf = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show whole texts, with their sources and dates.")
    ] = False,
    async_audit: AsyncAudit = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Ask what is true of an entity: a probability for every value, and where it comes from."""
    given = options_given(locals())
    if full and as_json:
        raise ConfigError(
            "--full: is about what people are shown. Nothing was asked; leave it out, and take "
            "texts from 'lpf evidence show ID --json'."
        )
    with opened(workspace) as space, named_as_given(given):
        options = changed(space.settings.query, given)
        result = space.query(entity, predicate, options, "async" if async_audit else "sync")
        items = {} if as_json else _items(space, result)
        near = None if as_json else _near(space, result)
    # Only now: what is closed is recorded, and an answer that is not must not be shown.
    if as_json:
        print_document(result.to_dict())
    else:
        _show(result, items, near, full)


def _items(workspace: Workspace, result: QueryResult) -> dict[str, Evidence]:
    found = workspace.evidence.get_many(result.evidence_chain)
    return {name: stored.evidence for name, stored in found.items()}


def _near(workspace: Workspace, result: QueryResult) -> list[str] | None:
    """Names near that of an entity that nothing names; None where something does."""
    from lpf.index.near_names import is_known, near_names

    if result.source != "none" or is_known(workspace.database, result.entity_id):
        return None
    return near_names(workspace.database, result.entity_id)


def _show(
    result: QueryResult, items: Mapping[str, Evidence], near: Sequence[str] | None, full: bool
) -> None:
    from lpf.cli.answer_view import show_answer
    from lpf.cli.terminal import console

    texts = {name: item.text_content for name, item in items.items()}
    origins = {name: _origin(item) for name, item in items.items()} if full else None
    show_answer(console(), result, texts, origins, near)


def _origin(item: Evidence) -> str:
    from lpf.cli.terminal import when

    source = "source unknown" if item.source is None else f"source: {item.source}"
    moment = when(item.timestamp).removesuffix(" 00:00")  # so most dates without a time read
    return f"{source}, {moment or 'undated'}"
