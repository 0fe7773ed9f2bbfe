"""Tables of answers, read back by other programs."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import openpyxl
import pyarrow.parquet
import pytest

from lpf.errors import ConfigError
from lpf.results import QueryResult, QueryResults, answer_columns
from lpf.schema import Predicate, Schema
from lpf.storage.atomic_files import atomic_file
from lpf.storage.table_files import table_writer
from lpf.types import QueryOptions
from lpf.workspace.answer_files import AnswerWriter, QuestionError, answer_format

SCHEMA = Schema(
    (Predicate("level", ("low", "medium", "high")), Predicate("outcome", ("clean", "qualified")))
)
MOMENT = datetime(2026, 5, 13, 14, 30, 15, tzinfo=UTC)
MICROS = int(MOMENT.timestamp() * 1_000_000)
DANGEROUS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    'a"b,c\n;d',
    "<&>",
    "\x07bell",
    "é✓😀",
    "_x0041_",
]


def result(entity_id: str, predicate: str = "level") -> QueryResult:
    values = SCHEMA[predicate].values
    shares = [0.7, 0.2, 0.1][: len(values)]
    return QueryResult(
        entity_id, predicate, values, shares, "inference", "spn", QueryOptions(), MICROS, MICROS
    )


def written(suffix: str, *outcomes: QueryResult | QuestionError, **options: bool) -> io.BytesIO:
    file = io.BytesIO()
    writer = AnswerWriter(suffix, file, SCHEMA, ["level", "outcome"], **options)
    for outcome in outcomes:
        writer.write(outcome)
    writer.close()
    file.seek(0)
    return file


def excel_rows(file: io.BytesIO) -> list[dict]:
    sheet = openpyxl.load_workbook(file).active
    names, *rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_the_columns_are_those_of_a_data_frame() -> None:
    results = QueryResults([result("C1"), result("C2", "outcome")])
    values = list(dict.fromkeys(value for each in results for value in each.values))
    assert list(answer_columns(values)) == list(results.to_frame().columns)


def test_every_format_has_the_same_cells() -> None:
    answers = [result("C1"), result("C2", "outcome")]
    tables = {
        "csv": list(csv.DictReader(io.TextIOWrapper(written(".csv", *answers), "utf-8"))),
        "xlsx": excel_rows(written(".xlsx", *answers)),
        "parquet": pyarrow.parquet.read_table(written(".parquet", *answers)).to_pylist(),
    }
    for name, (first, second) in tables.items():
        assert (first["entity_id"], first["top_value"]) == ("C1", "low"), name
        assert float(first["confidence"]) == 0.7
        assert float(second["p_clean"]) == 0.7
        assert second["p_low"] in (None, "")
        assert int(first["items"]) == 0
    assert tables["csv"][0]["asked_at"] == "2026-05-13T14:30:15Z"
    assert tables["xlsx"][0]["asked_at"] == MOMENT.replace(tzinfo=None)
    assert tables["parquet"][0]["asked_at"] == MOMENT
    lines = [json.loads(line) for line in written(".jsonl", *answers)]
    assert lines == [answer.to_dict() for answer in answers]


def test_texts_are_never_formulas_in_excel() -> None:
    sheet = openpyxl.load_workbook(written(".xlsx", *map(result, DANGEROUS))).active
    cells = [row[0] for row in sheet.iter_rows(min_row=2)]
    assert {cell.data_type for cell in cells} <= {"s", "inlineStr"}
    assert [cell.value for cell in cells][:4] == DANGEROUS[:4]
    assert cells[7].value == "\ufffdbell"


def test_texts_are_written_unchanged_in_csv_and_parquet() -> None:
    answers = list(map(result, DANGEROUS))
    text = io.TextIOWrapper(written(".csv", *answers), "utf-8", newline="")
    assert [row["entity_id"] for row in csv.DictReader(text)] == DANGEROUS
    table = pyarrow.parquet.read_table(written(".parquet", *answers))
    assert table["entity_id"].to_pylist() == DANGEROUS


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet"])
def test_errors_have_a_column_of_their_own(suffix: str) -> None:
    file = written(suffix, result("C1"), QuestionError(2, "is missing"), with_errors=True)
    if suffix == ".csv":
        rows = list(csv.DictReader(io.TextIOWrapper(file, "utf-8")))
    elif suffix == ".xlsx":
        rows = excel_rows(file)
    else:
        rows = pyarrow.parquet.read_table(file).to_pylist()
    assert [row["error"] or None for row in rows] == [None, "line 2: is missing"]
    assert not rows[1]["entity_id"]


def test_the_suffix_decides(tmp_path: Path) -> None:
    formats = {"a.csv": ".csv", "A.XLSX": ".xlsx", "a.jsonl": ".jsonl", "-": ".jsonl"}
    for name, suffix in formats.items():
        assert answer_format(name) == suffix
    with pytest.raises(ConfigError):
        answer_format("answers.xls")
    assert table_writer(".jsonl", io.BytesIO(), {}) is None


def test_a_pipe_or_device_is_never_replaced(tmp_path: Path) -> None:
    import os
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with atomic_file(pipe) as file:
        file.write(b"answer")
    reader.join(10)
    assert received == [b"answer"]
    assert pipe.is_fifo()
