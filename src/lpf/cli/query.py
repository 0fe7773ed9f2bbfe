"""``lpf query``: ask one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    Verbose,
    WorkspaceFolder,
    command,
    open_workspace,
    print_document,
    warn_of_damage,
)
from lpf.cli.options import AsyncAudit, fields_as_given, with_options
from lpf.errors import ConfigError
from lpf.options import QueryOptions

if TYPE_CHECKING:
    from lpf.results import QueryResult
    from lpf.storage.seals import DamagedItem
    from lpf.types import Evidence
    from lpf.workspace import Workspace


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf query C0001 compliance_level",
        "lpf query C0001 --mode paper --alpha 2 --json",
    )(with_options(QueryOptions)(query))


def query(
    entity: Annotated[str, typer.Argument(help="Entity ID.")],
    predicate: Annotated[
        str | None, typer.Argument(help="Predicate name; not needed if the schema has only one.")
    ] = None,
    *,
    given: Mapping[str, Any],
    full: Annotated[
        bool, typer.Option("--full", help="Show texts in full, with their sources and dates.")
    ] = False,
    verbose: Verbose = False,
    async_audit: AsyncAudit = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Ask what is true of an entity: a probability for every value, and where it comes from.

    Defaults can be changed in lpf.toml, section query.
    """
    if full and as_json:
        raise ConfigError(
            "applies to the terminal only. Nothing was asked.",
            field="--full",
            hint="Leave it out; 'lpf evidence show ID --json' has the texts.",
        )
    with open_workspace(workspace) as space, fields_as_given(QueryOptions, given):
        options = replace(space.settings.query, **given)
        result = space.query(entity, predicate, options, "async" if async_audit else "sync")
        damaged: list[DamagedItem] = []
        items = {} if as_json else _items(space, result, damaged)
        similar = None if as_json else _similar_names(space, result)
    # Only now: closing writes the record, and an answer without a record must not be shown.
    if as_json:
        print_document(result.to_dict())
        return
    from lpf.cli.answer_view import show_answer
    from lpf.cli.terminal import console

    texts = {name: item.text_content for name, item in items.items()}
    texts |= {item.evidence_id: f"(not shown: {item.reason})" for item in damaged}
    origins = {name: _origin(item) for name, item in items.items()} if full else None
    show_answer(console(), result, texts, origins, similar, verbose=verbose)


def _items(
    workspace: Workspace, result: QueryResult, damaged: list[DamagedItem]
) -> dict[str, Evidence]:
    stored_items = workspace.evidence.get_many(result.evidence_chain, damaged)
    warn_of_damage(damaged)
    return {name: stored.evidence for name, stored in stored_items.items()}


def _similar_names(workspace: Workspace, result: QueryResult) -> Sequence[str] | None:
    """Names like that of an unknown entity; None if the entity is known."""
    from lpf.index.near_names import is_known, near_names

    if result.source != "none" or is_known(workspace.database, result.entity_id):
        return None
    return near_names(workspace.database, result.entity_id)


def _origin(item: Evidence) -> str:
    from lpf.cli.terminal import when

    source = "source unknown" if item.source is None else f"source: {item.source}"
    date = when(item.timestamp).removesuffix(" 00:00")  # most dates have no time
    return f"{source}, {date or 'undated'}"
