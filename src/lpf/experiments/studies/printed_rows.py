"""Rows of methods that the paper has numbers of and we have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lpf.experiments.exhibits import Row, Table, Value
from lpf.experiments.naming import LANGUAGE_MODEL, standing_of, title_of
from lpf.experiments.printed.tables import PrintedTable
from lpf.experiments.studies.tables import printed_value

NOT_RUN = "not run here"
NOT_ASKED = "not asked here: needs an endpoint (lpf evaluate --llm)"


def with_printed_rows(table: Table, beside: PrintedTable) -> Table:
    """Ours first. Rows of both must be named after methods, and columns after measures."""
    ours = {row.name for row in table.rows}
    measures = [column.name for column in table.columns]
    rows = [_row(method, measures, beside) for method in beside.rows if method not in ours]
    return replace(table, rows=(*table.rows, *rows))


def _row(method: str, measures: Sequence[str], beside: PrintedTable) -> Row:
    cells = tuple(_cell(method, measure, beside) for measure in measures)
    return Row(method, title_of(method), cells, standing_of(method), _note(method, beside))


def _cell(method: str, measure: str, beside: PrintedTable) -> Value | None:
    paper, doubt = printed_value(beside, method, measure)
    return None if paper is None else Value(None, paper=paper, doubt=doubt)


def _note(method: str, beside: PrintedTable) -> str:
    why = NOT_ASKED if method.startswith(LANGUAGE_MODEL) else NOT_RUN
    entities = beside.entities_of(method)
    if entities is None or entities == beside.entities:
        return why
    return f"{why}; the paper's numbers are of {entities:,} entities"
