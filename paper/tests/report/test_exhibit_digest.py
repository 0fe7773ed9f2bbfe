from __future__ import annotations

import json
import math

from made_up_experiments import extreme, realistic

from lpf_paper.exhibits import Column, Row, StudyResult, Table, Value
from lpf_paper.report.digest import digest
from lpf_paper.report.named_exhibits import named


def read(experiment: object = None) -> dict[str, object]:
    whole = experiment or realistic()
    return json.loads(digest(whole, named(whole.studies)))  # type: ignore[attr-defined]


def table_with(*cells: Value | str | None) -> list[object]:
    columns = tuple(Column(f"c{place}", "") for place in range(len(cells)))
    table = Table("t", "", "", columns, (Row("ours", "Ours", cells),))
    whole = realistic()
    study = StudyResult("s", "", "", tables=(table,))
    found = json.loads(digest(whole, named([study])))
    return found["studies"]["s"]["tables"]["s-t"]["rows"][0]


def test_every_table_with_its_rows_and_columns() -> None:
    found, whole = read(), realistic()
    assert list(found["studies"]) == [one.name for one in named(whole.studies)]
    for study, told in zip(named(whole.studies), found["studies"].values(), strict=True):
        assert told["findings"] == list(study.study.findings)
        assert list(told["tables"]) == [one.name for one in study.tables]
        for one, written in zip(study.tables, told["tables"].values(), strict=True):
            assert written["columns"] == [
                "row",
                "title",
                *(column.name for column in one.table.columns),
            ]
            assert [row[0] for row in written["rows"]] == [row.name for row in one.table.rows]
            assert {len(row) for row in written["rows"]} == {len(written["columns"])}


def test_four_digits_and_intervals() -> None:
    cells = table_with(
        Value(0.0123456), Value(0.5, low=0.4, high=0.61234), Value(2.0), "word", None
    )
    assert cells == ["ours", "Ours", 0.01235, [0.5, 0.4, 0.6123], 2, "word", None]


def test_nan_is_null() -> None:
    assert table_with(Value(math.inf), Value(math.nan), Value(None))[2:] == [None, None, None]


def test_whatever_the_words_it_is_json() -> None:
    assert read(extreme())["format"] == 1


def test_each_row_is_one_line() -> None:
    whole = realistic()
    lines = digest(whole, named(whole.studies)).decode().splitlines()
    for study in whole.studies:
        for table in study.tables:
            for row in table.rows:
                assert any(line.lstrip().startswith(f'["{row.name}", ') for line in lines)
