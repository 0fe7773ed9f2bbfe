"""``lpf ledger export`` and ``checkpoint``: the ledger sealed, and carried away."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, opened, print_document
from lpf.errors import ConfigError

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
    from lpf.storage.files import write_atomically

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
