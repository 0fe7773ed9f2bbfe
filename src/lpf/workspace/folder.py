"""The folder of a workspace: finding one, and creating one with its key, store and ``lpf.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lpf.errors import LedgerError, WorkspaceError
from lpf.ledger.identity import read_identity
from lpf.ledger.keys import create_key, load_private, public_bytes
from lpf.ledger.writer import Ledger
from lpf.schema import Schema
from lpf.storage.atomic_files import private_folder, write_atomically
from lpf.storage.database import Database
from lpf.storage.migrations import migrate
from lpf.workspace.settings import (
    FILE_NAME,
    SQLITE,
    STORE_VARIABLE,
    Settings,
    StoreSettings,
    settings_from,
)

# A workspace holds evidence about people and a signing key.
IGNORE_FILE, IGNORE_ALL = (
    ".gitignore",
    b"# Not for version control: evidence and a secret key.\n*\n",
)


def find_folder(folder: Path | str | None) -> Path:
    """``folder`` itself, or (None) the current folder or the nearest one above it that is a
    workspace. WorkspaceError if there is none."""
    if folder is not None:
        if not (Path(folder) / FILE_NAME).is_file():
            raise WorkspaceError(
                f"{folder} is not a workspace: it has no {FILE_NAME}. Nothing was opened; create "
                "a workspace with 'lpf init' or Workspace.create."
            )
        return Path(folder).resolve()
    here = Path.cwd().resolve()
    for candidate in (here, *here.parents):
        if (candidate / FILE_NAME).is_file():
            return candidate
    raise WorkspaceError(
        f"{here}: neither this folder nor one above it is a workspace. Create one with 'lpf init', "
        "or name one with --workspace DIR."
    )


def create_workspace(folder: Path, schema: Schema, reader: str, store_url: str | None) -> None:
    """Create key and store, then the settings file, which makes the folder a workspace. A key or
    store left by an interrupted attempt is used. If it fails, what was created is removed again.
    WorkspaceError if the settings file exists."""
    if (folder / FILE_NAME).exists():
        raise WorkspaceError(
            f"{folder} is a workspace already. Nothing was changed; open it with "
            "Workspace(folder), or choose another folder."
        )
    text = settings_text(schema, reader, store_url)
    settings = settings_from(folder, tomllib.loads(text))
    is_new = not folder.exists()
    with _nothing_left_behind(settings):
        try:
            private_folder(folder)
            private_folder(settings.key_file.parent)  # before the store is touched
        except OSError as error:
            raise WorkspaceError(
                f"{error.filename}: cannot be created ({error.strerror}). Nothing was created."
            ) from error
        with Database(settings.store_address) as database:
            migrate(database)
            _create_ledger(database, settings.key_file)
        with suppress(OSError):  # empty if the ledger of a shared store has its key elsewhere
            settings.key_file.parent.rmdir()
        if is_new:  # in a folder with other files, it would hide those too
            write_atomically(folder / IGNORE_FILE, IGNORE_ALL)
        write_atomically(folder / FILE_NAME, text.encode())


@contextmanager
def _nothing_left_behind(settings: Settings) -> Iterator[None]:
    """If the block raises, remove the files and folders that it created."""
    folder, key = settings.folder, settings.key_file
    files = [
        folder / FILE_NAME,
        folder / IGNORE_FILE,
        key,
        key.with_suffix(".pub"),
        *store_files(settings),
    ]
    folders = [one for path in (key.parent, folder) for one in (path, *path.parents)]
    new_files = [path for path in files if not path.exists()]
    new_folders = [path for path in dict.fromkeys(folders) if not path.exists()]
    try:
        yield
    except BaseException:
        for path in new_files:
            with suppress(OSError):  # it was not created
                path.unlink()
        for path in sorted(new_folders, key=lambda one: len(one.parts), reverse=True):
            with suppress(OSError):  # something else was put into it, or it was not created
                path.rmdir()
        raise


def store_files(settings: Settings) -> list[Path]:
    """The files of a SQLite store."""
    address = settings.store_address
    if isinstance(address, str) and not address.startswith(SQLITE):
        return []
    store = Path(str(address).removeprefix(SQLITE))
    return [store.with_name(store.name + end) for end in ("", "-wal", "-shm", "-journal")]


def _create_ledger(database: Database, key_file: Path) -> None:
    """A ledger signed with this workspace's key. If a shared store has a ledger already, that one
    stays, and this workspace appends without signing until it is given the ledger's key."""
    try:
        read_identity(database)
        return
    except LedgerError:
        pass
    if not key_file.exists():
        create_key(key_file.parent)
    Ledger.create(database, public_bytes(load_private(key_file)))


def settings_text(schema: Schema, reader: str, store_url: str | None) -> str:
    """The text of a new ``lpf.toml``."""
    lines = [
        "# An lpf workspace. Settings that are not listed have defaults; see docs/workspace.md.",
        "",
        "[reader]",
        f"name = {_quoted(reader)}",
        *_about_claim(schema),
        "",
        "[store]",
        f"url = {_quoted(store_url or StoreSettings.url)}  # or postgresql://...; the environment"
        f" variable {STORE_VARIABLE} takes precedence",
        "",
    ]
    for predicate in schema:
        lines += [
            "[[predicates]]",
            f"name = {_quoted(predicate.name)}",
            f"values = [{', '.join(map(_quoted, predicate.values))}]",
            f"prior = [{', '.join(map(repr, predicate.prior))}]",
            "# A known fact older than this many days does not answer by itself any more. What it",
            "# says beyond chance halves with every further period of this length.",
            f"staleness_days = {predicate.staleness_days}",
        ]
        if predicate.description:
            lines.append(f"description = {_quoted(predicate.description)}")
        lines.append("")
    for relation in schema.relations:
        between = ", ".join(map(_quoted, relation.between))
        lines += ["[[relations]]", f"between = [{between}]", ""]
    return "\n".join(lines)


def _about_claim(schema: Schema) -> list[str]:
    if schema.claim is None:
        return []
    return [
        "# Evidence that comes without a claim is read as evidence on the predicate's description.",
        "description_as_claim = true",
    ]


def _quoted(text: str) -> str:
    """A TOML basic string."""
    escaped = "".join(
        f"\\u{ord(letter):04x}" if ord(letter) < 32 or ord(letter) == 127 else letter
        for letter in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'
