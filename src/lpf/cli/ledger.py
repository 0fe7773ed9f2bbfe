"""``lpf ledger``: the record of every answer, shown, replayed, verified, proved and exported."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    MOST_LISTED,
    AsJson,
    WorkspaceFolder,
    Yes,
    command,
    confirm,
    exit_check_failed,
    group,
    open_workspace,
    print_document,
)
from lpf.cli.exits import FileName
from lpf.cli.safe_output import ascii_json, one_line, quoted
from lpf.errors import ConfigError, LedgerBrokenError, LedgerKeyError

if TYPE_CHECKING:
    from lpf.ledger import Checkpoint, StoredRecord, Verification
    from lpf.orchestrator import Replay
    from lpf.review import AnswerFeedback
    from lpf.workspace import Workspace

STANDARD = "-"
KEY_DIGITS = 64

app = group("ledger", "The record of every answer: show, verify, prove, replay, export.")

RecordId = Annotated[str, typer.Argument(metavar="ID", help="Record ID.")]


@command(app, "lpf ledger show INF00000042", "lpf ledger show --last 10")
def show(
    record_id: Annotated[str | None, typer.Argument(metavar="ID", help="Record ID.")] = None,
    last: Annotated[
        int | None, typer.Option(min=1, max=MOST_LISTED, help="List this many of the newest.")
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show a record in full, or list the newest ones."""
    from lpf.cli.record_view import show_other_record, show_record, show_records
    from lpf.cli.review_view import show_reviews
    from lpf.cli.terminal import console

    if (record_id is None) == (last is None):
        raise ConfigError("ledger show: give the ID of a record, or --last N.")
    feedback: AnswerFeedback | None = None
    with open_workspace(workspace) as space:
        if record_id is None:
            records = _newest_records(space, last or 1)
        else:
            record = space.records.get(record_id)
            feedback = None if "kind" in record.fields else space.reviews.of(record_id)
            words = _words(space, record, feedback)
            records = [{**space.records.expand(record), **_seal(record), **words}]
    if as_json:
        print_document({"records": records} if record_id is None else records[0])
    elif record_id is None:
        show_records(console(), records)
    elif "kind" in records[0]:
        show_other_record(console(), records[0])
    else:
        show_record(console(), records[0])
        show_reviews(console(), feedback)


def _words(
    workspace: Workspace, record: StoredRecord, feedback: AnswerFeedback | None
) -> dict[str, Any]:
    """Texts that are stored outside the record, and what reviewers said about an answer."""
    words = _erasable_words(workspace, record)
    if feedback is None:
        return {"comment_words": None if words is None else json.loads(words)}
    return {"query_words": words, "feedback": feedback.to_dict()}


def _newest_records(workspace: Workspace, count: int) -> list[dict[str, Any]]:
    """Newest first, without the contexts they refer to."""
    size = workspace.records.size
    records = workspace.records.records(max(1, size - count + 1), size)
    return [{**record.fields, **_seal(record)} for record in records][::-1]


def _seal(record: StoredRecord) -> dict[str, Any]:
    return {"leaf": record.leaf.hex(), "checkpoint": record.checkpoint is not None}


