"""After an erasure, no file of the workspace contains the text."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

import psycopg
import pytest

from ingest.parts import SCHEMA, HashReader, row
from lpf.errors import UnknownEvidenceError
from lpf.ingest import (
    Erasure,
    IngestOutcome,
    begin_erasure,
    erase_evidence,
    finish_erasure,
    ingest_rows,
    scrub,
)
from lpf.ingest import erasure as erasure_module
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore, NewEvidence, PendingErasure
from lpf.storage.migrations import migrate
from lpf.types import Evidence

SHORT = 'Kiełbasa "secret" of Mr. Żak'
LONG = " ".join(f"wörd{number:05d}" for number in range(2000))


def take(rows: list[dict], store: EvidenceStore, folder: Path) -> IngestOutcome:
    return ingest_rows(rows, store, SCHEMA, HashReader(), rejects_folder=folder)


def forms(text: str) -> list[bytes]:
    return [
        text.encode(),
        json.dumps(text)[1:-1].encode(),
        json.dumps(text, ensure_ascii=False)[1:-1].encode(),
    ]


def pieces(text: str) -> list[bytes]:
    """Parts of the text, since it may be spread over several pages."""
    parts = [text[start : start + 40] for start in range(0, max(1, len(text) - 40), 40)]
    return [form for part in parts for form in forms(part)]


def holders(folder: Path, text: str) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    wanted = pieces(text)
    return [path.name for path in files if any(piece in path.read_bytes() for piece in wanted)]


@pytest.mark.parametrize("text", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("checkpointed", [True, False])
def test_no_file_contains_an_erased_text(
    store: EvidenceStore, tmp_path: Path, text: str, checkpointed: bool
) -> None:
    others = [row(text_content=f"other {n} " + "x" * n * 40) for n in range(40)]
    secret = row(evidence_id="S1", text_content=text, claim="c")
    rejected = [secret | {"credibility": 7}, secret | {"evidence_id": None, "predicate": "?"}]
    take([*others[:20], secret, *others[20:], *rejected], store, tmp_path / "bad")
    if checkpointed:
        store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert len(holders(tmp_path, text)) >= 2
    key = store.get("S1").content_key
    erasure = erase_evidence("S1", store, tmp_path / "bad")
    assert not any(key in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert holders(tmp_path, text) == []
    assert (erasure.rejects_removed, erasure.warnings) == (2, ())
    assert [item.evidence_id for item in erasure.items] == ["S1"]
    assert store.pending_erasures() == []
    assert store.count() == 40


@pytest.mark.parametrize("seed", [3, 8, 12])
def test_copies_left_by_moved_rows_are_removed(
    store: EvidenceStore, tmp_path: Path, seed: int
) -> None:
    """A deletion makes SQLite move other rows, and their old places keep a copy. With these seeds
    such copies survive in SQLite 3.40 unless the store is rewritten."""
    store.database.connection.execute("PRAGMA synchronous=OFF")
    chance = random.Random(seed)
    texts = {f"S{number}": random_text(chance) for number in range(120)}
    evidence = [Evidence(name, "C1", "level", text) for name, text in texts.items()]
    store.add([NewEvidence(item, b"0" * 16, b"1" * 16) for item in evidence], None, None)
    gone = chance.sample(sorted(texts), 100)
    assert erase_evidence(gone, store, tmp_path).warnings == ()
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    words = {name: text.encode().split() for name, text in texts.items()}
    assert [name for name in gone if any(word in held for word in words[name])] == []
    assert all(words[name][0] in held for name in texts.keys() - set(gone))


def random_text(chance: random.Random) -> str:
    length = chance.choice([1, 2, 4, 10, 40, 100])
    return " ".join(f"{chance.getrandbits(64):016x}" for _ in range(length))


def test_a_process_reading_an_old_snapshot_causes_a_warning(
    store: EvidenceStore, tmp_path: Path
) -> None:
    take([row(evidence_id="S1", text_content=SHORT)], store, tmp_path)
    with Database(store.database.path) as other:
        other.connection.execute("BEGIN")
        other.connection.execute("SELECT count(*) FROM evidence").fetchone()
        erasure = erase_evidence("S1", store, tmp_path, wait_seconds=0.1)
        assert "may still contain the text" in erasure.warnings[0]
        assert [item.evidence_id for item in store.pending_erasures()] == ["S1"]
        other.connection.execute("COMMIT")
    assert scrub(store.database) is None
    assert holders(tmp_path, SHORT) == []
    assert erase_evidence("S1", store, tmp_path).warnings == ()
    assert store.pending_erasures() == []


def test_an_erasure_waits_for_a_short_read(store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="S1", text_content=SHORT)], store, tmp_path)
    with Database(store.database.path) as other:
        connection = other.connection
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM evidence").fetchone()
        timer = threading.Timer(0.3, lambda: connection.execute("COMMIT"))
        timer.start()
        assert erase_evidence("S1", store, tmp_path).warnings == ()
        timer.join()


def test_an_unknown_item_cannot_be_erased(either_store: EvidenceStore, tmp_path: Path) -> None:
    take([row(evidence_id="S2")], either_store, tmp_path)
    with pytest.raises(UnknownEvidenceError, match="'S1' is not in the store"):
        erase_evidence(["S2", "S1"], either_store, tmp_path)
    assert either_store.count() == 1
    with pytest.raises(UnknownEvidenceError, match="is not in the store"):
        erase_evidence("S1", either_store, tmp_path)


@pytest.mark.parametrize("killed_at", ["rest", "clear_erased_keys", "scrub", "finish_erasures"])
def test_an_interrupted_erasure_is_completed_by_another(
    either_store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    folder, secret = tmp_path / "bad", row(evidence_id="S1", text_content=LONG)
    take([secret, row(evidence_id="S2", text_content=SHORT), row()], either_store, folder)
    row_id, key = either_store.get("S1").row_id, either_store.get("S1").content_key
    killed_in(either_store, monkeypatch, killed_at, folder)
    (pending,) = either_store.pending_erasures()
    forgotten = killed_at in ("scrub", "finish_erasures")
    assert pending == PendingErasure("S1", row_id, bytes(len(key)) if forgotten else key)
    put_back = folder / "x.rejects.jsonl"
    put_back.write_text(json.dumps({"row": secret}) + "\n")
    again = erase_evidence(["S2", "S1"], either_store, folder)
    assert [item.evidence_id for item in again.items] == ["S2", "S1"]
    assert (again.items[1], again.rejects_removed, again.warnings) == (pending, 1, ())
    assert either_store.pending_erasures() == []
    assert holders(tmp_path, LONG) == holders(tmp_path, SHORT) == []
    with pytest.raises(UnknownEvidenceError, match="was erased at 20"):
        erase_evidence("S1", either_store, folder)


def killed_in(
    store: EvidenceStore, monkeypatch: pytest.MonkeyPatch, step: str, folder: Path
) -> None:
    """An erasure of S1 that is interrupted at ``step``."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    begun = begin_erasure("S1", store, folder)
    if step == "rest":
        return
    with monkeypatch.context() as patch:
        patch.setattr(erasure_module if step == "scrub" else store, step, killed)
        with pytest.raises(KeyboardInterrupt):
            finish_erasure(begun, store)


