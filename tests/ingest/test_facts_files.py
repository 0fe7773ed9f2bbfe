"""Facts out of files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from ingest.parts import SCHEMA, write_csv, write_jsonl
from lpf.errors import FactError, InputFileError
from lpf.ingest import read_facts
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import FactStore, NewFact


def write_parquet(path: Path, rows: list[dict]) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def fact(**fields: object) -> dict:
    moment = "2026-01-25T12:00:00Z"
    return {"entity_id": "C1", "predicate": "level", "value": "low", "timestamp": moment, **fields}


@pytest.mark.parametrize(
    ("name", "write"),
    [("f.jsonl", write_jsonl), ("f.csv", write_csv), ("f.parquet", write_parquet)],
)
def test_facts_are_read_from_every_kind_of_file(tmp_path: Path, name: str, write: object) -> None:
    rows = [fact(confidence=None, source=None), fact(confidence=0.5, source="audit")]
    noon = datetime(2026, 1, 25, 12, tzinfo=UTC)
    assert list(read_facts(write(tmp_path / name, rows))) == [  # type: ignore[operator]
        NewFact("C1", "level", "low", noon),
        NewFact("C1", "level", "low", noon, 0.5, "audit"),
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (fact(timestamp=None), "f.jsonl, line 2: timestamp: is missing"),
        (fact(confidence="sure"), "f.jsonl, line 2: confidence: must be a number"),
        (fact(value=None), "f.jsonl, line 2: value: is missing"),
        (["fact"], "f.jsonl, line 2: must be a JSON object"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, wrong: object, message: str) -> None:
    path = write_jsonl(tmp_path / "f.jsonl", [fact(), wrong])
    with pytest.raises(InputFileError, match=message) as caught:
        list(read_facts(path))
    assert "No fact was added" in str(caught.value)


def test_a_fact_the_store_refuses_is_named_by_its_line(
    store: EvidenceStore, tmp_path: Path
) -> None:
    facts = FactStore(store.database, SCHEMA)
    path = write_jsonl(tmp_path / "f.jsonl", [fact(), fact(value="huge")])
    with pytest.raises(FactError, match=r"^f\.jsonl, line 2: value: 'huge'"):
        facts.add(list(read_facts(path)))
    assert facts.count() == 0
    write_jsonl(path, [fact(), fact(value="high")])
    assert len(facts.add(list(read_facts(path)))) == 2
    assert facts.add(list(read_facts(path))) == []


def test_missing_columns_are_told_once(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "f.csv", [{"entity_id": "C1", "value": "low"}])
    with pytest.raises(InputFileError, match=r"\['predicate', 'timestamp'\] are missing"):
        list(read_facts(path))
