"""``lpf ledger``: the record of every answer, looked at, computed again, its words forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli import ledger_copies, ledger_proofs
from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    Yes,
    answer_no,
    command,
    confirm,
    group,
    opened,
    print_document,
)
from lpf.cli.question_words import query_words, why_no_words
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.ledger import StoredRecord
    from lpf.orchestrator import Replay
    from lpf.workspace import Workspace

app = group("ledger", "The record of every answer: show, verify, prove, replay, export.")
ledger_proofs.register(app)
ledger_copies.register(app)


@command(app, "lpf ledger show INF00000042", "lpf ledger show --last 10")
def show(
    record_id: Annotated[str | None, typer.Argument(metavar="ID", help="One record.")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="The newest so many.")] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show a record in full, or the newest ones in a list."""
    if (record_id is None) == (last is None):
        raise ConfigError("ledger show: give the ID of a record, or --last N.")
    with opened(workspace) as space:
        if record_id is not None:
            record = space.records.get(record_id)
            words = {"query_words": query_words(space, record)}
            found = [{**space.records.expand(record), **_seal(record), **words}]
        else:
            found = _newest(space, last or 1)
    if as_json:
        print_document(found[0] if record_id is not None else {"records": found})
    else:
        _show(found, in_full=record_id is not None)


@command(app, "lpf ledger replay INF00000042", "lpf ledger replay INF00000042 --deep")
def replay(
    record_id: Annotated[str, typer.Argument(metavar="ID", help="The record.")],
    deep: Annotated[
        bool, typer.Option("--deep", help="From the texts and the recorded model.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Compute a record's answer again, from its own factors. Exit code 1 if it differs."""
    with opened(workspace) as space:
        found = space.replay(record_id, deep=deep)
    if as_json:
        print_document({**_replayed(found), "agrees": found.agrees})
    else:
        _show_replay(found)
    if not found.agrees:
        answer_no()


@command(app, "lpf ledger forget INF00000042 --yes")
def forget(
    record_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The records.")],
    yes: Yes = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Destroy the words that questions were asked with (--text). The records stay valid.

    A record holds a salted hash of the words; words and salt are kept beside it, and go.
    """
    from lpf.cli.rendering import count

    with opened(workspace) as space:
        without = {one: why for one in record_ids if (why := why_no_words(space, one))}
        if len(without) < len(record_ids):
            confirm(f"the words asked with in {', '.join(record_ids)}", yes)
        erased, warnings = space.erase_query_texts(*record_ids)
    if as_json:
        print_document({"erased": erased, "without_words": without, "warnings": list(warnings)})
        return
    typer.echo(f"Erased the words of {count(erased, 'question')}.")
    for one, why in without.items():
        typer.echo(f"{one}: {why}.")
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)


def _newest(workspace: Workspace, count: int) -> list[dict[str, Any]]:
    """Newest first, without what they refer to."""
    size = workspace.records.size
    records = workspace.records.records(max(1, size - count + 1), size)
    return [{**record.fields, **_seal(record)} for record in records][::-1]


def _seal(record: StoredRecord) -> dict[str, Any]:
    return {"leaf": record.leaf.hex(), "checkpoint": record.checkpoint is not None}


def _show(records: list[dict[str, Any]], in_full: bool) -> None:
    from lpf.cli.record_view import show_record, show_records
    from lpf.cli.rendering import console

    if in_full:
        show_record(console(), records[0])
    else:
        show_records(console(), records)


def _replayed(found: Replay) -> dict[str, Any]:
    return {
        "record_id": found.record_id,
        "deep": found.deep,
        "exact": found.exact,
        "same_top": found.same_top,
        "largest_difference": found.largest_difference,
        "recorded": dict(found.recorded),
        "recomputed": dict(found.recomputed),
        "notes": list(found.notes),
    }


def _show_replay(found: Replay) -> None:
    from lpf.cli.rendering import console, indented
    from lpf.cli.tables import table

    output = console()
    words = "bit for bit" if found.exact else f"to {found.largest_difference:.1e}"
    verdict = f"the answer comes out again, {words}" if found.agrees else f"DIFFERS by {words[3:]}"
    output.print(f"[bold]{found.record_id}[/bold]: {verdict}")
    rows = [
        [value, f"{found.recorded[value]:.9f}", f"{recomputed:.9f}"]
        for value, recomputed in found.recomputed.items()
    ]
    numbers = ("recorded", "recomputed")
    output.print(indented(table(("value", *numbers), rows, right=numbers)))
    for note in found.notes:
        output.print(f"  {note}", markup=False)
