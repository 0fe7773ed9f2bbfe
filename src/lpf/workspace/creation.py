"""Making a workspace: its key, its store, and last the file that makes the folder one."""

from __future__ import annotations

import tomllib
from pathlib import Path

from lpf.errors import LedgerError, WorkspaceError
from lpf.ledger.identity import read_identity
from lpf.ledger.keys import create_key, load_private, public_bytes
from lpf.ledger.writer import Ledger
from lpf.schema import Schema
from lpf.storage.atomic_files import write_atomically
from lpf.storage.database import Database
from lpf.storage.migrations import migrate
from lpf.workspace.settings import FILE_NAME, STORE_VARIABLE, StoreSettings, settings_from


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


def template(schema: Schema, reader: str, store_url: str | None) -> str:
    """The text of a new ``lpf.toml``: what was asked for, and where the rest can be changed."""
    lines = [
        "# A workspace of lpf. What is not set here has its default; docs/workspace.md lists all.",
        "",
        "[reader]",
        f"name = {_quoted(reader)}",
        "",
        "[store]",
        f"url = {_quoted(store_url or StoreSettings.url)}  # or postgresql://...; {STORE_VARIABLE}"
        " in the environment wins",
        "",
    ]
    for predicate in schema:
        lines += [
            "[[predicates]]",
            f"name = {_quoted(predicate.name)}",
            f"values = [{', '.join(map(_quoted, predicate.values))}]",
            f"prior = [{', '.join(map(repr, predicate.prior))}]",
            f"staleness_days = {predicate.staleness_days}",
        ]
        if predicate.description:
            lines.append(f"description = {_quoted(predicate.description)}")
        lines.append("")
    for relation in schema.relations:
        between = ", ".join(map(_quoted, relation.between))
        lines += ["[[relations]]", f"between = [{between}]", ""]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A TOML basic string."""
    escaped = "".join(
        f"\\u{ord(letter):04x}" if ord(letter) < 32 or ord(letter) == 127 else letter
        for letter in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'
