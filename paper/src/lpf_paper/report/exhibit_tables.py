"""Tables of a study as HTML and CSV.

HTML shows each number with its spread and the paper's number below it; CSV has all digits.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from io import StringIO

from lpf.errors import ConfigError
from lpf.report import text
from lpf_paper.exhibits import Column, Row, Table, Value
from lpf_paper.report.quantities import NOTHING, difference, is_seen, quantity, rounded

CLASSES = {"word": "word", "text": "long"}  # every other kind is a number
ARROWS = {"higher": "↑", "lower": "↓"}
# Explains the marks in cells; shown once per page, before the first table.
READING = (
    "In tables, ± is one standard deviation over runs: seeds, data sets or domains, as the caption "
    "says. It is left out if it does not reach the last digit shown. Square brackets hold an "
    "interval where there is no such deviation. Below a number is the one that the paper prints, "
    "with our number minus the paper's in brackets; † marks a number that cannot be right, and a "
    "note below the table says why. An arrow shows whether high or low is good, and the best "
    "number of a column is bold, references excepted. Shaded rows are ours; italic rows are "
    "references, which show what is possible at best or without any effort."
)


def exhibit_table(table: Table, name: str, file: str) -> str:
    """The table as HTML. ``name`` begins the IDs of its parts; ``file`` holds its numbers as CSV.
    ConfigError if rows do not fit the columns."""
    check_table(table)
    notes = _Notes(name)
    best = [_best(table, place) for place in range(len(table.columns))]
    rows = "".join(_row(table.columns, row, best, notes) for row in table.rows)
    return (
        f'<div class="exhibit">\n<h3 id="{name}">{text(table.title)}</h3>\n'
        f'<p class="caption">{text(table.caption)} '
        f'<span class="file">{text(file)}</span></p>\n'
        f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">\n'
        f'<table class="grid" aria-labelledby="{name}">\n<thead><tr>{_heads(table.columns)}</tr>'
        f"</thead>\n<tbody>\n{rows or _no_rows(table)}</tbody>\n</table>\n</div>\n"
        f"{notes.listed()}</div>"
    )


class _Notes:
    """Footnotes of one table, numbered in order of use; equal texts share a number."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: dict[str, int] = {}

    def mark(self, note: str) -> str:
        number = self._numbers.setdefault(note, len(self._numbers) + 1)
        link = f'href="#{self._name}-note-{number}" aria-label="note {number}"'
        return f"<sup><a {link}>†{number}</a></sup>"

    def listed(self) -> str:
        lines = "".join(
            f'<li id="{self._name}-note-{number}">†{number} {text(note)}</li>\n'
            for note, number in self._numbers.items()
        )
        return f'<ul class="footnotes">\n{lines}</ul>\n' if lines else ""


def check_table(table: Table) -> None:
    names = [column.name for column in table.columns]
    if len(set(names)) < len(names):
        raise _refused(table, f"two of its columns have the same name: {', '.join(names)}")
    for row in table.rows:
        if len(row.cells) != len(names):
            counts = f"{len(row.cells)} cells for {len(names)} columns"
            raise _refused(table, f"row {row.name!r} has {counts}")


def _heads(columns: Sequence[Column]) -> str:
    first = '<th scope="col"><span class="unseen">Row</span></th>'
    return first + "".join(
        f'<th scope="col" class="{_class(column)}">{text(column.title)}{_arrow(column)}</th>'
        for column in columns
    )


def _arrow(column: Column) -> str:
    if column.better is None:
        return ""
    return f'&nbsp;<span title="{column.better} is better">{ARROWS[column.better]}</span>'


def _row(columns: Sequence[Column], row: Row, best: Sequence[str | None], notes: _Notes) -> str:
    opening = f'<tr class="{row.standing}"><th scope="row">{text(row.title)}</th>'
    if row.note is not None and all(cell is None for cell in row.cells):
        note = f'<td class="note" colspan="{len(columns)}"><div>{text(row.note)}</div></td>'
        return f"{opening}{note}</tr>\n"
    rated = best if row.standing != "reference" else [None] * len(columns)
    cells = "".join(
        f'<td class="{_class(column)}">{_cell(column, cell, top, notes)}</td>'
        for column, cell, top in zip(columns, row.cells, rated, strict=True)
    )
    return f"{opening}{cells}</tr>\n{_note(columns, row)}"


