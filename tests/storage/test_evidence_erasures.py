"""Pending erasures, on both databases: what is left to do is never lost."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from lpf.errors import EvidenceError, StorageError, UnknownEvidenceError
from lpf.storage import evidence
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore, NewEvidence, PendingErasure
from lpf.storage.migrations import migrate
from lpf.types import Evidence


@pytest.fixture
def store(store_url: str) -> Iterator[EvidenceStore]:
    with Database(store_url, busy_seconds=10.0) as database:
        migrate(database)
        yield EvidenceStore(database)


def item(evidence_id: str, text: str = "a text", numbered: bool = False) -> NewEvidence:
    content = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return NewEvidence(Evidence(evidence_id, "C1", "level", text), content, content, numbered)


def test_an_erasure_is_pending_until_it_is_finished(store: EvidenceStore) -> None:
    store.add([item("E1"), item("E2", "b"), item("E3")], None, None)
    rows = [store.get(name) for name in ("E1", "E2")]
    expected = [
        PendingErasure(row.evidence.evidence_id, row.row_id, row.content_key) for row in rows
    ]
    assert [*store.erase("E1"), *store.erase("E2")] == expected
    assert EvidenceStore(store.database).pending_erasures() == expected
    store.finish_erasures(["E1"])
    assert store.pending_erasures() == expected[1:]
    with pytest.raises(UnknownEvidenceError, match="was erased at"):
        store.erase("E1")


def test_the_content_key_of_a_pending_erasure_can_be_overwritten(store: EvidenceStore) -> None:
    store.add([item("E1"), item("E2")], None, None)
    (first,), (second,) = store.erase("E1"), store.erase("E2")
    store.clear_erased_keys([first])
    assert store.pending_erasures() == [PendingErasure("E1", first.row_id, bytes(16)), second]


def test_a_failed_erasure_is_not_pending(
    store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([item("E1")], None, None)

    def fails(*_: object) -> None:
        raise StorageError("the power is out")

    monkeypatch.setattr(evidence, "now_micros", fails)
    with pytest.raises(StorageError):
        store.erase("E1")
    assert store.pending_erasures() == []
    assert store.get("E1").evidence.text_content == "a text"


def test_a_numbered_item_with_known_content_is_not_added(store: EvidenceStore) -> None:
    store.add([item("mine")], None, None)
    batch = [item("C1_E001", "new", numbered=True), item("C1_E002", numbered=True)]
    with pytest.raises(EvidenceError, match=r"\['C1_E002'\]: .*same content"):
        store.add(batch, None, None)
    assert store.count() == 1
    store.add([item("also mine"), batch[0]], None, None)
    assert store.known_contents([batch[0].content_hash, b"?" * 16]) == {batch[0].content_hash}
