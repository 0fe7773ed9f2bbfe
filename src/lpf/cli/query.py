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
from lpf.cli.exits import EXIT_NO_ANSWER
from lpf.cli.options import AskedBy, AsyncAudit, fields_as_given, with_options
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
        "lpf query C0001 --coverage 0.95 --max-risk 0.05",
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
    asked_by: AskedBy = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Ask what is true of an entity: a probability for every value, and where it comes from.

    Defaults can be changed in lpf.toml, section query. The exit code is 4 if there is no answer: no
    item and no fact counts, or it is deferred.
    """
    if full and as_json:
        raise ConfigError(
            "applies to the terminal only. Nothing was asked.",
            field="--full",
            hint="Leave it out; 'lpf evidence show ID --json' has the texts.",
        )
    with open_workspace(workspace, asked_by) as space, fields_as_given(QueryOptions, given):
        options = replace(space.settings.query, **given)
        result = space.query(entity, predicate, options, "async" if async_audit else "sync")
        damaged: list[DamagedItem] = []
        items = {} if as_json else _items(space, result, damaged)
    # Only now: closing writes the record, and an answer without a record must not be shown.
    if as_json:
        print_document(result.to_dict())
    else:
        _show(result, items, damaged, full=full, verbose=verbose)
    if not result.has_answer or result.is_deferred:
        raise typer.Exit(EXIT_NO_ANSWER)


def _show(
    result: QueryResult,
    items: Mapping[str, Evidence],
    damaged: Sequence[DamagedItem],
    *,
    full: bool,
    verbose: bool,
) -> None:
    from lpf.cli.answer_view import show_answer
    from lpf.cli.terminal import console

    texts = {name: item.text_content for name, item in items.items()}
    several = len(result.claims) > 1
    origins = {name: _origin(item, several) for name, item in items.items()} if full else None
    texts |= {item.evidence_id: f"(not shown: {item.reason})" for item in damaged}
    show_answer(console(), result, texts, origins, verbose=verbose)


def _items(
    workspace: Workspace, result: QueryResult, damaged: list[DamagedItem]
) -> dict[str, Evidence]:
    related = [name for one in result.related for name in one.evidence_chain]
    stored_items = workspace.evidence.get_many([*result.evidence_chain, *related], damaged)
    warn_of_damage(damaged)
    return {name: stored.evidence for name, stored in stored_items.items()}


def _origin(item: Evidence, several_claims: bool) -> str:
    from lpf.cli.terminal import when

    claim = f"claim: {item.claim}\n" if several_claims and item.claim is not None else ""
    source = "source unknown" if item.source is None else f"source: {item.source}"
    date = when(item.timestamp).removesuffix(" 00:00")  # most dates have no time
    return f"{claim}{source}, {date or 'undated'}"
