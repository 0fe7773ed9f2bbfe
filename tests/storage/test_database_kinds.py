"""Behaviour of Database that is specific to PostgreSQL or SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_database import NAMES, names, put, put_and

from lpf.errors import ConfigError, StorageError, StoreUnavailableError
from lpf.storage.database import Database
from lpf.storage.migrations import migrate
from servers import PostgresServer

# PostgreSQL


@pytest.fixture
def remote(postgres: PostgresServer) -> Iterator[Database]:
    with Database(postgres.fresh_url(), busy_seconds=5) as opened:
        migrate(opened)
        yield opened


def test_a_server_restart_is_survived(remote: Database, postgres: PostgresServer) -> None:
    put(remote, "a")
    for use in (
        lambda: names(remote),
        lambda: put(remote, "b"),
        lambda: list(remote.stream(NAMES)),
    ):
        postgres.stop()
        postgres.start()
        use()
    assert names(remote) == ["a", "b"]


def test_a_stopped_server_is_reported_and_used_again_later(
    remote: Database, postgres: PostgresServer
) -> None:
    put(remote, "a")
    postgres.stop()
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                names(remote)
            with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                put(remote, "b")
    finally:
        postgres.start()
    put(remote, "c")
    assert names(remote) == ["a", "c"]


def end_session(database: Database) -> None:
    """Terminate the session from another one, as an administrator would."""
    number = database.connection.info.backend_pid
    with ThreadPoolExecutor(1) as other:
        ending = f"SELECT pg_terminate_backend({number}, 5000)"
        other.submit(lambda: database.connection.execute(ending).fetchone()).result()


def test_a_connection_lost_in_a_transaction_rolls_back(remote: Database) -> None:
    def lose_connection() -> None:
        end_session(remote)
        names(remote)

    with pytest.raises(StoreUnavailableError, match="Nothing was written"):
        put_and(remote, "a", 1, lose_connection)
    assert names(remote) == []
    put(remote, "b")


def test_a_connection_lost_during_a_commit_is_reported_as_unknown(remote: Database) -> None:
    with pytest.raises(StoreUnavailableError, match="check which before repeating"):
        put_and(remote, "a", 1, lambda: end_session(remote))
    put(remote, "b")


def test_the_url_may_contain_options(postgres: PostgresServer) -> None:
    url = f"{postgres.fresh_url()}&options=-c%20statement_timeout%3D1234"
    with Database(url, busy_seconds=3) as database:
        shown = [
            database.connection.execute(f"SHOW {name}").fetchone()[0]
            for name in ("statement_timeout", "lock_timeout")
        ]
    assert shown == ["1234ms", "3s"]


@pytest.mark.parametrize("value", ["no number", 2**70])
def test_an_invalid_value_is_not_reported_as_an_outage(remote: Database, value: Any) -> None:
    connection = remote.connection
    with pytest.raises(StorageError) as caught:
        put(remote, "a", value)
    assert not isinstance(caught.value, StoreUnavailableError)
    with pytest.raises(StorageError, match="NUL") as caught:
        put(remote, "a zero \0 byte")
    assert not isinstance(caught.value, StoreUnavailableError)
    assert remote.connection is connection


# SQLite


def test_the_pragmas_are_in_force_on_every_connection(tmp_path: Path) -> None:
    def in_force(_: int) -> list[object]:
        asked = ("journal_mode", "synchronous", "secure_delete", "foreign_keys", "mmap_size")
        return [database.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in asked]

    with Database(tmp_path / "store.db") as database, ThreadPoolExecutor(2) as pool:
        assert list(pool.map(in_force, range(2))) == [["wal", 2, 1, 1, 0]] * 2


def test_erased_bytes_are_gone_from_the_files(tmp_path: Path) -> None:
    with Database(tmp_path / "store.db") as database:
        migrate(database)
        put(database, "to be erased " * 50)
        with database.transaction() as connection:
            connection.execute("DELETE FROM counters")
    assert all(b"to be erased" not in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    "url", ["store.db", "sqlite://", "sqlite:///:memory:", "mysql://user:secret@host/name", "::"]
)
def test_other_store_urls_are_rejected(url: str) -> None:
    """An in-memory SQLite would be a separate store in each thread."""
    with pytest.raises(ConfigError, match=r"store\.url: must be") as caught:
        Database(url)
    assert "secret" not in str(caught.value)