@command(app, "lpf ledger replay INF00000042", "lpf ledger replay INF00000042 --deep")
def replay(
    record_id: RecordId,
    deep: Annotated[
        bool, typer.Option("--deep", help="Start from the texts and the recorded model.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Compute a record's answer again, from its own factors. Exit code 1 if it differs."""
    with open_workspace(workspace) as space:
        replayed = space.replay(record_id, deep=deep)
    if as_json:
        print_document(_replay_document(replayed))
    else:
        _show_replay(replayed)
    if not replayed.agrees:
        exit_check_failed()


def _replay_document(replayed: Replay) -> dict[str, Any]:
    return {
        "record_id": replayed.record_id,
        "deep": replayed.deep,
        "exact": replayed.exact,
        "same_top": replayed.same_top,
        "largest_difference": replayed.largest_difference,
        "recorded": dict(replayed.recorded),
        "recomputed": dict(replayed.recomputed),
        "notes": list(replayed.notes),
        "faults": list(replayed.faults),
        "agrees": replayed.agrees,
    }


def _show_replay(replayed: Replay) -> None:
    from rich.text import Text

    from lpf.cli.terminal import console, indented, table

    output = console()
    difference = f"{replayed.largest_difference:.1e}"
    if replayed.exact:
        verdict = "the answer is the same, bit for bit"
    elif replayed.same_answer:
        verdict = f"the answer is the same, to {difference}"
    else:
        verdict = f"the answer DIFFERS by {difference}"
    output.print(f"[bold]{replayed.record_id}[/bold]: {verdict}")
    rows = [
        [value, f"{replayed.recorded[value]:.9f}", f"{recomputed:.9f}"]
        for value, recomputed in replayed.recomputed.items()
    ]
    numbers = ("recorded", "recomputed")
    output.print(indented(table(("value", *numbers), rows, right=numbers)))
    for note in (*replayed.notes, *replayed.faults):
        output.print(Text(f"  {one_line(note)}"))


@command(
    app,
    "lpf ledger verify",
    "lpf ledger verify --trusted checkpoint.json --key ledger.pub",
)
def verify(
    trusted: Annotated[
        Path | None, typer.Option(help="Checkpoint that was stored elsewhere.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="FILE|HEX", help="Public key that must have signed it.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="Verify this export; needs no workspace.")
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every hash and check every signature. Exit code 1 if anything is wrong.

    The ledger must have the workspace's own key, or the one given. Only a checkpoint that was
    stored elsewhere (--trusted) reveals that the newest records or the whole folder were replaced.
    """
    from lpf.ledger import verify as verify_ledger
    from lpf.ledger.keys import public_key_of

    public_key, key_from = (None, None) if key is None else (_public_key(key), "--key")
    checkpoint = None if trusted is None else trusted.read_bytes()
    if export is not None:
        verification = verify_ledger(export, public_key, checkpoint)
    else:
        with open_workspace(workspace) as space:
            own = public_key_of(space.settings.key_file) if key is None else None
            if own is not None:
                public_key, key_from = own[0], str(own[1])
            verification = verify_ledger(space.database, public_key, checkpoint)
    itself_only = public_key is None and checkpoint is None
    limits = _not_visible(verification, itself_only)
    if as_json:
        document = _verification_document(verification)
        checked = {"key_from": key_from, "against_itself_only": itself_only, "cannot_see": limits}
        print_document({**document, **checked})
    else:
        _show_verification(verification)
        typer.echo(f"  key: {one_line(key_from or 'the one in the ledger itself')}")
        typer.echo(f"  cannot see: {'; '.join(limits)}")
    if not verification.ok:
        exit_check_failed()


def _public_key(given: str) -> bytes:
    """A file, or the 64 digits themselves."""
    from lpf.ledger import load_public

    if len(given) == KEY_DIGITS and not Path(given).exists():
        try:
            return bytes.fromhex(given)
        except ValueError:
            raise LedgerKeyError(
                f"{given!r} is neither a file nor {KEY_DIGITS} hexadecimal digits.", field="--key"
            ) from None
    return load_public(Path(given))


def _not_visible(verification: Verification, itself_only: bool) -> list[str]:
    """What could have been done to the ledger without this verification noticing."""
    if verification.trusted:
        return ["removal of records newer than the trusted checkpoint"]
    limits = [
        "removal of the newest records since the last checkpoint stored elsewhere (--trusted)",
        "replacement of the whole folder, with its key",
    ]
    return ["another key (--key)", *limits] if itself_only else limits


def _verification_document(verification: Verification) -> dict[str, Any]:
    return {
        "ok": verification.ok,
        "records": verification.records,
        "checkpoints": verification.checkpoints,
        "unsigned_tail": verification.unsigned_tail,
        "root": verification.root.hex(),
        "findings": [
            {"where": finding.where, "what": finding.what} for finding in verification.findings
        ],
    }


def _show_verification(verification: Verification) -> None:
    from rich.text import Text

    from lpf.cli.terminal import console, count

    output = console()
    verdict = "The ledger is intact" if verification.ok else "THE LEDGER IS NOT INTACT"
    records = count(verification.records, "record")
    checkpoints = count(verification.checkpoints, "checkpoint")
    output.print(f"[bold]{verdict}[/bold]: {records}, {checkpoints}")
    output.print(f"  root {verification.root.hex()}", soft_wrap=True)
    if verification.ok and verification.unsigned_tail:
        tail = count(verification.unsigned_tail, "record is", "records are")
        output.print(f"  the last {tail} not signed yet: lpf ledger checkpoint")
    for finding in verification.findings:
        output.print(Text(f"  {one_line(finding)}"), soft_wrap=True)


@command(
    app,
    "lpf ledger prove INF00000042 --out bundle.json",
    "lpf ledger prove --from january.json --to june.json",
)
def prove(
    record_id: Annotated[str | None, typer.Argument(metavar="ID", help="Record ID.")] = None,
    earlier: Annotated[
        Path | None, typer.Option("--from", metavar="CHECKPOINT", help="An earlier checkpoint.")
    ] = None,
    later: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="CHECKPOINT", help="A later checkpoint; by default the newest."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the bundle to this file.")] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Prove that a record is in the ledger, or that one checkpoint extends another.

    Anyone with the public key can check the proof without this package: see docs/ledger.md.
    """
    if (record_id is None) == (earlier is None):
        raise ConfigError("ledger prove: give the ID of a record, or --from CHECKPOINT.")
    with open_workspace(workspace) as space:
        bundle = _bundle(space, record_id, earlier, later)
    if out is not None:
        from lpf.ledger import canonical
        from lpf.storage.atomic_files import write_atomically

        write_atomically(out, canonical(bundle) + b"\n")
    if as_json or out is None:
        print_document(bundle)
    else:
        typer.echo(f"The proof is in {one_line(out)}.")


def _bundle(
    workspace: Workspace, record_id: str | None, earlier: Path | None, later: Path | None
) -> dict[str, Any]:
    from lpf.ledger import prove_consistency, prove_inclusion

    second = None if later is None else _read_checkpoint(later)
    if record_id is not None:
        return prove_inclusion(workspace.database, record_id, second)
    assert earlier is not None  # one of the two was given
    newest = second or workspace.records.latest_checkpoint()
    if newest is None:
        raise ConfigError(
            "the ledger has no checkpoint yet.", field="--to", hint="See 'lpf ledger checkpoint'."
        )
    return prove_consistency(workspace.database, _read_checkpoint(earlier), newest)


def _read_checkpoint(path: Path) -> Checkpoint:
    from lpf.ledger.checkpoint import parse

    return parse(path.read_bytes())


@command(
    app,
    "lpf ledger export ledger.jsonl",
    "lpf ledger export - | gzip > ledger.jsonl.gz",
)
def export(
    file: Annotated[
        str, typer.Argument(help="Output file; - is standard output.", parser=FileName)
    ],
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole ledger to a file that can be verified without the store."""
    from lpf.cli.terminal import count
    from lpf.ledger import export as write_export

    if as_json and file == STANDARD:
        raise ConfigError(
            "the ledger itself goes to standard output.", field="--json", hint="Leave it out."
        )
    with open_workspace(workspace) as space, _export_file(file) as path:
        records = write_export(space.database, path)
    if as_json:
        print_document({"file": file, "records": records})
    elif file == STANDARD:
        typer.echo(f"{count(records, 'record')}.", err=True)
    else:
        typer.echo(f"Wrote {count(records, 'record')} to {one_line(file)}.")
        typer.echo(f"To check it: lpf ledger verify --export {quoted(file)}")


@contextmanager
def _export_file(target: str) -> Iterator[Path]:
    """Standard output gets the export when it is complete."""
    if target != STANDARD:
        yield Path(target)
        return
    with tempfile.TemporaryDirectory(prefix="lpf-") as folder:
        path = Path(folder) / "ledger.jsonl"
        yield path
        sys.stdout.flush()
        if sys.stdout.isatty():  # shown, not sent on: control characters become JSON escapes
            with path.open(encoding="utf-8", newline="\n") as shown:
                sys.stdout.writelines(map(ascii_json, shown))
            return
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)


@command(app, "lpf ledger checkpoint --out checkpoint.json")
def checkpoint(
    out: Annotated[Path | None, typer.Option(help="Write the checkpoint to this file.")] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Sign the ledger as it is now. Stored elsewhere, the checkpoint reveals any later change."""
    from lpf.cli.terminal import count
    from lpf.storage.atomic_files import write_atomically

    with open_workspace(workspace) as space:
        signed = space.ledger.checkpoint()
    if signed is None:
        raise ConfigError("ledger checkpoint: there is no record yet. Nothing was signed.")
    if out is not None:
        write_atomically(out, signed.to_bytes() + b"\n")
    if as_json:
        print_document(signed.document())
        return
    typer.echo(f"Signed {count(signed.size, 'record')}, root {signed.root.hex()}")
    if out is not None:
        typer.echo(
            f"Written to {one_line(out)}. Store it elsewhere; "
            f"lpf ledger verify --trusted {quoted(out)}"
        )


@command(app, "lpf ledger reindex")
def reindex(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """Make the table again that finds records by entity. The records themselves stay as they are.

    It is brought up to date whenever it is used, so this is only needed if it was damaged.
    """
    with open_workspace(workspace) as space:
        listed = space.contents.rebuild()
    if as_json:
        print_document({"records": listed})
    else:
        typer.echo(f"{listed:,} records are listed")


@command(app, "lpf ledger forget INF00000042 --yes")
def forget(
    record_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Record IDs.")],
    yes: Yes = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Erase the text that questions were asked with (--query-text), or the comments of reviews.
    The records stay valid.

    A record holds only a salted hash of the text; text and salt are stored separately and erased.
    """
    from lpf.cli.terminal import count

    with open_workspace(workspace) as space:
        without = {name: why for name in record_ids if (why := _why_no_text(space, name))}
        if len(without) < len(record_ids):
            confirm(f"the text of {', '.join(record_ids)}", yes)
        erased, warnings = space.erase_query_texts(*record_ids)
    if as_json:
        print_document({"erased": erased, "without_words": without, "warnings": list(warnings)})
        return
    typer.echo(f"Erased the text of {count(erased, 'record')}.")
    for record_id, why in without.items():
        typer.echo(f"{record_id}: {why}.")
    for warning in warnings:
        typer.echo(f"warning: {one_line(warning)}", err=True)


def _erasable_words(workspace: Workspace, record: StoredRecord) -> str | None:
    """The text a question was asked with, or the words of a review; None if there are none, or they
    were erased."""
    from lpf.ledger.formats import TEXT_FIELDS

    commitment = next((one for one in map(record.fields.get, TEXT_FIELDS) if one), None)
    stored = commitment and workspace.records.query_text(bytes.fromhex(commitment))
    return stored.text if stored else None


def _why_no_text(workspace: Workspace, record_id: str) -> str | None:
    """Why there is nothing to erase; None if there is. A text that was changed can be erased."""
    from lpf.ledger.formats import TEXT_FIELDS

    record = workspace.records.get(record_id)
    if not any(name in record.fields for name in TEXT_FIELDS):
        return "has no comment" if "kind" in record.fields else "was asked without a text"
    try:
        return None if _erasable_words(workspace, record) is not None else "its text is erased"
    except LedgerBrokenError:
        return None
