"""Reading facts from files."""

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
        (fact(timestamp=None), r"timestamp: is missing \(.*f.jsonl, line 2\)"),
        (fact(confidence="sure"), r"confidence: must be a number.*f.jsonl, line 2\)"),
        (fact(value=None), r"value: is missing \(.*f.jsonl, line 2\)"),
        (fact(timestamp="0205-01-25"), r"timestamp: .* 1900 .* got '0205-01-25'.*line 2\)"),
        (["fact"], r"must be a JSON object.*f.jsonl, line 2\)"),
    ],
)
def test_an_invalid_row_is_named(tmp_path: Path, wrong: object, message: str) -> None:
    path = write_jsonl(tmp_path / "f.jsonl", [fact(), wrong])
    with pytest.raises(InputFileError, match=message) as caught:
        list(read_facts(path))
    assert "No fact was added" in str(caught.value)


def test_a_fact_rejected_by_the_store_is_named_by_its_line(
    store: EvidenceStore, tmp_path: Path
) -> None:
    facts = FactStore(store.database, SCHEMA)
    path = write_jsonl(tmp_path / "f.jsonl", [fact(), fact(value="huge")])
    with pytest.raises(FactError, match=rf"^value: 'huge'.*{path}, line 2\)"):
        facts.add(list(read_facts(path)))
    assert facts.count() == 0
    write_jsonl(path, [fact(), fact(value="high")])
    assert len(facts.add(list(read_facts(path)))) == 2
    assert facts.add(list(read_facts(path))) == []


def test_whitespace_around_names_in_fact_files_is_ignored(tmp_path: Path) -> None:
    blank = fact(entity_id=" C1\t", predicate="level ", value=" low", source=" audit ")
    (read,) = read_facts(write_csv(tmp_path / "f.csv", [blank]))
    assert (read.entity_id, read.predicate, read.value) == ("C1", "level", "low")
    assert read.source == "audit"


def test_header_case_and_separator_are_flexible(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("Entity_ID; Predicate;VALUE;timestamp\nC1;level;low;2026-01-25\n")
    (read,) = read_facts(path)
    assert (read.entity_id, read.value) == ("C1", "low")


@pytest.mark.parametrize(("name", "write"), [("f.jsonl", write_jsonl), ("f.csv", write_csv)])
def test_a_mistyped_confidence_column_is_rejected(tmp_path: Path, name: str, write: object) -> None:
    path = write(tmp_path / name, [fact(confidense=0.5, remark="?")])  # type: ignore[operator]
    with pytest.raises(InputFileError, match=r"confidense: .*did you mean confidence\?"):
        list(read_facts(path))
    other = write(tmp_path / f"other-{name}", [fact(remark="?")])  # type: ignore[operator]
    assert len(list(read_facts(other))) == 1


def test_missing_fact_columns_are_named(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "f.csv", [{"entity_id": "C1", "value": "low"}])
    with pytest.raises(InputFileError, match=r"\['predicate', 'timestamp'\] are missing"):
        list(read_facts(path))
