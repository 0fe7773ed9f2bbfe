"""Database on SQLite and PostgreSQL: transactions, threads, forks, numbers, streams."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path

import pytest
from sqlalchemy import bindparam, func, insert, select

from lpf.errors import ForeignStoreError, LPFError, StorageError, StoreBusyError
from lpf.storage.database import Database
from lpf.storage.migrations import migrate, version_of
from lpf.storage.sqlite_file import APPLICATION_ID
from lpf.storage.statements import Prepared
from lpf.storage.tables import counters

PUT = Prepared(
    insert(counters).values(name=bindparam("name"), value=bindparam("value")), "name", "value"
)
VALUE = Prepared(select(counters.c.value).where(counters.c.name == bindparam("name")), "name")
COUNT = Prepared(select(func.count()).select_from(counters))
NAMES = Prepared(select(counters.c.name).order_by(counters.c.name))
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    with Database(store_url, busy_seconds=20) as opened:
        migrate(opened)
        yield opened


def put(database: Database, name: str, value: int = 1) -> None:
    put_and(database, name, value, lambda: None)


def put_and(database: Database, name: str, value: int, then: Callable[[], object]) -> None:
    """Write a row and call ``then`` in one transaction."""
    with database.transaction() as connection:
        database.run(connection, PUT, (name, value))
        then()


def fail_with(error: type[BaseException]) -> None:
    raise error("on purpose")


def names(database: Database) -> list[str]:
    return [name for (name,) in database.rows(NAMES)]


# Transactions


def test_written_rows_are_read(database: Database) -> None:
    put(database, "a", 2**62)
    assert database.row(VALUE, ("a",)) == (2**62,)
    assert database.row(VALUE, ("b",)) is None
    assert database.rows(VALUE, ("b",)) == []


def test_run_many_writes_all_rows_or_none(database: Database) -> None:
    with database.transaction() as connection:
        database.run_many(connection, PUT, [])
        database.run_many(connection, PUT, [("a", 1), ("b", 2)])
    with pytest.raises(StorageError), database.transaction() as connection:
        database.run_many(connection, PUT, [("c", 3), ("a", 4)])
    assert names(database) == ["a", "b"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_rolls_back_and_is_raised(database: Database, error: type[BaseException]) -> None:
    with pytest.raises(error, match="on purpose"):
        put_and(database, "a", 1, lambda: fail_with(error))
    assert names(database) == []
    put(database, "b")
    assert names(database) == ["b"]


def test_a_failed_statement_rolls_back(database: Database) -> None:
    put(database, "a")
    again = partial(database.run, database.connection, PUT, ("a", 1))
    with pytest.raises(StorageError, match="Nothing was written"):
        put_and(database, "b", 1, again)
    assert names(database) == ["a"]
    put(database, "b")


def test_only_the_transaction_sees_its_uncommitted_rows(database: Database) -> None:
    with ThreadPoolExecutor(1) as other, database.transaction() as connection:
        database.run(connection, PUT, ("a", 1))
        assert names(database) == ["a"]
        assert other.submit(names, database).result() == []


def test_nested_transactions_are_rejected(database: Database) -> None:
    with pytest.raises(StorageError, match="already in a transaction"):
        put_and(database, "outer", 1, lambda: put(database, "inner"))
    assert names(database) == []
    put(database, "afterwards")
    assert names(database) == ["afterwards"]


# Closing, threads, forks


def test_a_closed_database_can_be_used_again(database: Database) -> None:
    put(database, "a")
    database.close()
    database.close()
    assert names(database) == ["a"]
    database.close()
    put(database, "b")


def test_each_thread_has_its_own_connection(database: Database) -> None:
    together = threading.Barrier(4)

    def connection(_: int) -> int:
        together.wait()
        return id(database.connection)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(connection, range(4)))) == 4
        assert id(database.connection) == id(database.connection)


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the listing itself is one of them


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_connections_of_finished_threads_are_closed(database: Database) -> None:
    names(database)
    before = open_files()
    for _ in range(20):
        thread = threading.Thread(target=names, args=(database,))
        thread.start()
        thread.join()
    assert open_files() < before + 5  # SQLite closes some files only with the last connection


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_connections_of_a_collected_database_are_closed(store_url: str) -> None:
    before = open_files()
    version_of(Database(store_url))
    assert open_files() <= before


def in_a_fork(work: Iterator[object]) -> int:
    """The exit code of a child that runs ``work``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from Python 3.12 a fork beside threads warns
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if all(work) else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_its_own_connections(database: Database) -> None:
    put(database, "parent")
    inherited = database.connection

    def child() -> Iterator[object]:
        yield database.connection is not inherited
        put(database, "child")
        yield names(database) == ["child", "parent"]
        database.close()
        gc.collect()
        yield True

    with ThreadPoolExecutor(1) as other:
        other.submit(names, database).result()
        assert in_a_fork(child()) == 0
        assert other.submit(names, database).result() == ["child", "parent"]
    assert database.connection is inherited
    put(database, "still there")


