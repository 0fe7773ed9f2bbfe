"""Tables of a study as CSV: every number with all its digits, and its companions beside it."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import fields
from io import StringIO

from lpf.experiments.exhibits import Row, Table, Value

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
