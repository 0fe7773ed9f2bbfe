"""Failures of the database raise a named error with advice, and leave the store intact."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg.errors
import pytest
from test_database import names, put

from lpf import errors
from lpf.errors import (
    StorageError,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from lpf.storage.database import Database
from lpf.storage.driver_errors import storage_error_class, translate_errors
from lpf.storage.migrations import NEWEST, migrate

LONG = "x" * 20_000
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one row."""
    path = tmp_path / "store.db"
    with Database(path) as database:
        migrate(database)
        put(database, "first")
    return path


def assert_intact(path: Path, expected: list[str]) -> None:
    """Checked with plain sqlite3."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = connection.execute("SELECT name FROM counters ORDER BY name")
        assert [name for (name,) in found] == expected


def put_until_full(database: Database) -> list[str]:
    """Write until the store is full; return the rows that were written."""
    kept = names(database)

    def put_more() -> None:
        for number in range(10_000):
            put(database, f"{number:04} {LONG}")
            kept.append(f"{number:04} {LONG}")

    with pytest.raises(StoreFullError, match=r"disk is full.*Nothing was written"):
        put_more()
    return sorted(kept)


# Error classes


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, StoreFullError),
        (sqlite3.SQLITE_IOERR_WRITE, StoreFullError),
        (sqlite3.SQLITE_IOERR_SHMSIZE, StoreFullError),
        (sqlite3.SQLITE_IOERR_READ, StorageError),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreReadOnlyError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusyError),
        (sqlite3.SQLITE_LOCKED, StoreBusyError),
        (sqlite3.SQLITE_CORRUPT_INDEX, StoreDamagedError),
        (sqlite3.SQLITE_NOTADB, StoreDamagedError),
        (sqlite3.SQLITE_CANTOPEN_ISDIR, StoreUnavailableError),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, StorageError),
        (None, StorageError),
    ],
)
def test_sqlite_errors_are_classified(code: int | None, kind: type[StorageError]) -> None:
    error = sqlite3.OperationalError("no")
    if code is not None:
        error.sqlite_errorcode = code
    assert storage_error_class(error) is kind


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("53100", StoreFullError),  # disk_full
        ("53300", StoreUnavailableError),  # too_many_connections
        ("25006", StoreReadOnlyError),  # read_only_sql_transaction
        ("42501", StoreReadOnlyError),  # insufficient_privilege
        ("55P03", StoreBusyError),  # lock_not_available
        ("40P01", StoreBusyError),  # deadlock_detected
        ("57014", StoreBusyError),  # query_canceled
        ("57P01", StoreUnavailableError),  # admin_shutdown
        ("08006", StoreUnavailableError),  # connection_failure
        ("3D000", StoreUnavailableError),  # invalid_catalog_name
        ("XX001", StoreDamagedError),  # data_corrupted
        ("XX000", StorageError),  # internal_error
        ("23505", StorageError),  # unique_violation
    ],
)
def test_postgresql_errors_are_classified(state: str, kind: type[StorageError]) -> None:
    assert storage_error_class(psycopg.errors.lookup(state)("no")) is kind


def test_errors_of_the_driver_itself_are_classified() -> None:
    assert (
        storage_error_class(psycopg.OperationalError("the connection is closed"))
        is StoreUnavailableError
    )
    assert storage_error_class(psycopg.DataError("text cannot contain NUL")) is StorageError
    assert (
        storage_error_class(psycopg.ProgrammingError("2 placeholders, 1 parameter")) is StorageError
    )


def test_other_errors_are_not_translated() -> None:
    error = ValueError("another matter")
    with pytest.raises(ValueError, match="another matter") as caught, translate_errors("store.db"):
        raise error
    assert caught.value is error


# Missing files and servers


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="missing does not exist"):
        migrate(Database(tmp_path / "missing" / "store.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_place_of_the_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        migrate(Database(tmp_path))


def test_a_missing_server_is_named_without_its_password() -> None:
    with pytest.raises(StoreUnavailableError, match="localhost:1") as caught:
        migrate(Database("postgresql://user:secret@localhost:1/store"))
    assert "secret" not in str(caught.value)


# Damage


def damaged(content: bytes, how: str) -> bytes:
    if how == "another file":
        return b"This is a letter, not a database. " * 500
    if how == "cut short":
        return content[: len(content) // 2]
    return content[:100] + b"\xff" * (len(content) - 100)


@pytest.mark.parametrize("how", ["another file", "cut short", "overwritten"])
def test_a_damaged_file_is_reported_and_not_changed(path: Path, how: str) -> None:
    content = damaged(path.read_bytes(), how)
    path.write_bytes(content)
    with pytest.raises(StoreDamagedError, match="lpf doctor"), Database(path) as database:
        names(database)
    assert path.read_bytes() == content


# Locked by others


def test_a_file_locked_by_another_program_is_busy(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        holder.execute("CREATE TABLE theirs (a)")
        with pytest.raises(StoreBusyError, match="another process"):
            put(Database(path, busy_seconds=0.2), "second")
        holder.execute("ROLLBACK")
    with Database(path, busy_seconds=0.2) as database:
        assert migrate(database) == NEWEST


# No space


def test_a_full_store_can_be_used_again_with_more_space(path: Path) -> None:
    with Database(path) as database:
        (pages,) = database.connection.execute("PRAGMA page_count").fetchone()
        database.connection.execute(f"PRAGMA max_page_count={pages + 20}")
        kept = put_until_full(database)
        assert names(database) == kept
        database.connection.execute("PRAGMA max_page_count=100000")
        put(database, "with room again")
    assert_intact(path, sorted([*kept, "with room again"]))


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the program mount")
    if done.returncode != 0:
        pytest.skip(f"may not mount a small disk: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_reported_and_freed_space_is_used(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        path, ballast = disk / "store.db", disk / "ballast"
        ballast.write_bytes(b"x" * 200_000)
        with Database(path) as database:
            migrate(database)
            kept = put_until_full(database)
            assert names(database) == kept
            ballast.unlink()
            put(database, "with room again")
        assert_intact(path, sorted([*kept, "with room again"]))


@pytest.mark.parametrize("size", ["4k", "16k", "48k", "80k"])
def test_a_disk_too_small_for_an_empty_store_is_full(tmp_path: Path, size: str) -> None:
    with small_disk(tmp_path / "disk", size) as disk, pytest.raises(StoreFullError):
        migrate(Database(disk / "store.db"))


# As another user, in another process

AS_CHILD = f"""
import os, pathlib, resource, sys, tempfile
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parent.parent)]!r}
from test_database import names, put
from lpf.errors import StorageError
from lpf.storage.database import Database
from lpf.storage.migrations import migrate, version_of
with tempfile.TemporaryDirectory() as folder, Database(pathlib.Path(folder) / "s.db") as store:
    migrate(store)  # so that lazy imports happen while the files are still readable
    put(store, "warm")
