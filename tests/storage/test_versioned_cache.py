"""The evidence version, and caches that are valid for one version."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lpf.errors import StorageError
from lpf.schema import Predicate, Schema
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore, NewEvidence
from lpf.storage.facts import FactStore, NewFact
from lpf.storage.migrations import migrate
from lpf.storage.versioned_cache import VersionedCache
from lpf.types import Evidence
from servers import PostgresServer

SCHEMA = Schema((Predicate("level", ("low", "high")),))
CHANGES_BY_HAND = (
    "UPDATE evidence SET credibility = 0.1 WHERE evidence_id = 'a'",
    "DELETE FROM evidence WHERE evidence_id = 'a'",
    "DELETE FROM features",
)


@pytest.fixture
def store(store_url: str) -> Iterator[EvidenceStore]:
    with Database(store_url) as database:
        migrate(database)
        yield EvidenceStore(database)


def add(store: EvidenceStore, name: str, read: bool = True) -> None:
    item = NewEvidence(Evidence(name, "E", "level", f"text {name}"), bytes(16), name.encode())
    reader = store.reader_number("r", 2) if read else None
    store.add([item], np.ones((1, 2), np.float32) if read else None, reader)


def test_every_change_of_evidence_changes_the_version(store: EvidenceStore) -> None:
    reader, versions = store.reader_number("r", 2), [store.version()]
    add(store, "a", read=False)
    versions.append(store.version())
    store.put_features(reader, [1], np.ones((1, 2), np.float32))
    versions.append(store.version())
    store.erase("a")
    versions.append(store.version())
    assert all(earlier < later for earlier, later in pairwise(versions))


@pytest.mark.parametrize("change", CHANGES_BY_HAND)
def test_a_change_by_another_program_changes_the_version(
    store: EvidenceStore, store_url: str, change: str
) -> None:
    add(store, "a")
    before = store.version()
    with Database(store_url) as another, another.transaction() as connection:
        connection.execute(change)
    assert store.version() != before


def test_facts_and_failed_transactions_do_not_change_the_version(store: EvidenceStore) -> None:
    add(store, "a")
    before = store.version()
    FactStore(store.database, SCHEMA).add(
        [NewFact("E", "level", "high", datetime(2026, 1, 1, tzinfo=UTC))]
    )
    with suppress(KeyError), store.database.transaction() as connection:
        connection.execute(CHANGES_BY_HAND[0])
        assert store.version() is None, "the change may be rolled back"
        raise KeyError
    assert store.version() == before


def test_values_are_cached_for_one_version() -> None:
    memory: VersionedCache[str, int] = VersionedCache(2)
    assert memory.get(1, "a") is None
    memory.put(1, "a", 5)
    assert memory.get(1, "a") == 5
    assert memory.get(2, "a") is None
    assert memory.get(1, "a") is None, "an earlier version brings nothing back"


def test_the_oldest_value_is_dropped_first() -> None:
    memory: VersionedCache[str, int] = VersionedCache(2)
    memory.get(1, "a")
    for number, name in enumerate("abc"):
        memory.put(1, name, number)
    assert [memory.get(1, name) for name in "abc"] == [None, 1, 2]


def test_values_read_before_a_change_are_not_stored_after_it() -> None:
    memory: VersionedCache[str, int] = VersionedCache(2)
    memory.get(1, "a")
    memory.forget_before(2)
    memory.put(1, "a", 5)
    memory.put(None, "a", 5)
    assert memory.get(2, "a") is None
    assert memory.get(None, "a") is None


def test_an_erasure_clears_registered_caches_at_once(store: EvidenceStore) -> None:
    add(store, "a")
    add(store, "b")
    memory: VersionedCache[str, object] = VersionedCache(2)
    store.register_cache(memory)
    version, kept = store.version(), object()
    memory.get(version, "x")
    memory.put(version, "x", kept)
    assert memory.get(version, "x") is kept
    store.erase("a")
    memory.put(version, "x", kept)
    assert kept not in memory._state[1].values()


def test_an_erasure_cannot_fail_after_its_commit(
    store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store becomes unavailable right after the commit."""
    add(store, "a")
    memory: VersionedCache[str, object] = VersionedCache(2)
    store.register_cache(memory)
    version = store.version()
    memory.get(version, "x")
    memory.put(version, "x", object())
    finish = store.database._finish

    def fails(*_: object) -> None:
        raise StorageError("nothing was written")

    def finish_and_fail(*arguments: object) -> None:
        finish(*arguments)  # type: ignore[arg-type]
        monkeypatch.setattr(store.database, "row", fails)

    monkeypatch.setattr(store.database, "_finish", finish_and_fail)
    assert store.erase("a")[0].evidence_id == "a"
    assert not memory._state[1]
    monkeypatch.undo()
    after = store.version()
    assert memory.get(after, "x") is None
    memory.put(after, "x", 1)
    assert memory.get(after, "x") == 1, "it knows the version that the erasure left"


