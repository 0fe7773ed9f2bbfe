"""When the store says that its evidence changed, and what is remembered until then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from lpf.schema import Predicate, Schema
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore, NewEvidence
from lpf.storage.facts import FactStore, NewFact
from lpf.storage.migrations import migrate
from lpf.storage.remembered import Remembered
from lpf.types import Evidence

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


def test_every_change_of_evidence_moves_the_version(store: EvidenceStore) -> None:
    reader, versions = store.reader_number("r", 2), [store.version()]
    add(store, "a", read=False)
    versions.append(store.version())
    store.put_features(reader, [1], np.ones((1, 2), np.float32))
    versions.append(store.version())
    store.erase("a")
    versions.append(store.version())
    assert all(earlier < later for earlier, later in pairwise(versions))


@pytest.mark.parametrize("change", CHANGES_BY_HAND)
def test_so_does_a_change_past_this_package(
    store: EvidenceStore, store_url: str, change: str
) -> None:
    add(store, "a")
    before = store.version()
    with Database(store_url) as another, another.writing() as connection:
        connection.execute(change)
    assert store.version() != before


def test_facts_and_failed_transactions_leave_it(store: EvidenceStore) -> None:
    add(store, "a")
    before = store.version()
    FactStore(store.database, SCHEMA).add(
        [NewFact("E", "level", "high", datetime(2026, 1, 1, tzinfo=UTC))]
    )
    with suppress(KeyError), store.database.writing() as connection:
        connection.execute(CHANGES_BY_HAND[0])
        assert store.version() is None, "what is read here may never come to be"
        raise KeyError
    assert store.version() == before


def test_values_are_kept_for_one_version() -> None:
    memory: Remembered[str, int] = Remembered(2)
    assert memory.get(1, "a") is None
    memory.put(1, "a", 5)
    assert memory.get(1, "a") == 5
    assert memory.get(2, "a") is None
    assert memory.get(1, "a") is None, "an earlier version brings nothing back"


def test_what_came_first_makes_room() -> None:
    memory: Remembered[str, int] = Remembered(2)
    memory.get(1, "a")
    for number, name in enumerate("abc"):
        memory.put(1, name, number)
    assert [memory.get(1, name) for name in "abc"] == [None, 1, 2]


def test_what_was_read_before_a_change_is_not_taken_after_it() -> None:
    memory: Remembered[str, int] = Remembered(2)
    memory.get(1, "a")
    memory.forget_before(2)
    memory.put(1, "a", 5)
    memory.put(None, "a", 5)
    assert memory.get(2, "a") is None
    assert memory.get(None, "a") is None


def test_an_erasure_empties_the_memories_of_its_process_at_once(store: EvidenceStore) -> None:
    add(store, "a")
    add(store, "b")
    memory: Remembered[str, object] = Remembered(2)
    store.forget_in(memory)
    version, kept = store.version(), object()
    memory.get(version, "x")
    memory.put(version, "x", kept)
    assert memory.get(version, "x") is kept
    store.erase("a")
    memory.put(version, "x", kept)
    assert kept not in memory._state[1].values()