def test_an_erasure_interrupted_in_the_rejects_can_be_repeated(
    store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = row(evidence_id="S1", text_content=SHORT)
    take([secret, secret | {"credibility": 7}, row(credibility=7)], store, tmp_path)

    def killed(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lpf.ingest.rejects.wipe", killed)
        with pytest.raises(KeyboardInterrupt):
            erase_evidence("S1", store, tmp_path)
    assert store.get("S1").evidence.text_content == SHORT
    erase_evidence("S1", store, tmp_path)
    assert holders(tmp_path, SHORT) == []
    assert holders(tmp_path, "a text") != []


def erased(store: EvidenceStore, folder: Path) -> Erasure:
    take([row(evidence_id="S1", text_content=LONG), row()], store, folder)
    return erase_evidence("S1", store, folder)


def test_only_id_and_time_of_an_erased_item_remain(
    either_store: EvidenceStore, tmp_path: Path
) -> None:
    erasure = erased(either_store, tmp_path)
    with pytest.raises(UnknownEvidenceError, match="was erased at"):
        either_store.get("S1")
    reader = either_store.reader_number("hash-8", 8)
    assert erasure.items[0].row_id not in either_store.vectors_after(reader, 0)[0]
    assert either_store.state(reader)[0::2] == (1, 1)


def test_a_locked_postgres_table_causes_a_warning(postgres: object, tmp_path: Path) -> None:
    url = postgres.fresh_url()  # type: ignore[attr-defined]
    with Database(url, busy_seconds=0.3) as database, psycopg.connect(url) as other:
        migrate(database)
        store = EvidenceStore(database)
        take([row(evidence_id="S1", text_content=LONG)], store, tmp_path)
        other.execute("LOCK TABLE features IN ACCESS SHARE MODE")
        (warning,) = erase_evidence("S1", store, tmp_path).warnings
        assert "its bytes may still be in the files" in warning
        other.rollback()
        assert scrub(database) is None
