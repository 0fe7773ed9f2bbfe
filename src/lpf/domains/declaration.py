"""Declaration of a domain: predicates, fields of the entities' records, and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from lpf.domains.wordings import WordingCell
from lpf.schema import Predicate, Relation, Schema
from lpf.types import FloatArray

Value = str | int | float | bool


class Field(Protocol):
    """A field of an entity's record. Its value increases with ``draws`` uniform numbers in [0, 1).

    ``weight``: how much a high value speaks for the last value of the predicate. ``is_text``:
    sentences may contain it. ``is_shared``: entities of one group have the same value.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def weight(self) -> float: ...
    @property
    def draws(self) -> int: ...
    @property
    def is_text(self) -> bool: ...
    @property
    def is_shared(self) -> bool: ...
    @property
    def described(self) -> str: ...
    def value(self, uniform: Sequence[float]) -> Value: ...


@dataclass(frozen=True)
class NameField:
    """A name joined from one random entry of each list in ``parts``."""

    name: str
    parts: tuple[tuple[str, ...], ...]
    joiner: str = " "
    weight: float = 0.0
    kind: str = "name"
    is_text: bool = True
    is_shared: bool = True

    @property
    def draws(self) -> int:
        return len(self.parts)

    @property
    def described(self) -> str:
        return f"one of {math.prod(map(len, self.parts)):,} names"

    def value(self, uniform: Sequence[float]) -> str:
        drawn = zip(self.parts, uniform, strict=True)
        return self.joiner.join(part[int(u * len(part))] for part, u in drawn)


@dataclass(frozen=True)
class ChoiceField:
    """One of several words or, with kind ``year``, of several years."""

    name: str
    choices: tuple[str, ...] | tuple[int, ...]
    kind: str = "choice"
    weight: float = 0.0
    draws: int = 1
    is_text: bool = True

    @property
    def is_shared(self) -> bool:
        return self.kind == "choice"

    @property
    def described(self) -> str:
        if self.kind == "year":
            return ", ".join(map(str, self.choices))
        return f"one of {len(self.choices)} words, such as {self.choices[0]}"

    def value(self, uniform: Sequence[float]) -> Value:
        return self.choices[int(uniform[0] * len(self.choices))]


@dataclass(frozen=True)
class NumberField:
    """A number between ``low`` and ``high``, rounded to ``decimals`` (kind ``integer``: to 0)."""

    name: str
    low: float
    high: float
    decimals: int = 0
    weight: float = 0.0
    kind: str = "number"
    draws: int = 1
    is_text: bool = False
    is_shared: bool = False

    @property
    def described(self) -> str:
        return f"{self.low:,.{self.decimals}f} to {self.high:,.{self.decimals}f}"

    def value(self, uniform: Sequence[float]) -> Value:
        number = self.low + (self.high - self.low) * uniform[0]
        if self.kind == "integer":
            return math.floor(number + 0.5)
        return round(number, self.decimals)


@dataclass(frozen=True)
class FlagField:
    """A boolean, True for draws above 0.5."""

    name: str
    weight: float = 0.0
    kind: str = "flag"
    draws: int = 1
    is_text: bool = False
    is_shared: bool = False

    @property
    def described(self) -> str:
        return "yes or no"

    def value(self, uniform: Sequence[float]) -> bool:
        return uniform[0] > 0.5


# Facts about a past year do not become stale.
LASTING_DAYS = 3650.0


@dataclass(frozen=True)
class Related:
    """A second predicate; ``table`` is P(its value | main value), one row per main value."""

    predicate: str
    values: tuple[str, ...]
    table: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Aspect:
    """A topic of evidence: its sources, and the sentences for each symbol (single values first,
    then pairs of adjacent values)."""

    name: str
    sources: tuple[str, ...]
    cells: tuple[WordingCell, ...]


@dataclass(frozen=True)
class Domain:
    """A domain. ``grouped_by`` names the field of years if the same thing appears as one entity per
    year (a group); None if entities are unrelated."""

    name: str
    letter: str
    task: str
    predicate: str
    values: tuple[str, ...]
    shares: tuple[float, ...]
    value_meanings: tuple[str, ...]
    score_field: str
    related: Related
    fields: tuple[Field, ...]
    aspects: tuple[Aspect, ...]
    evidence_letter: str = "E"
    grouped_by: str | None = None

    @cached_property
    def symbols(self) -> tuple[tuple[str, ...], ...]:
        """What each symbol shows: one value, or two adjacent values."""
        return (*((value,) for value in self.values), *pairwise(self.values))

    @property
    def cells(self) -> Iterator[WordingCell]:
        return (cell for aspect in self.aspects for cell in aspect.cells)

    @property
    def sentence_count(self) -> int:
        return sum(len(cell.sentences) for cell in self.cells)

    @property
    def wording_count(self) -> int:
        return sum(cell.wordings for cell in self.cells)

    @cached_property
    def table(self) -> FloatArray:
        """P(related value | value), [V, W]."""
        return np.array(self.related.table, dtype=np.float64)

    @cached_property
    def years(self) -> tuple[int, ...]:
        """The years of a group; empty if there are no groups."""
        for field in self.fields:
            if field.name == self.grouped_by and isinstance(field, ChoiceField):
                return tuple(int(year) for year in field.choices if field.kind == "year")
        return ()

    @cached_property
    def dated_by(self) -> str | None:
        """The field with the year of the evidence: the first field of years, or None."""
        dated = [one for one in self.fields if isinstance(one, ChoiceField) and one.kind == "year"]
        return dated[0].name if dated else None

    def schema(self, shares: tuple[float, ...] | None = None) -> Schema:
        """Return the schema of both predicates; priors follow ``shares`` (or the domain's)."""
        prior = shares or self.shares
        implied = tuple(float(share) for share in np.array(prior) @ self.table)
        related = Predicate(self.related.predicate, self.related.values, implied, LASTING_DAYS)
        main = Predicate(self.predicate, self.values, prior, LASTING_DAYS, self.task)
        return Schema((main, related), (Relation((main.name, related.name)),))
