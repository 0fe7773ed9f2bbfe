"""Translate the errors of sqlite3 and psycopg into this package's storage errors."""

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
# What SQLite reports at a file size limit, and when the disk has no room for its shared memory.
_NO_ROOM = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
# By SQLSTATE or its two-character class; the full code takes precedence.
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
    StoreFullError: "the disk is full or a file size limit is reached. Nothing was written; free "
    "some space and try again",
    StoreReadOnlyError: "the store is not writable. Nothing was written; check the owner and "
    "permissions of the file and its folder",
    StoreBusyError: "another process locked the store for too long. Nothing was written; try "
    "again, or raise store.busy_seconds",
    StoreDamagedError: "the store's file is damaged. Nothing was written; run 'lpf doctor' and "
    "restore a backup",
    StoreUnavailableError: "the store cannot be reached. Nothing was written; check that it exists "
    "and is running",
    StorageError: "the database reported an error. Nothing was written",
}


class translate_errors:  # noqa: N801  (used like a function; a generator is several times slower)
    """Context manager that turns a driver's error into a StorageError naming the store."""

    __slots__ = ("_store",)

    def __init__(self, store: str) -> None:
        self._store = store

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        error_class = storage_error_class(error) if isinstance(error, Exception) else None
        if error_class is not None:
            raise error_class(
                f"{self._store}: {_ADVICE[error_class]} (database error: {_first_line(error)})."
            ) from error


def storage_error_class(error: Exception) -> type[StorageError] | None:
    """The class to raise instead of a driver's error, or None if it is not a driver's error."""
    if isinstance(error, sqlite3.Error):
        return _sqlite_class(getattr(error, "sqlite_errorcode", None))
    # psycopg is an optional package, so its errors are recognised without importing it.
    if type(error).__module__.partition(".")[0] == "psycopg":
        return _postgres_class(error, getattr(error, "sqlstate", None))
    return None


def is_disconnect(error: Exception) -> bool:
    """Return True if a new connection may help."""
    if isinstance(error, sqlite3.Error):
        return False
    return storage_error_class(error) is StoreUnavailableError


def is_undecodable(error: Exception) -> bool:
    """Return True if SQLite holds a text that is not UTF-8: only damage can put one there."""
    return isinstance(error, sqlite3.OperationalError) and "decode to UTF-8" in str(error)


def explain_open_failure(path: Path | None) -> StorageError | None:
    """A more precise error for a SQLite file that cannot be opened: SQLite reports all causes with
    the same message. None if the cause is not known or there is no file."""
    if path is None:
        return None
    folder = path.parent
    if not os.access(folder, os.X_OK):
        return StoreUnavailableError(
            f"{path}: the folder {folder} does not exist or is not accessible. Nothing was "
            "written; create the folder or correct store.url."
        )
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        return StoreReadOnlyError(f"{path}: {_ADVICE[StoreReadOnlyError]}.")
    return None


def _sqlite_class(code: int | None) -> type[StorageError]:
    if code is None:
        return StorageError
    if code in _NO_ROOM:
        return StoreFullError
    return _SQLITE.get(code & 0xFF, StorageError)


def _postgres_class(error: Exception, state: str | None) -> type[StorageError]:
    if state is None:  # raised by the driver, not the server: broken connection or bad value
        names = {parent.__name__ for parent in type(error).__mro__}
        broken = names & {"OperationalError", "InterfaceError"}
        return StoreUnavailableError if broken else StorageError
    for length in (5, 2):
        if state[:length] in _POSTGRES:
            return _POSTGRES[state[:length]]
    return StorageError


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
