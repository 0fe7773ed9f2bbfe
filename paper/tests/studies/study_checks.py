"""What tests of studies ask of every result, and answers whose log loss is known beforehand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from made_answers import VALUES, Skill, made

from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.specs import Cell
from lpf.report.page import text
from lpf_paper.exhibits import Row, StudyResult, Table, Value
from lpf_paper.report.exhibit_figures import draw_exhibit
from lpf_paper.report.exhibit_tables import exhibit_table, table_csv
from lpf_paper.studies.study_figures import with_points


def keep_exact(folder: Path, cells: Iterable[Cell], loss: Callable[[Cell], float]) -> None:
    """Every entity of a cell has just this log loss, so that differences have no noise."""
    store = ResultStore(folder)
    for cell in cells:
        begun = made(cell, Skill(), entities=30)
        truth = np.exp(-loss(cell))
        other = (1.0 - truth) / (len(VALUES) - 1)
        rows = np.where(np.eye(len(VALUES))[begun.labels] == 1.0, truth, other)
        store.save(cell, replace(begun, raw=rows, tempered=rows))


def assert_can_be_shown(result: StudyResult) -> None:
    """A report would take all of it, and nothing of it is empty or there twice."""
    assert_can_be_told(result)
    for figure in result.figures:
        assert draw_exhibit(figure, figure.name).svg


def assert_can_be_told(result: StudyResult) -> None:
    """The same but for the drawing itself, which takes its time."""
    assert result.findings
    for exhibits in (result.tables, result.figures):
        assert exhibits
        assert len({one.name for one in exhibits}) == len(exhibits)
    for shown in result.tables:
        assert shown.rows
        page = exhibit_table(shown, shown.name, "file.csv")
        assert all(f'<th scope="row">{text(row.title)}</th>' in page for row in shown.rows)
        assert len(table_csv(shown).decode().splitlines()) == 1 + len(shown.rows)
    assert with_points(result.figures) == list(result.figures)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert StudyResult.from_dict(plain) == result


def table(result: StudyResult, name: str) -> Table:
    return next(one for one in result.tables if one.name == name)


def line(shown: Table, row: str) -> Row:
    return next(one for one in shown.rows if one.name == row)


def value(shown: Table, row: str, column: str) -> Value:
    cell = line(shown, row).cells[[one.name for one in shown.columns].index(column)]
    assert isinstance(cell, Value)
    return cell


def sentence(result: StudyResult, begin: str) -> str:
    """The one that begins so."""
    found = [one for one in result.findings if one.startswith(begin)]
    assert len(found) == 1, result.findings
    return found[0]