path = pathlib.Path(sys.argv[1])
def attempt(work):
    try:
        print("done", work())
    except StorageError as error:
        print(type(error).__name__, error)
"""
DROP = f"os.geteuid() or (os.setgid({NOBODY}), os.setuid({NOBODY}))\n"


def run_attempts(program: str, path: Path) -> list[tuple[type[StorageError] | None, str]]:
    """The error class (None if it succeeded) and message of each attempt in the program."""
    done = subprocess.run(
        [sys.executable, "-c", AS_CHILD + program, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return [(getattr(errors, name, None), message) for name, _, message in lines]


@pytest.fixture
def public(path: Path) -> Iterator[Path]:
    """The store in a folder that every user may enter, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="lpf-public-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if os.geteuid() == 0 and not all(above.stat().st_mode & 1 for above in folder.parents):
            pytest.skip(f"other users may not enter {folder.parent}")
        (folder / "store.db").write_bytes(path.read_bytes())
        yield folder
        folder.chmod(0o755)


def test_a_file_size_limit_is_reported(path: Path) -> None:
    program = """
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
database = Database(path)
attempt(lambda: [put(database, f"{number:04} " + "x" * 20_000) for number in range(100)])
attempt(lambda: len(names(database)))
"""
    (full, message), (_, count) = run_attempts(program, path)
    assert full is StoreFullError
    assert "file size limit" in message
    assert_intact(path, sorted(["first", *(f"{n:04} {LONG}" for n in range(int(count) - 1))]))


def test_a_read_only_folder_is_reported(public: Path) -> None:
    for name in ("store.db", "blank.db"):
        public.chmod(0o555)
        program = DROP + "attempt(lambda: migrate(Database(path)))\n"
        ((kind, message),) = run_attempts(program, public / name)
        assert kind is StoreReadOnlyError
        assert "check the owner and permissions" in message
    assert_intact(public / "store.db", ["first"])


def test_a_read_only_file_is_reported(public: Path) -> None:
    public.chmod(0o777)
    (public / "store.db").chmod(0o444)
    program = DROP + "attempt(lambda: put(Database(path), 'second'))\n"
    ((kind, message),) = run_attempts(program, public / "store.db")
    assert kind is StoreReadOnlyError
    assert "check the owner and permissions" in message
    assert_intact(public / "store.db", ["first"])


def test_an_inaccessible_folder_is_reported(public: Path) -> None:
    public.chmod(0o600)
    program = DROP + "attempt(lambda: version_of(Database(path)))\n"
    ((kind, message),) = run_attempts(program, public / "store.db")
    public.chmod(0o755)
    assert kind is StoreUnavailableError
    assert "not accessible" in message
