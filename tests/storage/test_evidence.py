"""The evidence store, on both databases."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from lpf.errors import (
    ConfigError,
    EvidenceError,
    NonFiniteError,
    StoreDamagedError,
    UnknownEvidenceError,
)
from lpf.storage.database import Database
from lpf.storage.evidence import DamagedItem, EvidenceStore, NewEvidence, text_commitment
from lpf.storage.migrations import migrate
from lpf.storage.seals import FIELDS_CHANGED, TEXT_CHANGED, VECTOR_CHANGED
from lpf.storage.values import now_micros, to_micros
from lpf.types import Evidence

WIDTH = 4
NOON = datetime(2026, 1, 25, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def store(store_url: str) -> Iterator[EvidenceStore]:
    with Database(store_url, busy_seconds=10.0) as database:
        migrate(database)
        yield EvidenceStore(database)


@pytest.fixture
def reader(store: EvidenceStore) -> int:
    return store.reader_number("reader-a", WIDTH)


def item(evidence_id: str, text: str = "a text", **fields: object) -> NewEvidence:
    known: dict = {"entity_id": "C1", "predicate": "level", "text_content": text, **fields}
    content = hashlib.blake2b(repr(known).encode(), digest_size=16).digest()
    return NewEvidence(Evidence(evidence_id, **known), content, content)


def vectors(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32)


def test_added_items_are_returned_unchanged(store: EvidenceStore, reader: int) -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    full = item(
        "E1",
        "Zażółć 日本 \U0001f600 'quoted' \"text\"\n",
        credibility=0.25,
        timestamp=NOON.astimezone(zone),
        evidence_type="hybrid",
        source="audit",
        supports_value="low",
        claim="a claim",
        report_id="R7",
    )
    store.add([full, item("E2")], vectors(2), reader)
    found = store.get("E1")
    assert found.evidence == Evidence(
        **{name: getattr(full.evidence, name) for name in full.evidence.__slots__}
        | {"embedding_id": found.row_id}
    )
    assert (found.content_key, found.content_hash) == (full.content_key, full.content_hash)
    assert abs(found.ingested_at - now_micros()) < 60_000_000
    assert store.get("E2").evidence.timestamp is None
    assert store.count() == 2


def test_a_commitment_is_computed_as_documented() -> None:
    salt, text, claim = b"0123456789abcdef", "né", "c"
    by_hand = salt + (3).to_bytes(8, "big") + text.encode() + (1).to_bytes(8, "big") + b"c"
    assert text_commitment(salt, text, claim) == hashlib.sha256(by_hand).digest()
    without = salt + (3).to_bytes(8, "big") + text.encode() + b"\xff" * 8
    assert text_commitment(salt, text, None) == hashlib.sha256(without).digest()


def test_equal_texts_have_different_valid_commitments(store: EvidenceStore) -> None:
    store.add([item("E1"), item("E2")], None, None)
    first, second = store.get("E1"), store.get("E2")
    assert first.commitment != second.commitment
    for found in (first, second):
        assert len(found.salt) == 16
        assert found.commitment == text_commitment(found.salt, "a text", None)


def test_candidates_are_the_items_of_the_question_with_their_vectors(
    store: EvidenceStore, reader: int
) -> None:
    late = NOON + timedelta(microseconds=1)
    items = [
        item("E1", timestamp=NOON, credibility=0.5, source="s", report_id="r"),
        item("E2", timestamp=late),
        item("E3"),
        item("E4", entity_id="C2"),
        item("E5", predicate="outcome"),
    ]
    features = vectors(5)
    store.add(items, features, reader)
    rows, damaged = store.candidates("C1", "level", reader)
    assert damaged == ()
    assert [row[0] for row in rows] == ["E1", "E2", "E3"]
    stored = store.get("E1")
    assert rows[0][:5] == ("E1", "C1", "level", 0.5, to_micros(NOON))
    assert rows[0][-3:] == (stored.row_id, False, features[0].astype("<f4").tobytes())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE evidence SET credibility = 0.1 WHERE evidence_id = 'E1'", FIELDS_CHANGED),
        ("UPDATE evidence SET source = 'other' WHERE evidence_id = 'E1'", FIELDS_CHANGED),
        ("UPDATE evidence SET seal = '' WHERE evidence_id = 'E1'", FIELDS_CHANGED),
        ("UPDATE features SET seal = '' WHERE row_id = 1", VECTOR_CHANGED),
        (
            "UPDATE features SET vector = (SELECT vector FROM features WHERE row_id = 2)"
            " WHERE row_id = 1",
            VECTOR_CHANGED,
        ),
    ],
)
def test_a_changed_item_is_no_candidate(
    store: EvidenceStore, reader: int, change: str, reason: str
) -> None:
    store.add([item("E1", "one"), item("E2", "two")], vectors(2), reader)
    store.database.connection.execute(change)
    rows, damaged = store.candidates("C1", "level", reader)
    assert [row[0] for row in rows] == ["E2"]
    assert damaged == (DamagedItem("E1", reason),)
    assert list(store.damaged_items()) == [DamagedItem("E1", reason)]


def test_a_changed_text_is_not_returned(store: EvidenceStore) -> None:
    store.add([item("E1", "one"), item("E2", "two")], None, None)
    store.database.connection.execute(
        "UPDATE evidence SET text_content = 'other' WHERE evidence_id = 'E1'"
    )
    with pytest.raises(StoreDamagedError, match="E1"):
        store.get("E1")
    with pytest.raises(StoreDamagedError, match="E1"):
        store.page()
    damaged: list[DamagedItem] = []
    assert list(store.get_many(["E1", "E2"], damaged)) == ["E2"]
    assert damaged == [DamagedItem("E1", TEXT_CHANGED)]
    assert [one.evidence_id for one in store.erase("E1")] == ["E1"]  # can still be erased


def test_candidates_have_no_vector_of_another_reader(store: EvidenceStore, reader: int) -> None:
    store.add([item("E1")], vectors(1), reader)
    other = store.reader_number("reader-b", 2)
    assert [row[-1] for row in store.candidates("C1", "level", other)[0]] == [None]


def test_a_reader_keeps_its_number_and_width(store: EvidenceStore, reader: int) -> None:
    assert store.reader_number("reader-a", WIDTH) == reader
    assert EvidenceStore(store.database).reader_number("reader-a", WIDTH) == reader
    assert store.reader_number("reader-b", 7) != reader
    for evidence_store in (store, EvidenceStore(store.database)):
        with pytest.raises(ConfigError, match=r"'reader-a'.*width 5.*width 4"):
            evidence_store.reader_number("reader-a", 5)


def test_unknown_and_erased_ids_have_different_messages(store: EvidenceStore) -> None:
    store.add([item("E1")], None, None)
    with pytest.raises(UnknownEvidenceError, match="'E9' is not in the store"):
        store.get("E9")
    store.erase("E1")
    with pytest.raises(UnknownEvidenceError, match=r"'E1' was erased at 20\d\d-.*Z"):
        store.get("E1")
    with pytest.raises(UnknownEvidenceError, match="was erased"):
        store.erase("E1")


def test_many_items_are_looked_up_and_missing_ones_left_out(store: EvidenceStore) -> None:
    names = [f"E{number}" for number in range(150)]
    store.add([item(name) for name in names], None, None)
    found = store.get_many([*names, "absent", "E3"])
    assert sorted(found) == sorted(names)
    assert store.get_many([]) == {}
    rows = [found["E149"].row_id, 10_000, found["E0"].row_id]
    assert [kept.evidence.evidence_id for kept in store.by_rows(rows)] == ["E149", "E0"]


def test_pages_follow_one_another(store: EvidenceStore) -> None:
    store.add([item(f"E{n}", entity_id=f"C{n % 2}") for n in range(7)], None, None)
    first = store.page(limit=4)
    rest = store.page(limit=4, after_row=first[-1].row_id)
    assert [kept.evidence.evidence_id for kept in first + rest] == [f"E{n}" for n in range(7)]
    assert len(store.page(entity_id="C1")) == 3
    assert len(store.page(entity_id="C1", predicate="level")) == 3
    assert store.page(predicate="outcome") == []


def test_an_id_is_never_reused(store: EvidenceStore) -> None:
    store.add([item("E1")], None, None)
    store.erase("E1")
    store.add([item("E2")], None, None)
    for batch in ([item("E3"), item("E2")], [item("E1")], [item("E4"), item("E4")]):
        with pytest.raises(EvidenceError, match="Nothing was added"):
            store.add(batch, None, None)
    assert [kept.evidence.evidence_id for kept in store.page()] == ["E2"]


def test_row_numbers_are_not_reused(store: EvidenceStore, reader: int) -> None:
    store.add([item("E1"), item("E2")], vectors(2), reader)
    highest = store.erase("E2")[0].row_id
    store.add([item("E3")], vectors(1), reader)
    assert store.get("E3").row_id > highest


def test_features_must_have_the_right_shape_and_reader(store: EvidenceStore, reader: int) -> None:
    with pytest.raises(EvidenceError, match=r"\(1, 4\).*\(2, 4\)"):
        store.add([item("E1"), item("E2")], vectors(1), reader)
    with pytest.raises(NonFiniteError, match="NaN"):
        store.add([item("E1")], np.full((1, WIDTH), np.nan, np.float32), reader)
    with pytest.raises(ConfigError, match="neither"):
        store.add([item("E1")], vectors(1), None)
    with pytest.raises(ConfigError, match="reader 77 is not registered"):
        store.add([item("E1")], vectors(1), 77)
    assert store.count() == 0


def test_missing_vectors_are_found_and_added(store: EvidenceStore, reader: int) -> None:
    store.add([item("E1"), item("E2")], vectors(2), reader)
    store.add([item("E3"), item("E4")], None, None)
    missing = store.missing_features(reader, 10)
    assert [kept.evidence.evidence_id for kept in missing] == ["E3", "E4"]
    assert store.missing_features(reader, 10, after_row=missing[0].row_id) == missing[1:]
    features = vectors(2, seed=1)
    store.put_features(reader, [kept.row_id for kept in missing], features)
    assert store.missing_features(reader, 10) == []
    numbers, kept = store.vectors_after(reader, missing[0].row_id - 1)
    assert numbers.tolist() == [row.row_id for row in missing]
    np.testing.assert_array_equal(kept, features)


def test_existing_vectors_are_not_replaced_and_erased_rows_get_none(
    store: EvidenceStore, reader: int
) -> None:
    store.add([item("E1"), item("E2")], vectors(2), reader)
    (gone,) = store.erase("E2")
    store.put_features(reader, [store.get("E1").row_id, gone.row_id], vectors(2, seed=9))
    numbers, kept = store.vectors_after(reader, 0)
    assert numbers.tolist() == [store.get("E1").row_id]
    np.testing.assert_array_equal(kept, vectors(2)[:1])


def test_all_vectors_come_in_chunks_in_order(
    store: EvidenceStore, reader: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lpf.storage.evidence.VECTORS_AT_ONCE", 3)
    features = vectors(8)
    store.add([item(f"E{n}") for n in range(8)], features, reader)
    chunks = list(store.vectors(reader))
    assert [len(numbers) for numbers, _ in chunks] == [3, 3, 2]
    numbers = np.concatenate([numbers for numbers, _ in chunks])
    assert numbers.dtype == np.int64
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_array_equal(np.concatenate([some for _, some in chunks]), features)
    empty_numbers, empty = store.vectors_after(reader, int(numbers[-1]))
    assert (len(empty_numbers), empty.shape) == (0, (0, WIDTH))


def test_the_state_changes_whenever_an_index_must_change(store: EvidenceStore, reader: int) -> None:
    states = [store.state(reader)]
    assert states[0] == (0, 0, 0)
    store.add([item("E1"), item("E2")], vectors(2), reader)
    states.append(store.state(reader))
    store.add([item("E3")], None, None)
    assert store.state(reader) == states[-1]
    store.put_features(reader, [store.get("E3").row_id], vectors(1))
    states.append(store.state(reader))
    store.erase("E1")
    states.append(store.state(reader))
    assert len(set(states)) == 4
    assert states[-1] == (2, store.get("E3").row_id, 1)


def test_writers_in_different_threads_take_turns(store: EvidenceStore, reader: int) -> None:
    """All threads add the same IDs: exactly one may succeed."""
    refused = []

    def write(number: int) -> None:
        try:
            store.add([item(f"E{n}") for n in range(20)], vectors(20), reader)
        except EvidenceError:
            refused.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (store.count(), len(refused)) == (20, 3)


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("evidence_id", " E1", ".* whitespace: ' E1'"),
        ("entity_id", "C1\n", r".* whitespace: 'C1\\n'"),
        ("entity_id", "C1" + " " * 200, r".* whitespace: 'C1 {78}\.\.\.'"),
        ("predicate", "level ", ".* whitespace"),
        ("source", "", "is empty"),
        ("report_id", " R1", ".* whitespace"),
        ("supports_value", " ", "is empty"),
    ],
)
def test_an_invalid_name_is_rejected(
    store: EvidenceStore, name: str, given: str, error: str
) -> None:
    wrong = item(given) if name == "evidence_id" else item("E1", **{name: given})
    with pytest.raises(EvidenceError, match=f"{name}: {error}") as caught:
        store.add([item("E0"), wrong], None, None)
    assert "Nothing was added" in str(caught.value)
    assert store.count() == 0


def test_a_replaced_item_keeps_its_old_version(store: EvidenceStore) -> None:
    reader = store.reader_number("r", 3)
    store.add([item("E1", text="first"), item("E2")], np.ones((2, 3), np.float32), reader)
    before = store.get("E1")
    store.replace([item("E1", text="second")], np.full((1, 3), 2, np.float32), reader)
    old, current = store.versions("E1")
    assert (old.version, old.superseded_at is None) == (1, False)
    assert old.evidence == before.evidence
    assert old.commitment == text_commitment(old.salt, "first", old.evidence.claim)
    assert (current.version, current.superseded_at) == (2, None)
    assert current == store.get("E1")
    assert current.row_id > old.row_id
    assert current.salt != old.salt
    assert current.commitment == text_commitment(current.salt, "second", current.evidence.claim)
    assert store.count() == 2
    assert store.state(reader)[:2] == (2, current.row_id)
    (numbers, vectors) = store.vectors_after(reader, 0)
    assert vectors[numbers.tolist().index(current.row_id)].tolist() == [2, 2, 2]


def test_replacing_needs_a_stored_item_with_other_content(store: EvidenceStore) -> None:
    store.add([item("E1")], None, None)
    with pytest.raises(UnknownEvidenceError):
        store.replace([item("E1", text="other"), item("E2")], None, None)
    with pytest.raises(EvidenceError):
        store.replace([item("E1")], None, None)
    with pytest.raises(EvidenceError):
        store.replace([item("E1", text="a"), item("E1", text="b")], None, None)
    assert [one.version for one in store.versions("E1")] == [1]


def test_many_items_are_looked_up_together_before_they_are_replaced(
    store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"E{number}" for number in range(20)]
    store.add([item(name) for name in names], None, None)
    looked_up: list[object] = []
    look_up = type(store.database).look_up

    def noted(self: object, prepared: object, *rest: object) -> object:
        looked_up.append(prepared)
        return look_up(self, prepared, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store.database), "look_up", noted)
    store.replace([item(name, text=f"new {name}") for name in names], None, None)
    assert len(looked_up) < 5
    assert {one.version for one in store.versions("E7")} == {1, 2}


def test_erasure_removes_all_versions(store: EvidenceStore) -> None:
    store.add([item("E1", text="first")], None, None)
    store.replace([item("E1", text="second")], None, None)
    rows = [one.row_id for one in store.versions("E1")]
    assert [one.row_id for one in store.erase("E1")] == rows
    assert [one.row_id for one in store.pending_erasures()] == rows
    left = store.database.connection.execute("SELECT COUNT(*) FROM superseded_evidence")
    assert left.fetchone()[0] == 0
    store.finish_erasures(["E1"])
    assert store.pending_erasures() == []
