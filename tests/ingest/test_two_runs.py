"""Concurrent ingestions into one store: nothing is added twice or lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest.parts import SCHEMA, HashReader, numbered_rows, row
from lpf.ingest import IngestOutcome, erase_evidence, ingest_rows
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore, NewEvidence
from lpf.types import Evidence


def take(rows: list[dict], store: EvidenceStore, folder: Path, **options: object) -> IngestOutcome:
    given: dict = {"reader": HashReader(), "batch": 4, **options}
    return ingest_rows(rows, store, SCHEMA, given.pop("reader"), rejects_folder=folder, **given)


def texts_of(store: EvidenceStore) -> list[str]:
    return [item.evidence.text_content for item in store.page(limit=1000)]


@pytest.mark.parametrize("meets_after", [4, 8])
def test_rows_added_by_another_run_between_batches_are_not_added_twice(
    either_store: EvidenceStore, tmp_path: Path, meets_after: int
) -> None:
    rows = numbered_rows(16, entities=2)
    with Database(either_store.database.url.render_as_string(hide_password=False)) as database:
        other = EvidenceStore(database)

        def meet(done: int, total: int | None) -> None:
            if done == meets_after:
                assert take(rows, other, tmp_path).added == 16 - meets_after

        outcome = take(rows, either_store, tmp_path, progress=meet)
    assert (outcome.added, outcome.unchanged) == (meets_after, 16 - meets_after)
    assert sorted(texts_of(either_store)) == sorted(each["text_content"] for each in rows)


def test_rows_added_by_another_run_during_reading_are_not_added_twice(
    either_store: EvidenceStore, tmp_path: Path
) -> None:
    """The other run adds them with IDs that this one would not have generated, so they can only be
    recognised by their content."""
    rows = [row(text_content=f"text {number}") for number in range(4)]

    class Overtaken(HashReader):
        overtaken = False

        def read_many(self, items, *, progress=None):  # type: ignore[no-untyped-def]
            if not self.overtaken:
                self.overtaken = True
                far = row(evidence_id="C1_E100", text_content="far")
                take([far, *rows], either_store, tmp_path)
            return super().read_many(items, progress=progress)

    outcome = take(rows, either_store, tmp_path, reader=Overtaken())
    assert (outcome.added, outcome.unchanged) == (0, 4)
    assert sorted(texts_of(either_store)) == ["far", *(f"text {number}" for number in range(4))]


def test_a_batch_with_many_id_conflicts_is_read_once(
    store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others repeatedly take the next number of the entity just before this run does."""
    others = iter(range(20))
    add = store.add

    def overtaken(*given: object) -> None:
        number = next(others, None)
        if number is not None:
            competitor = NewEvidence(
                Evidence(f"C1_E{number + 1:03d}", "C1", "level", f"other {number}"), b"0", b"1"
            )
            add([competitor], None, None)
        add(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "add", overtaken)
    reader = HashReader()
    rows = [row(text_content=text) for text in ("a", "b", "UNREADABLE")]
    outcome = take(rows, store, tmp_path, reader=reader)
    assert (outcome.added, outcome.rejected, reader.texts_read) == (2, 1, 2)
    assert [item.evidence.evidence_id for item in store.page()][-2:] == ["C1_E021", "C1_E022"]


def test_rejects_written_after_an_erasure_are_not_lost(
    store: EvidenceStore, tmp_path: Path
) -> None:
    take([row(evidence_id="S1", text_content="secret")], store, tmp_path)
    rows = [row(evidence_id="S1", text_content=f"other {n}", credibility=7) for n in range(2)]
    rows += [row(text_content=f"wrong {number}", credibility=7) for number in range(10)]

    def erase(done: int, total: int | None) -> None:
        if done == 4:
            assert erase_evidence("S1", store, tmp_path).rejects_removed == 2

    outcome = take(rows, store, tmp_path, progress=erase)
    lines = outcome.rejects_file.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["line"] for line in lines] == list(range(3, 13))
    assert len(list(tmp_path.glob("*.rejects.jsonl*"))) == 1
