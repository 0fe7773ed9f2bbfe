"""Cached results of an index equal fresh lookups."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from datetime import timedelta

import numpy as np
import pytest
from made_up import AS_OF, NOW, Filled, MadeUpReader

from lpf.index import EvidenceIndex
from lpf.items import Items
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore

DAY = timedelta(days=1)
MICROS_PER_DAY = 86_400_000_000


def index_of(filled: Filled) -> EvidenceIndex:
    reader = MadeUpReader()
    return EvidenceIndex(filled.store, reader.reader_id, reader.width, lambda: reader)


def ask(index: EvidenceIndex, **changes: object) -> Items:
    asked = {"top_k": 3, "min_credibility": 0.5, "as_of": AS_OF, **changes}
    return index.retrieve("E", "p", **asked)


def same(one: Items, other: Items) -> bool:
    names = [field.name for field in fields(Items)]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def add_some(filled: Filled) -> None:
    """Items that overtake each other as time goes by, copies, and one that is dated later."""
    reader = MadeUpReader()
    filled.add("new", reader=reader, credibility=0.6, timestamp=NOW)
    filled.add("old", reader=reader, credibility=0.7, timestamp=NOW - 200 * DAY)
    filled.add("older", reader=reader, credibility=0.9, timestamp=NOW - 900 * DAY)
    filled.add(
        "one", "two", reader=reader, credibility=0.8, timestamp=NOW - 50 * DAY, report_id="r"
    )
    filled.add("later", reader=reader, credibility=0.9, timestamp=NOW + 20 * DAY)
    filled.add("unsure", reader=reader, credibility=0.2, timestamp=NOW)


def test_cached_results_always_equal_a_fresh_lookup(filled: Filled) -> None:
    add_some(filled)
    index, found = index_of(filled), set()
    for days in (0, 1, 19, 20, 21, 400, 3000, 0, -100, -1000, 0):
        for top_k in (1, 3, 10):
            for least in (0.0, 0.5):
                asked = {
                    "as_of": AS_OF + days * MICROS_PER_DAY,
                    "top_k": top_k,
                    "min_credibility": least,
                }
                answer = ask(index, **asked)
                assert same(answer, ask(index_of(filled), **asked)), asked
                found.add(answer.ids)
    assert len(found) > 8, "time must have changed the order"


def test_the_same_items_share_arrays_that_cannot_be_written_to(filled: Filled) -> None:
    add_some(filled)
    index = index_of(filled)
    first, again = ask(index), ask(index, as_of=AS_OF + 1)
    assert again.features is first.features
    assert not np.array_equal(again.scores, first.scores)
    for name in ("features", "credibility", "groups", "sources"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(first, name)[0] = 0
    first.weight = first.scores
    assert ask(index).weight is not first.scores, "what an answer adds is its own"
    assert ask(index, as_of=AS_OF + 3000 * MICROS_PER_DAY).features is not first.features


def test_a_query_text_changes_the_ranking(filled: Filled) -> None:
    add_some(filled)
    index = index_of(filled)
    plain = ask(index)
    query = MadeUpReader().read("text of older")
    assert same(ask(index, query_vector=query), ask(index_of(filled), query_vector=query))
    assert same(ask(index), plain)


def test_changes_by_other_processes_count_at_once(filled: Filled, store_url: str) -> None:
    add_some(filled)
    index = index_of(filled)
    ask(index)
    with Database(store_url) as another:
        elsewhere = Filled(another)
        elsewhere.add("fresh", reader=MadeUpReader(), credibility=1.0, timestamp=NOW)
        assert ask(index).ids[0] == "fresh"
        EvidenceStore(another).erase("fresh")
        assert same(ask(index), ask(index_of(filled)))
        assert "fresh" not in ask(index).ids


def test_direct_changes_of_the_store_count_at_once(filled: Filled) -> None:
    add_some(filled)
    index = index_of(filled)
    assert "new" in ask(index).ids
    with filled.store.database.transaction() as connection:
        connection.execute("UPDATE evidence SET credibility = 0.1 WHERE evidence_id = 'new'")
    assert "new" not in ask(index).ids


def test_nothing_is_cached_inside_a_transaction(filled: Filled) -> None:
    add_some(filled)
    index = index_of(filled)
    with suppress(KeyError), filled.store.database.transaction() as connection:
        connection.execute("UPDATE evidence SET credibility = 0.1 WHERE evidence_id = 'new'")
        assert "new" not in ask(index).ids
        raise KeyError
    assert "new" in ask(index).ids


def test_an_erasure_leaves_nothing_of_the_item_in_memory(filled: Filled) -> None:
    add_some(filled)
    index = index_of(filled)
    ask(index)
    assert index._cached._state[1]
    filled.store.erase("one")
    assert not index._cached._state[1]