# Numbers


def take(database: Database, name: str, count: int) -> list[int]:
    with database.transaction() as connection:
        return list(database.take_numbers(connection, name, count))


def take_some(url: str, times: int) -> list[int]:
    with Database(url) as database:
        return [number for _ in range(times) for number in take(database, "series", 3)]


def test_each_series_of_numbers_starts_at_one(database: Database) -> None:
    assert take(database, "a", 3) == [1, 2, 3]
    assert take(database, "b", 1) == [1]
    assert take(database, "a", 0) == []
    assert take(database, "a", 2) == [4, 5]


def test_numbers_of_a_rolled_back_transaction_are_given_again(database: Database) -> None:
    def take_and_fail() -> None:
        assert database.take_numbers(database.connection, "a", 5) == range(1, 6)
        fail_with(ValueError)

    with pytest.raises(ValueError, match="on purpose"):
        put_and(database, "other", 1, take_and_fail)
    assert take(database, "a", 1) == [1]


def test_threads_take_distinct_numbers_without_gaps(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = pool.map(lambda _: take(database, "series", 3), range(80))
        numbers = sorted(number for batch in taken for number in batch)
    assert numbers == list(range(1, 241))


def test_processes_take_distinct_numbers_without_gaps(database: Database, store_url: str) -> None:
    with ProcessPoolExecutor(3, mp_context=SPAWN) as pool:
        taken = list(pool.map(take_some, [store_url] * 6, [15] * 6))
    assert sorted(chain.from_iterable(taken)) == list(range(1, 6 * 15 * 3 + 1))


# Streams


def test_a_stream_reads_one_snapshot_while_rows_are_added(database: Database) -> None:
    with database.transaction() as connection:
        database.run_many(connection, PUT, [(f"{number:04}", number) for number in range(25)])
    chunks = []
    for chunk in database.stream(NAMES, size=10):
        chunks.append([name for (name,) in chunk])
        put(database, f"{len(chunks):04} later")
    assert [len(chunk) for chunk in chunks] == [10, 10, 5]
    assert list(chain.from_iterable(chunks)) == [f"{number:04}" for number in range(25)]
    assert database.row(COUNT) == (28,)


def test_a_stream_does_not_see_the_open_transaction(database: Database) -> None:
    put(database, "before")
    with database.transaction() as connection:
        database.run(connection, PUT, ("within", 1))
        assert list(database.stream(NAMES)) == [[("before",)]]


def test_a_stream_may_be_empty_take_arguments_or_be_closed_early(database: Database) -> None:
    assert list(database.stream(NAMES)) == []
    with database.transaction() as connection:
        database.run_many(connection, PUT, [(f"{number:04}", number) for number in range(25)])
    assert list(database.stream(VALUE, ("0007",))) == [[(7,)]]
    left = database.stream(NAMES, size=10)
    next(left)
    left.close()  # type: ignore[attr-defined]
    put(database, "afterwards")


# Waiting


def test_waiting_too_long_for_a_lock_raises_busy(database: Database, store_url: str) -> None:
    with database.transaction() as connection, Database(store_url, busy_seconds=0.2) as other:
        database.take_numbers(connection, "held", 1)
        started = time.perf_counter()
        with pytest.raises(StoreBusyError, match=r"raise store\.busy_seconds"):
            take(other, "held", 1)
        assert 0.1 < time.perf_counter() - started < 5
    assert take(database, "held", 1) == [2]


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    with Database(tmp_path / "store.db") as database:
        migrate(database)
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert {"store.db", "store.db-wal"} <= modes.keys()


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_and_not_changed(
    tmp_path: Path, journal: str
) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute("CREATE TABLE schema_versions (version INTEGER)")
        connection.execute("INSERT INTO schema_versions VALUES (3)")
        connection.commit()
    before = path.read_bytes()
    with Database(path) as database, pytest.raises(ForeignStoreError, match="schema_versions"):
        migrate(database)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with Database(path) as database, pytest.raises(ForeignStoreError, match="empty"):
        migrate(database)
    assert [(one, one.stat().st_size) for one in tmp_path.iterdir()] == [(path, 0)]


@pytest.mark.parametrize("version", [1, 6])
def test_stores_of_earlier_versions_are_recognised_by_their_tables(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "store.db"
    with Database(path) as database:
        migrate(database, upto=version)
        database.connection.execute("PRAGMA application_id=0")
    with Database(path) as database:
        assert migrate(database) == version
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cret@127.0.0.1:1/x",
        "postgresql://u@127.0.0.1:1/x?password=s3cret&sslpassword=s3cret",
        "postgresql://u:s3cret@127.0.0.1:abc/x",
        "postgresql://u:s3cret@[::1/x",
        "mysql://u:s3cret@h/x",
    ],
)
def test_no_error_shows_a_password(url: str) -> None:
    with pytest.raises(LPFError) as caught:
        migrate(Database(url))
    assert "s3cret" not in str(caught.value)
