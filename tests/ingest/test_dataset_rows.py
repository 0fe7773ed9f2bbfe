"""Ingesting a data set file: one entity per line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.parts import ONE_PREDICATE, SCHEMA, HashReader, write_jsonl
from lpf.errors import InputFileError
from lpf.ingest import FileOptions, IngestOutcome, ingest
from lpf.schema import Schema
from lpf.storage.evidence import EvidenceStore


def item(number: int, **fields: object) -> dict:
    return {"evidence_id": f"E{number}", "text": f"text {number}", **fields}


def take(
    rows: list,
    store: EvidenceStore,
    folder: Path,
    schema: Schema = ONE_PREDICATE,
    **options: object,
) -> IngestOutcome:
    path = write_jsonl(folder / "data.jsonl", rows)
    given = FileOptions(**options)  # type: ignore[arg-type]
    rejects = folder / "bad"
    return ingest(path, store, schema, HashReader(), rejects_folder=rejects, options=given)


def test_items_are_added_with_their_own_label_or_that_of_their_entity(
    store: EvidenceStore, tmp_path: Path
) -> None:
    rows = [
        {
            "entity_id": "K1",
            "label": "low",
            "claim": "It is low.",
            "evidence": [
                item(1, source="audit", credibility=0.5, timestamp="2026-01-25"),
                item(2, label="high", report_id="R"),
            ],
        },
        {"entity_id": "K2", "evidence": [item(3)]},
    ]
    outcome = take(rows, store, tmp_path)
    assert (outcome.read, outcome.added, outcome.rejected) == (3, 3, 0)
    assert any("data set" in stated for stated in outcome.read_as)
    found = [store.get(f"E{number}").evidence for number in (1, 2, 3)]
    assert [one.entity_id for one in found] == ["K1", "K1", "K2"]
    assert [one.supports_value for one in found] == ["low", "high", None]
    assert [one.claim for one in found] == ["It is low.", "It is low.", None]
    assert (found[0].source, found[0].credibility, found[1].report_id) == ("audit", 0.5, "R")
    assert take(rows, store, tmp_path).unchanged == 3
    rows[1]["evidence"][0]["text"] = "corrected"
    assert take(rows, store, tmp_path).updated == 1


def test_several_predicates_give_one_item_each(store: EvidenceStore, tmp_path: Path) -> None:
    labels = {"level": "low", "outcome": "clean"}
    rows = [
        {"entity_id": "K1", "labels": labels, "evidence": [item(1)]},
        {"entity_id": "K2", "labels": {"level": "high"}, "evidence": [item(2, label="stance")]},
    ]
    assert take(rows, store, tmp_path, SCHEMA).added == 3
    assert store.get("E1:outcome").evidence.supports_value == "clean"
    assert store.get("E2:level").evidence.supports_value == "high"


def test_plain_labels_need_a_predicate(store: EvidenceStore, tmp_path: Path) -> None:
    rows = [{"entity_id": "K1", "label": "low", "evidence": [item(1)]}]
    with pytest.raises(InputFileError) as caught:
        take(rows, store, tmp_path, SCHEMA)
    assert (caught.value.field, "--predicate" in caught.value.hint) == ("predicate", True)
    assert take(rows, store, tmp_path, SCHEMA, predicate="level").added == 1


def test_wrong_lines_are_rejected_and_the_rest_is_explained(
    store: EvidenceStore, tmp_path: Path
) -> None:
    rows = [
        {"entity_id": "K1", "label": "huge", "evidence": [item(1)]},
        {"entity_id": "K2", "label": "low", "evidence": [{"evidence_id": "E2"}]},
        "broken",
        {
            "entity_id": "K3",
            "label": "low",
            "facts": {"level": "low"},
            "evidence": [item(3, label="high"), item(4, label="high")],
        },
    ]
    outcome = take(rows, store, tmp_path)
    assert (outcome.added, outcome.rejected) == (2, 3)
    assert [problem.line for problem in outcome.problems] == [1, 2, 3]
    assert len(outcome.notes) == 2
