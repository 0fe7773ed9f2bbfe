"""The fact store, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lpf.errors import FactError, StoreDamagedError
from lpf.schema import Predicate, Schema
from lpf.storage.database import Database
from lpf.storage.facts import FactStore, NewFact
from lpf.storage.migrations import migrate
from lpf.storage.values import from_micros, to_micros

NOON = datetime(2026, 1, 25, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOW = to_micros(NOON + 24 * HOUR)
SCHEMA = Schema(
    (Predicate("level", ("low", "medium", "high")), Predicate("outcome", ("clean", "qualified")))
)


@pytest.fixture
def store(store_url: str) -> Iterator[FactStore]:
    with Database(store_url, busy_seconds=10.0) as database:
        migrate(database)
        yield FactStore(database, SCHEMA)


def fact(value: str = "low", moment: datetime = NOON, **fields: object) -> NewFact:
    known: dict = {"entity_id": "C1", "predicate": "level", **fields}
    return NewFact(value=value, timestamp=moment, **known)


def test_the_newest_fact_up_to_a_date_is_returned(store: FactStore) -> None:
    first, second = store.add([fact("low", source="audit"), fact("high", NOON + HOUR)], NOW)
    at_noon = to_micros(NOON)
    assert store.canonical("C1", "level", at_noon) == ("low", 1.0, at_noon, "audit", first.fact_id)
    assert store.canonical("C1", "level", at_noon - 1) is None
    later = store.canonical("C1", "level", NOW)
    assert later == ("high", 1.0, to_micros(NOON + HOUR), None, second.fact_id)
    assert store.canonical("C1", "outcome", NOW) is None


def test_with_equal_timestamps_the_fact_recorded_last_counts(store: FactStore) -> None:
    store.add([fact("low"), fact("high")], NOW)
    assert store.canonical("C1", "level", NOW)[0] == "high"
    assert [row[:2] for row in store.of_entity("C1", NOW)] == [("level", "high")]


def test_an_entity_has_one_newest_fact_per_predicate(store: FactStore) -> None:
    known = [fact("low"), fact("high", NOON + HOUR), fact("clean", predicate="outcome")]
    store.add([*known, fact("low", entity_id="C2")], NOW)
    assert [row[:2] for row in store.of_entity("C1", NOW)] == [
        ("level", "high"),
        ("outcome", "clean"),
    ]
    assert [row[1] for row in store.of_entity("C1", to_micros(NOON))] == ["low", "clean"]


def test_a_fact_in_the_store_is_not_added_again(store: FactStore) -> None:
    assert len(store.add([fact(), fact(), fact(confidence=0.5)], NOW)) == 2
    assert store.add([fact(), fact(confidence=0.5)], NOW + 1) == []
    assert [added.source for added in store.add([fact(), fact(source="audit")], NOW)] == ["audit"]
    assert store.count() == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"predicate": "size"}, r"predicate: .*'size'.* \(facts\[1\]\)"),
        ({"value": "huge"}, r"value: 'huge'.*'level'.* \(facts\[1\]\)"),
        ({"confidence": 1.5}, r"confidence: .* got 1.5"),
        ({"confidence": float("nan")}, r"confidence: .* got nan"),
        ({"confidence": "sure"}, r"confidence: .* got 'sure'"),
        ({"moment": NOON.replace(tzinfo=None)}, r"timestamp: .* time zone"),
        ({"moment": from_micros(NOW) + timedelta(minutes=6)}, r"timestamp: .* future"),
        ({"moment": NOON.replace(year=205)}, r"timestamp: .* 1900.*got '0205-01"),
        ({"entity_id": " "}, r"entity_id: is empty"),
        ({"entity_id": ""}, r"entity_id: is empty"),
        ({"entity_id": " C4 "}, r"entity_id: .* whitespace: ' C4 '"),
        ({"predicate": "level "}, r"predicate: .* whitespace: 'level '"),
        ({"value": "low\n"}, r"value: .* whitespace"),
        ({"source": "\u00a0audit"}, r"source: .* whitespace"),
        ({"entity_id": "x" * 8000}, r"entity_id: is 8000 bytes long; at most 500"),
        ({"source": "é" * 300}, r"source: is 600 bytes long; at most 512"),
        ({"entity_id": "a\0b"}, r"entity_id: .* NUL"),
        ({"source": "\ud800"}, r"source: is not valid Unicode"),
        ({"value": "huge", "where": "facts.csv, line 7"}, r"value: .*\(facts.csv, line 7\)"),
    ],
)
def test_no_fact_is_added_if_one_is_invalid(store: FactStore, wrong: dict, message: str) -> None:
    with pytest.raises(FactError, match=message) as caught:
        store.add([fact(), fact(**wrong)], NOW)
    assert "No fact was added" in str(caught.value)
    assert store.count() == 0


def test_a_timestamp_slightly_in_the_future_is_accepted(store: FactStore) -> None:
    assert store.add([fact(moment=from_micros(NOW) + timedelta(minutes=4))], NOW)


def test_a_correction_supersedes_a_fact_for_every_date(store: FactStore) -> None:
    (old,) = store.add([fact("low", source="audit")], NOW)
    new = store.correct(old.fact_id, value="high", confidence=0.75, now=NOW + 5)
    assert (new.value, new.confidence, new.source, new.timestamp) == ("high", 0.75, "audit", NOON)
    assert store.canonical("C1", "level", NOW)[0] == "high"
    assert store.canonical("C1", "level", to_micros(NOON))[4] == new.fact_id
    history = store.history("C1")
    assert [kept.value for kept in history] == ["low", "high"]
    assert history[0].superseded_by == new.fact_id
    assert history[0].superseded_at == from_micros(NOW + 5) == new.recorded_at
    assert store.page() == [new]
    assert store.page(superseded=True) == history


def test_a_fact_corrected_to_a_later_date_does_not_count_before_it(store: FactStore) -> None:
    (old,) = store.add([fact()], NOW)
    store.correct(old.fact_id, timestamp=NOON + HOUR, now=NOW)
    assert store.canonical("C1", "level", to_micros(NOON)) is None


def test_a_withdrawn_fact_does_not_count_and_is_not_added_again(store: FactStore) -> None:
    older, newer = store.add([fact("low"), fact("high", NOON + HOUR)], NOW)
    gone = store.withdraw(newer.fact_id, NOW)
    assert (gone.superseded_at, gone.superseded_by) == (from_micros(NOW), None)
    assert store.canonical("C1", "level", NOW)[4] == older.fact_id
    assert store.add([fact("high", NOON + HOUR)], NOW) == []


def test_a_superseded_fact_cannot_be_corrected(store: FactStore) -> None:
    (old,) = store.add([fact()], NOW)
    new = store.correct(old.fact_id, value="high", now=NOW)
    with pytest.raises(FactError, match=rf"was superseded by {new.fact_id} at 2026-01-26T"):
        store.correct(old.fact_id, value="medium", now=NOW)
    with pytest.raises(FactError, match="was superseded"):
        store.withdraw(old.fact_id)
    store.withdraw(new.fact_id)
    with pytest.raises(FactError, match="was withdrawn"):
        store.correct(new.fact_id, value="low", now=NOW)
    with pytest.raises(FactError, match="fact 99 is not in the store"):
        store.withdraw(99)


@pytest.mark.parametrize("changes", [{}, {"value": "low"}, {"value": "huge"}, {"confidence": 2.0}])
def test_a_correction_must_change_the_fact_to_a_valid_one(store: FactStore, changes: dict) -> None:
    (old,) = store.add([fact()], NOW)
    with pytest.raises(FactError, match=rf"fact {old.fact_id}\b"):
        store.correct(old.fact_id, now=NOW, **changes)
    assert store.history("C1") == [old]


def test_pages_follow_one_another(store: FactStore) -> None:
    added = store.add([fact(entity_id=f"C{n % 2}", moment=NOON + n * HOUR) for n in range(6)], NOW)
    first = store.page(limit=4)
    assert first + store.page(limit=4, after_fact=first[-1].fact_id) == added
    assert store.page(entity_id="C1", predicate="level") == added[1::2]
    assert store.history("C1", "outcome") == []


def test_table_has_the_newest_confident_values_of_each_entity(store: FactStore) -> None:
    store.add(
        [
            fact("low"),
            fact("high", NOON + HOUR, confidence=0.4),
            fact("clean", predicate="outcome"),
            fact("medium", entity_id="C2", confidence=0.9),
            fact("medium", entity_id="C3", confidence=0.1),
        ],
        NOW,
    )
    assert dict(store.table(0.9, NOW)) == {"C1": {"outcome": "clean"}, "C2": {"level": "medium"}}
    everything = dict(store.table(as_of=NOW))
    assert everything["C1"] == {"level": "high", "outcome": "clean"}
    assert len(everything) == 3


@pytest.mark.parametrize(
    "change",
    [
        "value = 'high'",
        "confidence = 0.2",
        "timestamp = timestamp + 1000000000000000",
        "superseded_at = 5",
        "seal = ''",
    ],
)
def test_a_changed_fact_is_refused_until_it_is_withdrawn(store: FactStore, change: str) -> None:
    store.add([fact("low"), fact("high", entity_id="C2")], NOW)
    store.database.connection.execute(f"UPDATE facts SET {change} WHERE fact_id = 1")
    for look in (
        lambda: store.canonical("C1", "level", NOW),
        lambda: store.of_entity("C1", NOW),
        lambda: store.history("C1"),
        lambda: list(store.table(as_of=NOW)),
    ):
        with pytest.raises(StoreDamagedError, match="1"):
            look()
    assert store.damaged() == [1]
    assert store.canonical("C2", "level", NOW) is not None
    assert store.withdraw(1, NOW) is None
    assert store.damaged() == []
    assert store.canonical("C1", "level", NOW) is None
    assert [one.fact_id for one in store.page(superseded=True)] == [2]
    with pytest.raises(FactError):
        store.withdraw(1, NOW)
    (again,) = store.add([fact("low")], NOW)
    assert store.canonical("C1", "level", NOW)[4] == again.fact_id
