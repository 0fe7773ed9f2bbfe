"""Tables with labelled items as data sets."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pytest

from ingest.parts import ONE_PREDICATE, SCHEMA
from lpf.datasets import read_dataset
from lpf.errors import ConfigError, DatasetError
from lpf.ingest import FileOptions, read_labelled
from lpf.schema import Schema


def written(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def test_rows_are_grouped_by_entity(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.csv",
        "Entity ID;Text;Label;Supports value;Split;Credibility;Timestamp",
        "C1;a;low;;train;0,5;13/05/2026",
        "C2;b;high;low;test;;",
        "C1;c;low;high;train;;",
        "C3;d;;;;;",
    )
    data = read_labelled(path, schema=ONE_PREDICATE)
    assert [entity.entity_id for entity in data] == ["C1", "C2"]
    first, second = data
    assert (first.labels, first.split) == ({"level": "low"}, "train")
    assert [item.evidence_id for item in first.evidence] == ["C1_E001", "C1_E002"]
    assert [item.labels for item in first.evidence] == [{}, {"level": "high"}]
    assert (first.evidence[0].credibility, first.evidence[0].timestamp.month) == (0.5, 5)
    assert second.evidence[0].labels == {"level": "low"}
    assert any("no label" in sentence for sentence in data.exclusions)


def test_a_column_of_questions_is_read_like_claims(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "entity_id,text,label,question", "C1,a,low,Is it low?")
    assert [entity.claim for entity in read_labelled(path, schema=ONE_PREDICATE)] == ["Is it low?"]


def test_without_labels_of_entities_their_items_vote(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    values = [
        ("C1", "low"),
        ("C1", "low"),
        ("C1", "high"),
        ("C2", "high"),
        ("C3", "low"),
        ("C3", "high"),
    ]
    for row in (["entity_id", "text", "supports_value"], *([e, "t", v] for e, v in values)):
        book.active.append(row)
    book.save(path)
    data = read_labelled(path, schema=ONE_PREDICATE)
    assert {entity.entity_id: entity.labels["level"] for entity in data} == {
        "C1": "low",
        "C2": "high",
    }


def test_predicates_may_be_named_per_row(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.csv", "entity_id,text,predicate,label", "C1,a,p,x", "C1,b,q,y", "C2,c,p,z"
    )
    data = read_labelled(path)
    assert [dict(entity.labels) for entity in data] == [{"p": "x", "q": "y"}, {"p": "z"}]


def test_rows_without_a_predicate_are_about_the_chosen_one(tmp_path: Path) -> None:
    rows = ["entity_id,text,predicate,label", "A,a,,low", "A,b,outcome,clean"]
    path = written(tmp_path / "a.csv", *rows)
    (entity,) = read_labelled(path, schema=SCHEMA, predicate="level")
    assert entity.labels == {"level": "low", "outcome": "clean"}
    (entity,) = read_labelled(path)
    assert entity.labels == {"label": "low", "outcome": "clean"}
    with pytest.raises(DatasetError, match="several predicates"):
        read_labelled(path, schema=SCHEMA)
    path = written(tmp_path / "b.csv", rows[0].replace("label", "supports_value"), *rows[1:])
    (entity,) = read_labelled(path, schema=SCHEMA, predicate="level")
    assert entity.labels == {"level": "low", "outcome": "clean"}
    assert [item.labels for item in entity.evidence] == [{"level": "low"}, {"outcome": "clean"}]


def test_a_table_is_read_as_the_options_say(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "Kunde;text;Stufe;timestamp\nC1;süß;low;03/04/2026\n"
    path.write_bytes(rows.encode("utf-16"))
    columns = {"Kunde": "entity_id", "Stufe": "label"}
    options = FileOptions("DD/MM/YYYY", columns, "utf-16")
    (entity,) = read_labelled(path, schema=ONE_PREDICATE, options=options)
    (item,) = entity.evidence
    assert (entity.entity_id, entity.labels["level"], item.text) == ("C1", "low", "süß")
    assert item.timestamp is not None
    assert (item.timestamp.month, item.timestamp.day) == (4, 3)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (FileOptions(sheet="a"), "sheet"),
        (FileOptions(encoding="utf-8"), "encoding"),
        (FileOptions(columns={"a": "label"}), "map"),
        (FileOptions("DD/MM/YYYY"), "date_format"),
    ],
)
def test_options_of_tables_are_refused_for_a_data_set(
    tmp_path: Path, options: FileOptions, field: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_labelled(written(tmp_path / "a.jsonl", "{}"), options=options)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        (["entity_id,text", "C1,a"], "label"),
        (["entity_id,text,label", "C1,a,low", "C1,b,high"], "row|line 3"),
        (["entity_id,text,label", "C1,,low"], "text: is missing"),
        (["entity_id,text,label,credibility", "C1,a,low,7"], "credibility"),
        (["entity_id,text,label", "C1,a"], "2 cells"),
        (["entity_id,text,label", "C1,a,huge"], "huge"),
        (["entity_id,text,text_content,label", "C1,a,b,low"], "line 2: text"),
        (["entity_id,text,predicate,label", "C1,a,,low", "C1,b,level,high"], "line 3: level"),
        (["entity_id,text,label"], "empty"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, rows: list[str], part: str) -> None:
    schema: Schema = ONE_PREDICATE
    with pytest.raises(DatasetError, match=part):
        read_labelled(written(tmp_path / "a.csv", *rows), schema=schema)


def test_a_data_set_file_is_read_as_before(tmp_path: Path) -> None:
    line = '{"entity_id": "K1", "label": "low", "evidence": [{"evidence_id": 1, "text": "a"}]}'
    path = written(tmp_path / "a.jsonl", line)
    assert read_labelled(path, schema=ONE_PREDICATE) == read_dataset(path, schema=ONE_PREDICATE)
    with pytest.raises(DatasetError):
        read_labelled(tmp_path / "absent.jsonl")


def test_a_line_of_a_data_set_is_not_loaded_beyond_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(DatasetError, match="longer than"):
        read_dataset(path)
