"""The file of a SQLite store: created for its owner only, recognised before it is written to."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from lpf.errors import ForeignStoreError
from lpf.storage.atomic_files import open_private

APPLICATION_ID = 0x6C7066  # "lpf", in the header of the file
_MAGIC = b"SQLite format 3\0"
_ID_PLACE = slice(68, 72)
# Of the first migration; a store written before files were marked has them.
_OWN_TABLES = {"schema_versions", "counters", "evidence"}


def prepare_file(path: Path) -> None:
    """Create the file if it is missing. ForeignStoreError, with nothing written, if it exists and
    is not a store of this package; a damaged file is left to SQLite to report."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        _create(path)
        return
    except OSError:
        return  # opening it reports that
    if not header:
        raise _foreign(path, "is an empty file that lpf did not create")
    marked = int.from_bytes(header[_ID_PLACE], "big") == APPLICATION_ID
    if header.startswith(_MAGIC) and not marked:
        _require_own_tables(path)


def _create(path: Path) -> None:
    """An empty database with our mark. It gets its name when it is complete, so no process ever
    sees it empty."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.new")
    try:
        open_private(new, "wb").close()
        with closing(sqlite3.connect(new)) as connection:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        _name(new, path)
    except (OSError, sqlite3.Error):
        return  # the folder is read-only or full: opening the file reports that
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _name(new: Path, path: Path) -> None:
    try:
        os.link(new, path)  # unlike a rename, this never replaces a file
    except FileExistsError:
        pass  # another process has just created it
    except OSError:  # a file system without links
        if not path.exists():
            new.rename(path)


def _require_own_tables(path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    # Without a log, nothing needs to be created next to the file to read it.
    immutable = "" if log.exists() and log.stat().st_size else "&immutable=1"
    address = f"{path.resolve().as_uri()}?mode=ro{immutable}"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {str(name) for (name,) in rows}
    except sqlite3.Error:
        return  # damaged or locked: opening it reports that
    if not tables >= _OWN_TABLES:
        shown = ", ".join(sorted(tables)[:3]) or "none"
        raise _foreign(path, f"is a database of another program (its tables: {shown})")


def _foreign(path: Path, problem: str) -> ForeignStoreError:
    return ForeignStoreError(
        f"{path}: {problem}. Nothing was written.",
        field="store.url",
        hint="Choose another file name, or move the file away.",
    )
