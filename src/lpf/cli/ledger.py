"""``lpf ledger``: the record of every answer, looked at, computed again, its words forgotten.

``lpf ledger export`` and ``checkpoint``: the ledger sealed, and carried away.

``lpf ledger verify`` and ``prove``: whether the ledger holds, and how to show it to others.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from lpf.cli.query_options import query_words, why_no_words
from lpf.errors import ConfigError, LedgerKeyError

if TYPE_CHECKING:
    from lpf.ledger import Checkpoint, StoredRecord, Verification
    from lpf.orchestrator import Replay
    from lpf.workspace import Workspace


STANDARD = "-"


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf ledger export ledger.jsonl",
        "lpf ledger export - | gzip > ledger.jsonl.gz",
    )(export)
    command(app, "lpf ledger checkpoint --out checkpoint.json")(checkpoint)


def export(
    file: Annotated[str, typer.Argument(help="Where to; - is standard output.")],
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole ledger to a file that can be verified without the store."""
    from lpf.ledger import export as write_export

    if as_json and file == STANDARD:
        raise ConfigError("--json: the ledger itself is on standard output; leave it out.")
    with opened(workspace) as space, exported_file(file) as path:
        records = write_export(space.database, path)
    if as_json:
        print_document({"file": file, "records": records})
        return
    told = f"{records:,} records are in {file}. Check it: lpf ledger verify --export {file}"
    typer.echo(f"{records:,} records." if file == STANDARD else told, err=file == STANDARD)


def checkpoint(
    out: Annotated[Path | None, typer.Option(help="Write it to this file.")] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Sign the ledger as it is now. Kept elsewhere, the checkpoint shows any later rewriting."""
    from lpf.storage.atomic_files import write_atomically

    with opened(workspace) as space:
        signed = space.ledger.checkpoint()
    if signed is None:
        raise ConfigError("ledger checkpoint: there is no record yet. Nothing was signed.")
    if out is not None:
        write_atomically(out, signed.to_bytes() + b"\n")
    if as_json:
        print_document(signed.document())
        return
    typer.echo(f"Signed: {signed.size:,} records, root {signed.root.hex()}")
    if out is not None:
        typer.echo(f"Written to {out}. Keep it elsewhere: lpf ledger verify --trusted {out}")


@contextmanager
def exported_file(target: str) -> Iterator[Path]:
    """Standard output gets the export when it is complete."""
    if target != STANDARD:
        yield Path(target)
        return
    with tempfile.TemporaryDirectory(prefix="lpf-") as folder:
        path = Path(folder) / "ledger.jsonl"
        yield path
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)


KEY_DIGITS = 64


def register_ledger_proofs(app: typer.Typer) -> None:
    command(
        app,
        "lpf ledger verify",
        "lpf ledger verify --trusted checkpoint.json --key ledger.pub",
    )(verify)
    command(
        app,
        "lpf ledger prove INF00000042 --out bundle.json",
        "lpf ledger prove --from january.json --to june.json",
    )(prove)


def verify(
    trusted: Annotated[
        Path | None, typer.Option(help="A checkpoint that was kept elsewhere.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="FILE|HEX", help="The public key it must be of.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="Verify this export; needs no workspace.")
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every hash and check every signature. Exit code 1 if anything does not hold.

    Without --trusted or --key the ledger is only compared with itself: whoever can write the store
    and has the signing key could have rewritten all of it.
    """
    from lpf.ledger import verify as verify_ledger

    public_key = None if key is None else _public_key(key)
    checkpoint = None if trusted is None else trusted.read_bytes()
    if export is not None:
        found = verify_ledger(export, public_key, checkpoint)
    else:
        with opened(workspace) as space:
            found = verify_ledger(space.database, public_key, checkpoint)
    itself_only = public_key is None and checkpoint is None
    if as_json:
        print_document({**_document(found), "against_itself_only": itself_only})
    else:
        _show_ledger_proofs(found)
        if itself_only:
            typer.echo("  checked against itself only; see --trusted and --key")
    if not found.ok:
        answer_no()


def prove(
    record_id: Annotated[str | None, typer.Argument(metavar="ID", help="The record.")] = None,
    earlier: Annotated[
        Path | None, typer.Option("--from", metavar="CHECKPOINT", help="An earlier checkpoint.")
    ] = None,
    later: Annotated[
        Path | None,
        typer.Option("--to", metavar="CHECKPOINT", help="A later one; by default the newest."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the bundle to this file.")] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Prove that a record is in the ledger, or that one checkpoint continues another.

    Whoever has the public key can check it without this package: see docs/ledger.md.
    """
    if (record_id is None) == (earlier is None):
        raise ConfigError("ledger prove: give the ID of a record, or --from CHECKPOINT.")
    with opened(workspace) as space:
        bundle = _bundle(space, record_id, earlier, later)
    if out is not None:
        from lpf.ledger import canonical
        from lpf.storage.atomic_files import write_atomically

        write_atomically(out, canonical(bundle) + b"\n")
    if as_json or out is None:
        print_document(bundle)
    else:
        typer.echo(f"The proof is in {out}.")


def _bundle(
    workspace: Workspace, record_id: str | None, earlier: Path | None, later: Path | None
) -> dict[str, Any]:
    from lpf.ledger import prove_consistency, prove_inclusion

    second = None if later is None else _checkpoint(later)
    if record_id is not None:
        return prove_inclusion(workspace.database, record_id, second)
    assert earlier is not None  # one of the two was given
    newest = second or workspace.records.latest_checkpoint()
    if newest is None:
        raise ConfigError("--to: the ledger has no checkpoint yet; see 'lpf ledger checkpoint'.")
    return prove_consistency(workspace.database, _checkpoint(earlier), newest)


def _checkpoint(path: Path) -> Checkpoint:
    from lpf.ledger.checkpoint import parse

    return parse(path.read_bytes())


def _public_key(given: str) -> bytes:
    """A file, or the 64 digits themselves."""
    from lpf.ledger import load_public

    if len(given) == KEY_DIGITS and not Path(given).exists():
        try:
            return bytes.fromhex(given)
        except ValueError:
            raise LedgerKeyError(f"--key: {given!r} is no key in hexadecimal digits.") from None
    return load_public(Path(given))


def _document(found: Verification) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "records": found.records,
        "checkpoints": found.checkpoints,
        "unsigned_tail": found.unsigned_tail,
        "root": found.root.hex(),
        "findings": [{"where": one.where, "what": one.what} for one in found.findings],
    }


def _show_ledger_proofs(found: Verification) -> None:
    from rich.markup import escape

    from lpf.cli.terminal import console, count

    output = console()
    verdict = "The ledger holds" if found.ok else "THE LEDGER DOES NOT HOLD"
    looked_at = f"{count(found.records, 'record')}, {count(found.checkpoints, 'checkpoint')}"
    output.print(f"[bold]{verdict}[/bold]: {looked_at}")
    output.print(f"  root {found.root.hex()}", soft_wrap=True)
    if found.ok and found.unsigned_tail:
        tail = count(found.unsigned_tail, "record")
        output.print(f"  {tail} at the end not signed yet: lpf ledger checkpoint")
    for finding in found.findings:
        output.print(f"  {escape(str(finding))}", soft_wrap=True)


app = group("ledger", "The record of every answer: show, verify, prove, replay, export.")
register_ledger_proofs(app)
register(app)


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
    from lpf.cli.terminal import count

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
    from lpf.cli.terminal import console

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
    from lpf.cli.terminal import console, indented, table

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