def _note(columns: Sequence[Column], row: Row) -> str:
    if row.note is None:
        return ""
    return (
        f'<tr class="{row.standing} below"><td class="note" colspan="{len(columns) + 1}">'
        f"<div>{text(row.title)}: {text(row.note)}</div></td></tr>\n"
    )


def _cell(column: Column, cell: Value | str | None, best: str | None, notes: _Notes) -> str:
    if cell is None:
        return f'<span class="nothing">{NOTHING}</span>'
    if isinstance(cell, str):
        return text(cell)
    spread = _spread(column, cell)
    shown = text((quantity if spread is None else rounded)(column, cell.value))
    is_best = rounded(column, cell.value) == best
    parts = [f"<strong>{shown}</strong>" if is_best else f"<span>{shown}</span>"]
    if spread is not None:
        parts.append(f'<span class="spread">{text(spread)}</span>')
    parts += _paper(column, cell)
    if cell.doubt is not None:
        parts[-1] += notes.mark(cell.doubt)
    return " ".join(parts)


def _spread(column: Column, cell: Value) -> str | None:
    if cell.sd is not None and math.isfinite(cell.sd):
        return f"± {rounded(column, cell.sd)}" if is_seen(column, cell.value, cell.sd) else None
    if cell.low is not None and cell.high is not None:
        return f"[{rounded(column, cell.low)}, {rounded(column, cell.high)}]"
    return None


def _paper(column: Column, cell: Value) -> list[str]:
    if cell.paper is None:
        return []
    parts = [f'<br><span class="paper">paper {text(quantity(column, cell.paper))}</span>']
    if cell.value is not None and math.isfinite(cell.value):
        apart = difference(column, cell.value - cell.paper)
        parts.append(f'<span class="paper">({apart})</span>')
    return parts


def _best(table: Table, place: int) -> str | None:
    """The best number of a column as it is shown, so that equal ones are all marked. None if
    there are fewer than two numbers, or the column has no better end."""
    column = table.columns[place]
    rated = [
        cell.value
        for row in table.rows
        if row.standing != "reference" and isinstance(cell := row.cells[place], Value)
        if cell.value is not None and math.isfinite(cell.value)
    ]
    if column.better is None or len(rated) < 2:
        return None
    return rounded(column, max(rated) if column.better == "higher" else min(rated))


def _class(column: Column) -> str:
    return CLASSES.get(column.kind, "number")


def _no_rows(table: Table) -> str:
    return f'<tr><td colspan="{len(table.columns) + 1}">No rows.</td></tr>\n'


def _refused(table: Table, why: str) -> ConfigError:
    return ConfigError(
        f"report: table {table.name!r} ({table.title}) cannot be shown: {why}. "
        "Nothing was written; fix the study that made it."
    )


ABOUT_ROW = ("row", "title", "standing")
NOTE = "note"
COMPANIONS = tuple(field.name for field in fields(Value) if field.name != "value")


def table_csv(table: Table) -> bytes:
    """The column ``name`` holds the value; ``name.sd``, ``name.low``, ``name.high``, ``name.paper``
    and ``name.doubt`` exist if any row has them. (With a point, because a measure may itself be
    called ``confidence_sd``.) Missing values are empty."""
    companions = [_companions(table, place) for place in range(len(table.columns))]
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    heads = [
        name
        for column, own in zip(table.columns, companions, strict=True)
        for name in (column.name, *(f"{column.name}.{one}" for one in own))
    ]
    writer.writerow([*ABOUT_ROW, *heads, NOTE])
    for row in table.rows:
        writer.writerow(_line(row, companions))
    return written.getvalue().encode()


def _companions(table: Table, place: int) -> tuple[str, ...]:
    cells = [cell for row in table.rows if isinstance(cell := row.cells[place], Value)]
    return tuple(
        name for name in COMPANIONS if any(getattr(cell, name) is not None for cell in cells)
    )


def _line(row: Row, companions: list[tuple[str, ...]]) -> Iterator[str]:
    yield from (row.name, row.title, row.standing)
    for cell, own in zip(row.cells, companions, strict=True):
        if isinstance(cell, Value):
            yield from (_plain(getattr(cell, name)) for name in ("value", *own))
        else:
            yield from (cell or "", *[""] * len(own))
    yield row.note or ""


def _plain(value: float | str | None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value)
