"""Retrieval from a real store of each kind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from made_up import AS_OF, NOW, WIDTH, Filled, MadeUpReader

from lpf.errors import ConfigError, EvidenceError
from lpf.factors.keys import stored_keys
from lpf.index import EvidenceIndex
from lpf.index import features as candidates
from lpf.items import Items
from lpf.reading.pair import PairReader, text_part
from lpf.reading.reader import Reader
from lpf.storage.database import Database
from lpf.storage.migrations import migrate

DAY = timedelta(days=1)


def index_of(filled: Filled, reader: Reader | None = None, **settings) -> EvidenceIndex:
    reader = reader or MadeUpReader()
    return EvidenceIndex(filled.store, reader.reader_id, reader.width, lambda: reader, **settings)


def ask(index: EvidenceIndex, **changes) -> Items:
    asked = {"top_k": 5, "min_credibility": 0.5, "as_of": AS_OF, **changes}
    return index.retrieve("E", "p", **asked)


def test_items_come_best_first_with_all_their_fields(filled: Filled) -> None:
    reader = MadeUpReader()
    filled.add("old", reader=reader, credibility=0.8, timestamp=NOW - 365 * DAY, source="x")
    filled.add("new", reader=reader, credibility=0.8, timestamp=NOW, source="y")
    filled.add("vague", reader=reader, source="x")
    filled.add("elsewhere", reader=reader, entity_id="F")
    found = ask(index_of(filled))
    assert found.ids == ("new", "old", "vague")
    assert found.scores == pytest.approx([0.88, 0.68, 0.5])
    assert found.credibility == pytest.approx([0.8, 0.8, np.nan], nan_ok=True)
    assert found.sources.tolist() == [0, 1, 1]
    assert found.groups.tolist() == [-1, -1, -1]
    texts = [f"text of {name}" for name in found.ids]
    assert np.array_equal(found.features, reader.read_many(texts))
    stored = [filled.store.get(name) for name in found.ids]
    assert found.commitments == tuple(item.commitment for item in stored)
    assert found.content_keys == tuple(item.content_key for item in stored)
    assert np.array_equal(found.keys, stored_keys(found.content_keys, reader.reader_id))
    assert (found.considered, found.below_credibility, found.cut) == (3, 0, 0)


def test_items_below_min_credibility_are_left_out(filled: Filled) -> None:
    reader = MadeUpReader()
    filled.add("at", reader=reader, credibility=0.5)
    filled.add("below", reader=reader, credibility=0.49)
    filled.add("unknown", reader=reader)
    found = ask(index_of(filled))
    assert set(found.ids) == {"at", "unknown"}
    assert (found.considered, found.below_credibility) == (3, 1)


def test_items_dated_after_as_of_are_left_out(filled: Filled) -> None:
    reader = MadeUpReader()
    filled.add("later", reader=reader, timestamp=NOW + DAY)
    found = ask(index_of(filled))
    assert len(found) == 0
    assert found.features.shape == (0, WIDTH)
    assert (found.considered, found.dated_later) == (1, 1)


def test_copies_do_not_crowd_out_independent_items(filled: Filled) -> None:
    reader = MadeUpReader()
    for number in range(4):
        filled.add(f"copy{number}", reader=reader, credibility=0.9, text_content="the same words")
    filled.add("other", "another", reader=reader, credibility=0.6)
    found = ask(index_of(filled), top_k=4)
    assert found.ids == ("copy0", "copy1", "another", "other")
    assert found.groups.tolist() == [0, 0, -1, -1]
    assert found.cut == 2
    assert ask(index_of(filled), top_k=3).groups.tolist() == [-1, -1, -1]


def test_items_of_one_report_are_copies(filled: Filled) -> None:
    reader = MadeUpReader()
    filled.add("a", "b", reader=reader, report_id="r1")
    filled.add("c", reader=reader, report_id="r2")
    assert ask(index_of(filled)).groups.tolist() == [0, 0, -1]


def test_nearly_equal_vectors_are_copies_unless_turned_off(filled: Filled) -> None:
    near = np.eye(2, WIDTH)
    near[1] = [0.99, np.sqrt(1 - 0.99**2), *[0] * (WIDTH - 2)]
    filled.add("a", "b", vectors=near)
    assert ask(index_of(filled)).groups.tolist() == [0, 0]
    assert ask(index_of(filled, copy_similarity=None)).groups.tolist() == [-1, -1]
    assert ask(index_of(filled, copy_similarity=0.995)).groups.tolist() == [-1, -1]


def test_a_query_text_ranks_by_relevance(filled: Filled) -> None:
    reader = MadeUpReader()
    filled.add("a", "b", "c", reader=reader, credibility=0.9)
    index = index_of(filled, reader)
    found = ask(index, query_vector=index.query_vector("text of b"))
    assert found.ids[0] == "b"
    assert found.scores[0] == pytest.approx(0.5 * 1 + 0.3 * 0.9 + 0.2 * 0.5)


def test_the_order_of_ingestion_does_not_matter(tmp_path: Path) -> None:
    """Not even in the last bit, and not where all scores are equal."""
    answers = []
    for number, order in enumerate(permutations(["a", "b", "c", "d"])):
        with Database(tmp_path / f"{number}.db") as database:
            migrate(database)
            filled = Filled(database)
            for name in order:
                filled.add(name, reader=MadeUpReader(), credibility=0.7, timestamp=NOW)
            index = index_of(filled)
            query = index.query_vector("text of c")
            found, relevant = ask(index, top_k=3), ask(index, query_vector=query)
        assert found.ids == ("a", "b", "c")
        answers.append((relevant.ids, relevant.scores.tobytes(), relevant.features.tobytes()))
    assert len(set(answers)) == 1


def test_the_reader_is_opened_only_when_it_is_needed(
    filled: Filled, never_opened: Callable[[], Reader]
) -> None:
    filled.add("a", reader=MadeUpReader())
    index = EvidenceIndex(filled.store, "made-up", WIDTH, never_opened)
    assert ask(index).ids == ("a",)


def test_items_read_by_another_reader_are_read_once_and_stored(filled: Filled) -> None:
    filled.add("a", "b", reader=MadeUpReader())
    filled.add("c")
    newer = MadeUpReader("newer", width=6)
    found = ask(index_of(filled, newer))
    assert found.ids == ("a", "b", "c")
    assert np.array_equal(found.features, newer.read_many([f"text of {name}" for name in "abc"]))
    again = MadeUpReader("newer", width=6)
    assert np.array_equal(ask(index_of(filled, again)).features, found.features)
    assert again.texts_read == 0


def test_all_missing_features_can_be_read_in_one_call(filled: Filled) -> None:
    filled.add("a", "b", "c", reader=MadeUpReader())
    source, steps = index_of(filled, MadeUpReader("newer", width=6)).source, []
    assert source.read_missing(lambda done, total: steps.append((done, total))) == 3
    assert steps == [(3, 3)]
    assert source.read_missing() == 0


def test_an_item_erased_while_it_was_to_be_read_is_left_out(filled: Filled) -> None:
    filled.add("a", "b")
    index = index_of(filled)
    rows, _ = filled.store.candidates("E", "p", index.source.number)
    filled.store.erase("a")
    assert [row[candidates.EVIDENCE_ID] for row in index.source.completed(rows, [])] == ["b"]


def test_candidate_columns_match_the_statement(filled: Filled) -> None:
    given = {"credibility": 0.7, "timestamp": NOW, "source": "x", "report_id": "r"}
    filled.add("a", reader=MadeUpReader(), **given)
    index = index_of(filled)
    (row,), _ = filled.store.candidates("E", "p", index.source.number)
    kept = filled.store.get("a")
    assert (row[candidates.ROW_ID], row[candidates.EVIDENCE_ID]) == (kept.row_id, "a")
    assert (row[candidates.CREDIBILITY], row[candidates.TIMESTAMP]) == (0.7, AS_OF)
    assert (row[candidates.SOURCE], row[candidates.REPORT_ID]) == ("x", "r")
    assert row[candidates.CONTENT_KEY] == kept.content_key
    assert row[candidates.COMMITMENT] == kept.commitment
    assert not row[candidates.HAS_CLAIM]
    assert row[candidates.VECTOR] == MadeUpReader().read("text of a").tobytes()


def test_an_item_the_reader_cannot_read_is_named(filled: Filled) -> None:
    filled.add("sound", claim="the claim")
    filled.add("empty-claim", claim=" ")
    with pytest.raises(EvidenceError, match="'empty-claim'") as refused:
        ask(index_of(filled, PairReader(MadeUpReader())))
    assert "sound" not in str(refused.value)
    assert "its claim is empty" in str(refused.value)
    assert "lpf evidence erase" in (refused.value.hint or "")


def test_a_reader_with_another_id_is_refused(filled: Filled) -> None:
    index = EvidenceIndex(filled.store, "promised", WIDTH, MadeUpReader)
    with pytest.raises(ConfigError, match="made-up of width 8 was opened") as refused:
        index.query_vector("anything")
    assert "lpf models use" in (refused.value.hint or "")


def test_a_query_vector_of_another_width_is_refused(filled: Filled) -> None:
    filled.add("a", reader=MadeUpReader())
    with pytest.raises(EvidenceError, match="must be 8 finite numbers"):
        ask(index_of(filled), query_vector=np.zeros(3, np.float32))


def test_with_claims_texts_are_compared_by_their_own_part(filled: Filled) -> None:
    """Two texts read against one claim share most features, and yet are no copies."""
    inner = MadeUpReader()
    pair = PairReader(inner)
    filled.add("a", "b", reader=pair, claim="the claim")
    filled.add("c", reader=pair, claim="another claim", text_content="text of a")
    index = index_of(filled, pair, text_part=text_part(pair.reader_id, pair.width))
    query = index.query_vector("text of b")
    assert np.allclose(query, inner.read("text of b"))
    found = ask(index, query_vector=query)
    assert found.ids[0] == "b"
    assert found.features.shape == (3, 4 * WIDTH)
    assert dict(zip(found.ids, found.groups.tolist(), strict=True)) == {"a": 0, "c": 0, "b": -1}
