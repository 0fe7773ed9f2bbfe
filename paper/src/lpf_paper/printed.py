"""The numbers that the paper prints, as data, with the doubts about them.

``printed.toml`` holds them as printed, right or wrong. A doubt says why a number cannot be right or
contradicts another one; it never changes the number.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from lpf.errors import ConfigError


@dataclass(frozen=True)
class Printed:
    """One number of the paper, printed with ``decimals`` places: the true value lies within
    ``half_step`` of it. ``doubts`` is empty if there are none."""

    value: float
    decimals: int
    doubts: tuple[str, ...] = ()

    @property
    def half_step(self) -> float:
        """Half a unit of the last printed place: the largest error from rounding."""
        return float(0.5 * 10.0**-self.decimals)


@dataclass(frozen=True)
class Doubt:
    """Applies to the cells of ``tables`` in ``rows`` and ``columns``; empty means all."""

    tables: tuple[str, ...]
    why: str
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def concerns(self, table: str, row: str, column: str) -> bool:
        return (
            table in self.tables
            and (not self.rows or row in self.rows)
            and (not self.columns or column in self.columns)
        )


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper. ``rows`` holds the printed numbers by row and column.

    ``measure`` is what the cells hold if the columns are methods or settings. ``domain``,
    ``method`` and ``seed`` apply to the whole table, and ``selected`` is the seed that training
    chose; each is None if it does not apply. ``brier_divided_by`` is the K by which a printed
    Brier score must be multiplied to be comparable with ``lpf.metrics.brier``.
    """

    slug: str
    section: str
    label: str
    about: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Printed]]
    measure: str | None = None
    domain: str | None = None
    method: str | None = None
    seed: int | None = None
    selected: int | None = None
    brier_divided_by: int = 1
    entities: int | None = None
    entities_by_row: Mapping[str, int] = field(default_factory=dict)

    def value(self, row: str, column: str) -> Printed | None:
        """None if the paper prints nothing here: no such row or column, or an empty cell."""
        return self.rows.get(row, {}).get(column)

    def entities_of(self, row: str) -> int | None:
        """The number of entities behind a row's accuracy, if the paper states it."""
        return self.entities_by_row.get(row, self.entities)


def printed_slugs() -> tuple[str, ...]:
    """Names of all tables, in the order of the paper's sections."""
    return tuple(_document()["tables"])


def printed_doubts() -> tuple[Doubt, ...]:
    return _doubts()


@lru_cache
def printed_table(slug: str) -> PrintedTable:
    """The table of this name. ConfigError lists the names if there is none."""
    tables = _document()["tables"]
    if slug not in tables:
        raise ConfigError(f"unknown table {slug!r} of the paper; choose from {list(tables)}.")
    fields = dict(tables[slug])
    rows = {
        row: MappingProxyType(
            {column: _printed(number, slug, row, column) for column, number in cells.items()}
        )
        for row, cells in fields.pop("rows").items()
    }
    columns = tuple(fields.pop("columns"))
    return PrintedTable(slug=slug, columns=columns, rows=MappingProxyType(rows), **fields)


def _printed(number: Decimal | int, slug: str, row: str, column: str) -> Printed:
    doubts = tuple(doubt.why for doubt in _doubts() if doubt.concerns(slug, row, column))
    return Printed(float(number), _decimals(number), doubts)


def _decimals(number: Decimal | int) -> int:
    exponent = Decimal(number).as_tuple().exponent
    assert isinstance(exponent, int), f"{number} is not finite"
    return max(0, -exponent)


@lru_cache
def _doubts() -> tuple[Doubt, ...]:
    return tuple(
        Doubt(
            tables=tuple(entry["tables"]),
            why=entry["why"],
            rows=tuple(entry.get("rows", ())),
            columns=tuple(entry.get("columns", ())),
        )
        for entry in _document()["doubts"]
    )


@lru_cache
def _document() -> dict[str, Any]:
    # Decimals keep the printed places, which floats lose: 0.860 would become 0.86.
    text = files("lpf_paper").joinpath("printed.toml").read_text(encoding="utf-8")
    return tomllib.loads(text, parse_float=Decimal)