def test_caches_can_be_registered_during_an_erasure(store: EvidenceStore) -> None:
    """Registration waits for the lock; otherwise the set could change during iteration."""
    with store._caches_lock:
        memory: VersionedCache[str, int] = VersionedCache(2)
        thread = threading.Thread(target=store.register_cache, args=(memory,))
        thread.start()
        thread.join(0.1)
        assert memory not in store._caches
    thread.join()
    assert memory in store._caches


def test_a_store_restored_from_a_backup_is_read_again() -> None:
    memory: VersionedCache[str, int] = VersionedCache(2)
    memory.get(5, "a")
    memory.put(5, "a", 1)
    assert memory.get(3, "a") is None
    assert memory.get(5, "a") is None, "the backup went other ways since"
    memory.get(3, "a")
    memory.put(3, "a", 2)
    assert memory.get(3, "a") == 2


def test_an_erasure_in_a_restored_store_clears_the_cache_too() -> None:
    memory: VersionedCache[str, int] = VersionedCache(2)
    memory.get(5, "a")
    memory.put(5, "a", 1)
    memory.forget_before(4)
    assert not memory._state[1]


def test_a_late_look_up_does_not_restore_erased_values() -> None:
    memory: VersionedCache[str, int] = VersionedCache(2)
    memory.get(1, "a")
    memory.forget_before(2)
    memory.get(1, "a")
    memory.put(1, "a", 5)
    assert not memory._state[1]
    memory.get(2, "a")
    memory.put(2, "a", 6)
    assert memory.get(2, "a") == 6


def in_a_fork(work: Callable[[], None]) -> int:
    """The exit code of a child that runs ``work``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from Python 3.12 a fork beside threads warns
        child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(10)  # a child that hangs must not block the test
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_wait_for_its_parents_threads(tmp_path: Path) -> None:
    memory: VersionedCache[str, int] = VersionedCache(2)
    with Database(tmp_path / "store.db") as database:
        store = EvidenceStore(database)

        def child() -> None:
            memory.get(1, "a")
            memory.put(1, "a", 5)
            store.register_cache(memory)

        with memory._lock, store._caches_lock:
            assert in_a_fork(child) == 0


def test_the_version_changes_whatever_the_search_path(postgres: PostgresServer) -> None:
    url = postgres.fresh_url()
    with Database(url) as database:
        migrate(database)
        store = EvidenceStore(database)
        add(store, "a")
        before = store.version()
        with Database(url) as another, another.transaction() as connection:
            connection.execute("CREATE SCHEMA elsewhere")
            connection.execute("CREATE TABLE elsewhere.evidence_version (version BIGINT)")
            connection.execute("SET LOCAL search_path = elsewhere")
            connection.execute("UPDATE public.evidence SET credibility = 0.1")
        assert store.version() != before
