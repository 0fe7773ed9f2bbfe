"""What a study shows: tables and figures as plain data, not yet drawn.

A study returns exhibits, a report draws them. They can be stored as JSON in between, so a page can
be written again without computing anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal

from lpf.evaluation import Spread
from lpf.evaluation import Standing as Standing

Kind = Literal["share", "number", "seconds", "milliseconds", "bytes", "count", "word", "text"]
Better = Literal["higher", "lower"]
Shape = Literal["lines", "points", "bars", "reliability", "matrix"]


@dataclass(frozen=True)
class Value:
    """One measured number. ``sd`` is over runs, ``low`` and ``high`` bound its interval. ``paper``
    is the number the paper prints here, ``doubt`` the reason why that number cannot be right."""

    value: float | None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    doubt: str | None = None

    @classmethod
    def of(cls, spread: Spread, paper: float | None = None, doubt: str | None = None) -> Value:
        """An infinite mean becomes None; ``Summary.notes`` gives the reason."""
        mean = spread.mean if isfinite(spread.mean) else None
        return cls(mean, spread.sd, spread.low, spread.high, paper, doubt)


@dataclass(frozen=True)
class Column:
    """``better`` says whether high or low values are good, so that the best can be marked."""

    name: str
    title: str
    kind: Kind = "number"
    better: Better | None = None
    decimals: int = 4


@dataclass(frozen=True)
class Row:
    """``cells`` are in the order of the columns; None is an empty cell. ``note`` is about the whole
    row, such as the error that ended a run."""

    name: str
    title: str
    cells: tuple[Value | str | None, ...]
    standing: Standing = "rival"
    note: str | None = None


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Series:
    """Points in the order of ``x``, which holds numbers, or names for bars. ``low`` and ``high``
    bound each point, or are empty. ``standing`` decides colour and line width."""

    name: str
    x: tuple[float | str, ...]
    y: tuple[float | None, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    standing: Standing = "rival"


@dataclass(frozen=True)
class Figure:
    """The shape ``reliability`` has confidence on x, accuracy on y and a diagonal. ``matrix`` has
    one series per row, and x names the columns. ``log_x`` gives x a logarithmic scale."""

    name: str
    title: str
    caption: str
    shape: Shape
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    log_x: bool = False


@dataclass(frozen=True)
class Example:
    """One answer with its evidence. ``facts`` are pairs of name and value, shown as they are;
    ``items`` is a table of its own."""

    title: str
    facts: tuple[tuple[str, str], ...]
    items: Table


@dataclass(frozen=True)
class StudyResult:
    """The result of one study. ``findings`` are sentences with numbers of this run."""

    name: str
    title: str
    question: str
    findings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    examples: tuple[Example, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> StudyResult:
        return cls(
            name=plain["name"],
            title=plain["title"],
            question=plain["question"],
            findings=tuple(plain["findings"]),
            tables=tuple(_table(one) for one in plain["tables"]),
            figures=tuple(_figure(one) for one in plain["figures"]),
            examples=tuple(_example(one) for one in plain["examples"]),
        )


def _table(plain: Mapping[str, Any]) -> Table:
    columns = tuple(Column(**column) for column in plain["columns"])
    return Table(**{**plain, "columns": columns, "rows": tuple(map(_row, plain["rows"]))})


def _row(plain: Mapping[str, Any]) -> Row:
    return Row(**{**plain, "cells": tuple(_cell(cell) for cell in plain["cells"])})


def _cell(plain: Mapping[str, Any] | str | None) -> Value | str | None:
    return Value(**plain) if isinstance(plain, Mapping) else plain


def _figure(plain: Mapping[str, Any]) -> Figure:
    return Figure(**{**plain, "series": tuple(_series(one) for one in plain["series"])})


def _series(plain: Mapping[str, Any]) -> Series:
    lists = {name: _tuple(plain[name]) for name in ("x", "y", "low", "high")}
    return Series(**{**plain, **lists})


def _tuple(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(values)


def _example(plain: Mapping[str, Any]) -> Example:
    facts = tuple((name, value) for name, value in plain["facts"])
    return Example(plain["title"], facts, _table(plain["items"]))
