"""``lpf ledger verify`` and ``prove``: whether the ledger holds, and how to show it to others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    answer_no,
    command,
    opened,
    print_document,
)
from lpf.errors import ConfigError, LedgerKeyError

if TYPE_CHECKING:
    from lpf.ledger import Checkpoint, Verification
    from lpf.workspace import Workspace

KEY_DIGITS = 64


def register(app: typer.Typer) -> None:
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
        _show(found)
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
        from lpf.storage.files import write_atomically

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


def _show(found: Verification) -> None:
    from rich.markup import escape

    from lpf.cli.rendering import console, count

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
