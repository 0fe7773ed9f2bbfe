"""What a domain is: a question, a related one, an entity's record, and sentences about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from lpf.domains.fields import ChoiceField, Field
from lpf.domains.wordings import Cell
from lpf.schema import Predicate, Relation, Schema
from lpf.types import FloatArray

LASTING_DAYS = 3650.0


@dataclass(frozen=True)
class Related:
    """A second predicate; ``table`` is P(its value | main value), a row a main value."""

    predicate: str
    values: tuple[str, ...]
    table: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Aspect:
    """One side of the matter: who speaks of it, and a cell of sentences for each symbol: first the
    single values in their order, then the pairs of neighbours."""

    name: str
    sources: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Domain:
    """A declaration, checked. ``grouped_by`` names the field of years in which one and the same
    thing comes again as a further entity; None where entities are unrelated."""

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
        """What each numbered symbol shows: a value, or two that it leaves open."""
        return (*((value,) for value in self.values), *pairwise(self.values))

    @property
    def cells(self) -> Iterator[Cell]:
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
        """The years that a group goes through; empty where there are no groups."""
        for field in self.fields:
            if field.name == self.grouped_by and isinstance(field, ChoiceField):
                return tuple(int(year) for year in field.choices if field.kind == "year")
        return ()

    @cached_property
    def dated_by(self) -> str | None:
        """The field whose year an entity's evidence belongs to: the first one of years, if any."""
        dated = [one for one in self.fields if isinstance(one, ChoiceField) and one.kind == "year"]
        return dated[0].name if dated else None

    def schema(self, shares: tuple[float, ...] | None = None) -> Schema:
        """Both predicates, with the priors that ``shares`` (else the domain's own) give them."""
        prior = shares or self.shares
        implied = tuple(float(share) for share in np.array(prior) @ self.table)
        # What is known of a year that is over does not go out of date with the calendar.
        related = Predicate(self.related.predicate, self.related.values, implied, LASTING_DAYS)
        main = Predicate(self.predicate, self.values, prior, LASTING_DAYS, self.task)
        return Schema((main, related), (Relation((main.name, related.name)),))
