"""The table of contents: what it finds, how it follows the ledger, and what cannot break it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledgers import created, execute, opened

from lpf.ledger import Draft, canonical, reference
from lpf.ledger.contents import ANSWER, UNREADABLE, LedgerContents, _row_of
from lpf.storage.database import Database
from lpf.storage.values import to_micros

CONTEXT = canonical({"mode": "robust"})
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def answer(entity_id: str, predicate: str = "level", **fields: object) -> Draft:
    content = {
        "entity_id": entity_id,
        "predicate": predicate,
        "method": "spn",
        "top_value": "high",
        "confidence": 0.75,
        "timestamp": "2026-03-01T12:00:00.000000Z",
        "context": reference(CONTEXT),
        **fields,
    }
    return Draft(content, (CONTEXT,))


def review(entity_id: str, about: str) -> Draft:
    fields = {"kind": "review", "entity_id": entity_id, "predicate": "level", "about": about}
    return Draft({**fields, "timestamp": "2026-03-02T12:00:00.000000Z"})


def test_records_are_found_by_what_they_are_about(store_url: str) -> None:
    with opened(store_url) as (database, ledger):
        contents = LedgerContents(database)
        assert list(contents.newest_about("level")) == []
        ledger.append_many([answer("A"), answer("B", "size"), answer("A", top_value="low")])
        ledger.append_many(
            [review("A", "INF00000003"), answer("B", method="prior"), answer("Ä' --")]
        )
        newest = {
            (one.entity_id, one.predicate): one for one in contents.newest_of(["A", "B", "?"])
        }
        assert {question: one.seq for question, one in newest.items()} == {
            ("A", "level"): 3,
            ("B", "size"): 2,
            ("B", "level"): 5,
        }
        last = newest["A", "level"]
        assert (last.kind, last.value, last.confidence) == (ANSWER, "low", 0.75)
        assert last.timestamp == to_micros(NOON)
        assert last.context is not None
        assert last.context.hex() == reference(CONTEXT)["blob"]
        assert newest["B", "level"].value is None
        assert [one.seq for one in contents.newest_about("level")] == [3, 5, 6]
        assert [one.seq for one in contents.history("A", "level")] == [1, 3, 4]
        assert [one.seq for one in contents.history("A", "level", after=3)] == [4]
        assert [one.seq for one in contents.of_kind("review", "level")] == [4]
        assert [one.seq for one in contents.of_kind(ANSWER, "level", after=1)] == [3, 5, 6]
        (about,) = contents.about([1, 3])
        assert (about.record_id, about.about, about.value) == ("INF00000004", 3, None)


def test_it_follows_the_ledger_and_can_be_made_again(store_url: str) -> None:
    with opened(store_url) as (database, ledger):
        contents, other = LedgerContents(database), LedgerContents(database)
        ledger.append_many([answer(f"E{number}") for number in range(5)])
        assert contents.update() == 5
        assert other.update() == 0
        ledger.append(answer("E0"))
        assert [one.seq for one in other.history("E0", "level")] == [1, 6]
        before = list(contents.of_kind(ANSWER, "level"))
        execute(database, "DELETE FROM ledger_contents")
        assert contents.rebuild() == 6
        assert list(contents.of_kind(ANSWER, "level")) == before


def test_a_ledger_that_was_put_back_shorter_is_listed_again(store_url: str) -> None:
    with opened(store_url) as (database, ledger):
        contents = LedgerContents(database)
        ledger.append_many([answer("A"), answer("A"), answer("B")])
        contents.update()
    with Database(store_url) as database:
        execute(database, "DELETE FROM ledger WHERE seq = 3")
        assert [one.seq for one in LedgerContents(database).newest_about("level")] == [2]


def test_rows_that_differ_from_their_records_are_found(store_url: str) -> None:
    with opened(store_url) as (database, ledger):
        contents = LedgerContents(database)
        ledger.append_many([answer("A"), answer("B"), answer("C")])
        assert list(contents.differences()) == []
        assert contents.update() == 3  # comparing lists nothing
        assert list(contents.differences()) == []
        execute(database, "UPDATE ledger_contents SET value = 'low' WHERE seq = 2")
        assert list(contents.differences()) == ["INF00000002"]
        contents.rebuild()
        execute(database, "DELETE FROM ledger_contents WHERE seq = 2")
        assert list(contents.differences()) == ["INF00000002"]
        contents.rebuild()
        assert list(contents.differences()) == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[1]",
        b"\xff\xfe",
        b"[" * 100_000,
        canonical({"entity_id": "A"}),
        canonical({"entity_id": 7, "predicate": "level", "timestamp": "2026-03-01"}),
        b'{"entity_id":"A\\u0000","predicate":"level","timestamp":"2026-03-01T00:00:00+00:00"}',
        b'{"entity_id":"\\ud800","predicate":"level","timestamp":"2026-03-01T00:00:00+00:00"}',
        b'{"about":"INF0","entity_id":"A","predicate":"l","timestamp":"2026-03-01T00:00:00+00:00"}',
        "text",
        None,
    ],
)
def test_a_damaged_body_is_listed_as_unreadable(body: object) -> None:
    assert _row_of(4, body)[:2] == (4, UNREADABLE)


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_any_field_can_be_of_any_type(value: object) -> None:
    fields = {
        "entity_id": "A",
        "predicate": "level",
        "timestamp": "2026-03-01T12:00:00+00:00",
        "top_value": "high",
        "confidence": 0.5,
        "context": reference(CONTEXT),
    }
    for name in [*fields, "about", "kind", "method"]:
        row = _row_of(1, json.dumps({**fields, name: value}).encode())
        assert len(row) == 9


def test_an_empty_store_has_no_contents(store_url: str) -> None:
    with created(store_url) as database:
        assert LedgerContents(database).update() == 0
        assert list(LedgerContents(database).newest_of([])) == []
