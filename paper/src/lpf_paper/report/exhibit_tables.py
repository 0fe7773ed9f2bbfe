"""Tables of a study as HTML: our number, how far it spreads, and the paper's beside it.

Tables of a study as CSV: every number with all its digits, and its companions beside it.

The tables of an experiment in few bytes: to keep beside the code, and to quote from.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from io import StringIO

from lpf.errors import ConfigError
from lpf.report.page import text
from lpf_paper.document import Experiment
from lpf_paper.exhibits import Column, Row, Table, Value
from lpf_paper.report.named_exhibits import NamedStudy
from lpf_paper.report.quantities import NOTHING, difference, is_seen, quantity, rounded

CLASSES = {"word": "word", "text": "long"}  # every other kind is a number
ARROWS = {"higher": "↑", "lower": "↓"}
# What the marks in a cell mean; a page says it once, before the first table.
READING = (
    "In tables, ± is one standard deviation over runs: seeds, data sets or domains, as the caption "
    "says. It is left out where it does not reach the last digit of its number. Square brackets "
    "hold an interval where there is no such deviation. Below a number stands the one that the "
    "paper prints in its place, with ours minus it in brackets; † marks one that cannot be right, "
    "and says why below the table. Arrows show which end of a column is to be wished for, and its "
    "best number is bold, references left out. Shaded rows are ours; italic ones are references, "
    "which show what could be reached at best or for nothing."
)


def exhibit_table(table: Table, name: str, file: str) -> str:
    """``name`` begins the ids of its parts; ``file`` is where its numbers stand. ConfigError for
    rows that do not fit the columns."""
    check_table(table)
    notes = _Notes(name)
    best = [_best(table, place) for place in range(len(table.columns))]
    rows = "".join(_row(table.columns, row, best, notes) for row in table.rows)
    return (
        f'<div class="exhibit">\n<h3 id="{name}">{text(table.title)}</h3>\n'
        f'<p class="caption">{text(table.caption)} <span class="file">{text(file)}</span></p>\n'
        f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">\n'
        f'<table class="grid" aria-labelledby="{name}">\n<thead><tr>{_heads(table.columns)}</tr>'
        f"</thead>\n<tbody>\n{rows or _no_rows(table)}</tbody>\n</table>\n</div>\n"
        f"{notes.listed()}</div>"
    )


class _Notes:
    """Footnotes of one table, numbered as they are met; equal texts share a number."""

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
    """The best number of a column, rounded, so that those shown alike are marked alike. None
    where there is nothing to choose from."""
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
        "Nothing was written; mend the study that made it."
    )


ABOUT_ROW = ("row", "title", "standing")
NOTE = "note"
COMPANIONS = tuple(field.name for field in fields(Value) if field.name != "value")


def table_csv(table: Table) -> bytes:
    """A column ``name`` holds the value, ``name.sd``, ``name.low``, ``name.high``, ``name.paper``
    and ``name.doubt`` what goes with it, where any row has it. With a point, as a measure may well
    be called ``confidence_sd`` itself. What is not there is empty."""
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


FORMAT = 1
DIGITS = 4  # that count: noise begins before the fifth
Plain = float | str | list[float | None] | None


def digest(experiment: Experiment, studies: Sequence[NamedStudy]) -> bytes:
    """What was found, and every number of the tables but those of examples. A cell is a number,
    [number, low, high] where it has an interval, a word, or null; the paper's own numbers are left
    out. One row of a table a line, so that two digests can be compared by ``diff``."""
    made = {**asdict(experiment.made), "seeds": list(experiment.made.seeds)}
    lines = [
        "{",
        f' "format": {FORMAT},',
        f' "made": {_json(made)},',
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
    return (
        f'{{"columns": {_json(columns)}, "rows": {_list(map(_row_exhibit_digest, table.rows), 5)}}}'
    )


def _row_exhibit_digest(row: Row) -> list[Plain]:
    return [row.name, row.title, *(_cell_exhibit_digest(cell) for cell in row.cells)]


def _cell_exhibit_digest(cell: Value | str | None) -> Plain:
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
