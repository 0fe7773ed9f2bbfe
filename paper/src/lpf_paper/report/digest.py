"""The tables of an experiment in one small JSON file, to store with the code and quote from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from lpf_paper.document import Experiment
from lpf_paper.exhibits import Row, Table, Value
from lpf_paper.report.named_exhibits import NamedStudy

FORMAT = 1
DIGITS = 4  # significant ones; the fifth is noise
Plain = float | str | list[float | None] | None


def digest(experiment: Experiment, studies: Sequence[NamedStudy]) -> bytes:
    """The findings and every number of the tables, except those of examples.

    A cell is a number, ``[number, low, high]`` if it has an interval, a word, or null. Numbers that
    the paper prints are left out. Each table row is one line, so that ``diff`` can compare digests.
    """
    run = {**asdict(experiment.run), "seeds": list(experiment.run.seeds)}
    lines = [
        "{",
        f' "format": {FORMAT},',
        f' "made": {_json(run)},',
        f' "summary": {_list(experiment.summary, 1)},',
        ' "studies": {',
        ",\n".join(_study(one) for one in studies),
        " }",
        "}",
    ]
    return ("\n".join(lines) + "\n").encode()


def _study(named: NamedStudy) -> str:
    tables = ",\n".join(f"    {_json(one.name)}: {_table(one.table)}" for one in named.tables)
    return (
        f"  {_json(named.name)}: {{\n"
        f'   "findings": {_list(named.study.findings, 3)},\n'
        f'   "tables": {{\n{tables}\n   }}\n'
        "  }"
    )


def _table(table: Table) -> str:
    columns = ["row", "title", *(column.name for column in table.columns)]
    return f'{{"columns": {_json(columns)}, "rows": {_list(map(_row, table.rows), 5)}}}'


def _row(row: Row) -> list[Plain]:
    return [row.name, row.title, *(_cell(cell) for cell in row.cells)]


def _cell(cell: Value | str | None) -> Plain:
    if not isinstance(cell, Value):
        return cell
    if cell.low is None or cell.high is None:
        return _short(cell.value)
    return [_short(cell.value), _short(cell.low), _short(cell.high)]


def _short(number: float | None) -> float | None:
    if number is None or not math.isfinite(number):
        return None
    short = float(f"{number:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


def _list(entries: Iterable[object], depth: int) -> str:
    margin = " " * (depth + 1)
    inner = ",\n".join(f"{margin}{_json(entry)}" for entry in entries)
    return f"[\n{inner}\n{' ' * depth}]" if inner else "[]"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
