"""What drivers say, in this package's words: one place for both databases."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from lpf.errors import (
    StorageError,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

_SQLITE = {
    sqlite3.SQLITE_FULL: StoreFullError,
    sqlite3.SQLITE_READONLY: StoreReadOnlyError,
    sqlite3.SQLITE_BUSY: StoreBusyError,
    sqlite3.SQLITE_LOCKED: StoreBusyError,
    sqlite3.SQLITE_CORRUPT: StoreDamagedError,
    sqlite3.SQLITE_NOTADB: StoreDamagedError,
    sqlite3.SQLITE_CANTOPEN: StoreUnavailableError,
    sqlite3.SQLITE_PERM: StoreReadOnlyError,
}
# How SQLite calls a limit on the size of its file, and a disk without room for its shared memory.
_NO_ROOM = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
# Classes of SQLSTATE; the longer prefix is looked for first.
_POSTGRES = {
    "53100": StoreFullError,
    "25006": StoreReadOnlyError,
    "42501": StoreReadOnlyError,
    "55P03": StoreBusyError,
    "57014": StoreBusyError,
    "40": StoreBusyError,
    "XX001": StoreDamagedError,
    "XX002": StoreDamagedError,
    "08": StoreUnavailableError,
    "57": StoreUnavailableError,
    "53": StoreUnavailableError,
    "28": StoreUnavailableError,
    "3D": StoreUnavailableError,
}
_ADVICE = {
    StoreFullError: "the disk is full, or a limit on file sizes is reached. Nothing of this was "
    "written; free some space and repeat it",
    StoreReadOnlyError: "the store cannot be written to. Nothing of this was written; check the "
    "owner and permissions of the file and its folder",
    StoreBusyError: "another process held the store for too long. Nothing of this was written; "
    "repeat it, or raise store.busy_seconds",
    StoreDamagedError: "the store's file is damaged. Nothing of this was written; run 'lpf doctor' "
    "and restore a backup",
    StoreUnavailableError: "the store cannot be reached. Nothing of this was written; check that "
    "it is there and running",
    StorageError: "the store refused. Nothing of this was written",
}


class translate_errors:  # noqa: N801  (read as a verb; a generator would cost several times as much)
    """Turns what a driver raises within into a StorageError that names ``where``."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        kind = kind_of(error) if isinstance(error, Exception) else None
        if kind is not None:
            raise kind(
                f"{self._where}: {_ADVICE[kind]} (the database says: {_first_line(error)})."
            ) from error


def kind_of(error: Exception) -> type[StorageError] | None:
    """The error to raise in place of a driver's; None where it is not a driver's."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return _sqlite_kind(code)
    # psycopg is an extra: its errors are known by their SQLSTATE, not by their class.
    if type(error).__module__.partition(".")[0] == "psycopg":
        return _postgres_kind(error, getattr(error, "sqlstate", None))
    return None


def is_disconnect(error: Exception) -> bool:
    """Whether a fresh connection may help."""
    return not isinstance(error, sqlite3.Error) and kind_of(error) is StoreUnavailableError


def why_unopened(path: Path | None) -> StorageError | None:
    """SQLite has one phrase for every file that it cannot open; this says which case it is. None
    where that cannot be told, or where there is no file."""
    if path is None:
        return None
    folder = path.parent
    if not os.access(folder, os.X_OK):
        return StoreUnavailableError(
            f"{path}: the folder {folder} does not exist, or may not be entered. Nothing was "
            "written; make the folder, or correct store.url."
        )
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        return StoreReadOnlyError(f"{path}: {_ADVICE[StoreReadOnlyError]}.")
    return None


def _sqlite_kind(code: int | None) -> type[StorageError]:
    if code is None:
        return StorageError
    if code in _NO_ROOM:
        return StoreFullError
    return _SQLITE.get(code & 0xFF, StorageError)


def _postgres_kind(error: Exception, state: str | None) -> type[StorageError]:
    if state is None:  # the driver speaks, not the server: of a broken connection or a bad value
        names = {parent.__name__ for parent in type(error).__mro__}
        broken = names & {"OperationalError", "InterfaceError"}
        return StoreUnavailableError if broken else StorageError
    for length in (5, 2):
        if state[:length] in _POSTGRES:
            return _POSTGRES[state[:length]]
    return StorageError


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
