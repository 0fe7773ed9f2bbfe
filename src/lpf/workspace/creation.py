"""Making a workspace: its key, its store, and last the file that makes the folder one."""

from __future__ import annotations

import tomllib
from pathlib import Path

from lpf.errors import LedgerError, WorkspaceError
from lpf.ledger.identity import read_identity
from lpf.ledger.keys import create_key, load_private, public_bytes
from lpf.ledger.writer import Ledger
from lpf.schema import Schema
from lpf.storage.database import Database
from lpf.storage.files import write_atomically
from lpf.storage.migrations import migrate
from lpf.workspace.settings import FILE_NAME, settings_from, template


def create_workspace(
    folder: Path, schema: Schema, reader: str = "minilm", store_url: str | None = None
) -> None:
    """Everything but the settings file may be there from an attempt that was interrupted, and is
    used again. WorkspaceError where the settings file is there."""
    if (folder / FILE_NAME).exists():
        raise WorkspaceError(f"{folder}: is a workspace already. Nothing was changed.")
    text = template(schema, reader, store_url)
    settings = settings_from(folder, tomllib.loads(text))
    _make_folder(folder)
    with Database(settings.store_address) as database:
        migrate(database)
        _give_ledger(database, settings.key_file)
    write_atomically(folder / FILE_NAME, text.encode())


def _give_ledger(database: Database, key_file: Path) -> None:
    """A ledger with this workspace's key. A shared store that has one already keeps it: this
    workspace then appends without signing until it is given the ledger's key."""
    try:
        read_identity(database)
        return
    except LedgerError:
        pass
    if not key_file.exists():
        key_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        create_key(key_file.parent)
    Ledger.create(database, public_bytes(load_private(key_file)))


def _make_folder(folder: Path) -> None:
    try:
        # What is kept here is about people: a folder made for it is its owner's alone.
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise WorkspaceError(
            f"{folder}: cannot be made ({error.strerror}). Nothing was created."
        ) from error
