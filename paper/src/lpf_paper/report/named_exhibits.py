"""Names for files and for anchors in a page: short, safe and unique."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from lpf_paper.exhibits import Example, Figure, StudyResult, Table

LONGEST = 80  # characters; file systems allow 255 bytes


@dataclass(frozen=True)
class NamedTable:
    table: Table
    name: str

    @property
    def file(self) -> str:
        return f"tables/{self.name}.csv"


@dataclass(frozen=True)
class NamedFigure:
    figure: Figure
    name: str


@dataclass(frozen=True)
class NamedExample:
    example: Example
    items: NamedTable


@dataclass(frozen=True)
class NamedStudy:
    study: StudyResult
    name: str
    tables: tuple[NamedTable, ...]
    figures: tuple[NamedFigure, ...]
    examples: tuple[NamedExample, ...]

    @property
    def all_tables(self) -> tuple[NamedTable, ...]:
        """Tables of examples included."""
        return (*self.tables, *(one.items for one in self.examples))


def named(studies: Sequence[StudyResult]) -> list[NamedStudy]:
    """The same studies always get the same names. An exhibit's name begins with its study's."""
    names = _UsedNames()
    return [_named(study, names) for study in studies]


def _named(study: StudyResult, names: _UsedNames) -> NamedStudy:
    name = names.take(study.name)
    tables = tuple(NamedTable(one, names.within(name, one.name)) for one in study.tables)
    figures = tuple(NamedFigure(one, names.within(name, one.name)) for one in study.figures)
    examples = tuple(
        NamedExample(one, NamedTable(one.items, names.take(f"{name}-example-{one.items.name}")))
        for one in study.examples
    )
    return NamedStudy(study, name, tables, figures, examples)


class _UsedNames:
    """Gives each name once; the second time it gets a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def within(self, study: str, wanted: str) -> str:
        """Begins with the study's name, which is not repeated."""
        own = _plain(wanted)
        return self.take(own if own.startswith(f"{study}-") else f"{study}-{own}")

    def take(self, wanted: str) -> str:
        base = _plain(wanted)[:LONGEST] or "unnamed"
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}-{number}", number + 1
        self._taken.add(name)
        return name


def _plain(wanted: str) -> str:
    ascii_only = normalize("NFKD", wanted).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only).strip("-")
