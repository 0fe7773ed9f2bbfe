"""Entity IDs similar to an unknown one."""

from __future__ import annotations

from datetime import UTC, datetime
from time import perf_counter

import pytest
from made_up import Filled

from lpf.index.near_names import near_names, similar_entities
from lpf.schema import Predicate, Schema
from lpf.storage.facts import FactStore, NewFact


def give(filled: Filled, *entities: str, items: int = 1) -> None:
    for entity in entities:
        names = [f"{entity} {number}" for number in range(items)]
        filled.add(*names, entity_id=entity)


def give_fact(filled: Filled, entity: str) -> None:
    store = FactStore(filled.store.database, Schema((Predicate("p", ("low", "high")),)))
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    store.add([NewFact(entity, "p", "low", moment, 1.0, None, where="here")])


def test_an_entity_with_an_item_or_a_fact_is_known(filled: Filled) -> None:
    give(filled, "B001")
    give_fact(filled, "B002")
    database = filled.store.database
    similar = similar_entities(database, ["B001", "B003", "B002"])
    assert list(similar) == ["B003"]
    assert {"B001", "B002"} <= set(similar["B003"])
    assert near_names(database, "B003") == ["B001", "B002"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("B0O17", "B0017"),  # a letter for a digit
        ("b0017", "B0017"),
        ("B017", "B0017"),
        ("B00017", "B0017"),
        ("B0107", "B0017"),  # two digits swapped
        ("A0017", "B0017"),
        ("B0999 ", "B0999"),
        ("acme ltd", "Acme Ltd"),
        ("Acme Ltd", "Acme Ltd."),
        ("Globex", "Globex Corporation"),
    ],
)
def test_the_most_similar_id_comes_first(filled: Filled, typed: str, expected: str) -> None:
    give(filled, *(f"B{number:04d}" for number in (17, 107, 512, 999)))
    if expected not in ("B0017", "B0999"):
        give(filled, expected)
    assert near_names(filled.store.database, typed)[0] == expected


def test_dissimilar_ids_are_not_returned(filled: Filled) -> None:
    assert near_names(filled.store.database, "B001") == []
    give(filled, "B001", "Acme", "Zeta")
    assert near_names(filled.store.database, "Quux 9") == []
    assert near_names(filled.store.database, "Q" * 500) == []


def test_at_most_three_ids_are_returned(filled: Filled) -> None:
    give(filled, *(f"B{number:03d}" for number in range(30)))
    assert near_names(filled.store.database, "B0O1") == ["B001", "B010", "B011"]


def test_an_entity_with_many_items_does_not_hide_others(small: Filled) -> None:
    give(small, "B0015", items=3000)
    give(small, "B0017")
    started = perf_counter()
    assert near_names(small.store.database, "B0O17") == ["B0017"]
    assert perf_counter() - started < 1.0
