"""When a known fact is the answer, and what it says about other predicates if it is not.

A fact that is certain and fresh is hard evidence. An uncertain or old fact is a likelihood: its
value is believed with its confidence, the rest is shared by the other values. Beyond its staleness
period, a fact loses half of its advantage over chance with every further period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpf.engine import Facts
from lpf.errors import ConfigError
from lpf.results import FactUsed
from lpf.schema import Predicate, Schema
from lpf.storage.values import MICROS_PER_DAY
from lpf.types import FloatArray


@dataclass(frozen=True)
class FactPolicy:
    """A fresh fact with at least the confidence ``min_confidence`` is the answer; a fresh fact
    about another predicate with at least the confidence ``certain`` is hard evidence."""

    min_confidence: float = 0.95
    certain: float = 1.0

    def __post_init__(self) -> None:
        for name in ("min_confidence", "certain"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ConfigError(f"facts.{name}: must be in (0, 1], got {getattr(self, name)!r}.")
        if self.certain < self.min_confidence:
            raise ConfigError(
                f"facts.certain: must be {self.min_confidence!r} (min_confidence) or above, got "
                f"{self.certain!r}: a fact that is too uncertain to answer cannot be certain."
            )


def staleness_micros(predicate: Predicate) -> int:
    return int(predicate.staleness_days * MICROS_PER_DAY)


def canonical_probabilities(
    values: tuple[str, ...], value: str, confidence: float
) -> tuple[float, ...]:
    """The fact's value gets its confidence; the other values share the rest equally."""
    if len(values) == 1:
        return (1.0,)
    rest = (1.0 - confidence) / (len(values) - 1)
    return tuple([confidence if other == value else rest for other in values])


def strength(predicate: Predicate, confidence: float, age: int) -> float:
    """The probability with which a fact ``age`` microseconds old is believed."""
    overdue = age / (predicate.staleness_days * MICROS_PER_DAY) - 1.0
    chance = 1.0 / len(predicate.values)
    return confidence if overdue <= 0 else chance + (confidence - chance) * 2.0**-overdue


def known_facts(
    rows: Sequence[tuple[Any, ...]], schema: Schema, as_of: int, policy: FactPolicy
) -> tuple[Facts, tuple[FactUsed, ...]]:
    """Facts for the circuit, from the store's rows (predicate, value, confidence, timestamp,
    source, fact_id). Facts about predicates that the schema no longer has are left out."""
    used = tuple(_used(row, schema, as_of, policy) for row in rows if row[0] in schema)
    hard = {fact.predicate: fact.value for fact in used if fact.role == "hard"}
    soft = {
        fact.predicate: likelihood(schema[fact.predicate], fact.value, fact.strength)
        for fact in used
        if fact.role == "soft"
    }
    return Facts(hard, soft), used


def likelihood(predicate: Predicate, value: str, believed: float) -> FloatArray:
    return np.array(canonical_probabilities(predicate.values, value, believed))


def _used(row: tuple[Any, ...], schema: Schema, as_of: int, policy: FactPolicy) -> FactUsed:
    name, value, confidence, timestamp, _, fact_id = row
    predicate = schema[name]
    predicate.position(value)  # UnknownValueError if the schema no longer has it
    age = as_of - timestamp
    certain = confidence >= policy.certain and age <= staleness_micros(predicate)
    return FactUsed(
        fact_id,
        name,
        value,
        confidence,
        timestamp,
        "hard" if certain else "soft",
        strength(predicate, confidence, age),
    )
