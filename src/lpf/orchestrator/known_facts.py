"""When a known fact is the answer, and what it says about other predicates if it is not.

A fact that is certain and fresh is hard evidence. An uncertain or old fact is a likelihood: its
value is believed with its confidence, the rest is shared by the other values. Beyond its staleness
period, a fact loses half of its advantage over chance with every further period, and is left out
when less than a hundredth remains. A note says what became of each stale fact.
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
from lpf.storage.values import MICROS_PER_DAY, from_micros
from lpf.types import FloatArray

FADED = 0.01  # what a stale fact says beyond chance; below this it is left out


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
) -> tuple[Facts, tuple[FactUsed, ...], tuple[str, ...]]:
    """Facts for the circuit, from the store's rows (predicate, value, confidence, timestamp,
    source, fact_id), and a note on each stale one. Facts about predicates that the schema no
    longer has are left out."""
    found = [_used(row, schema, as_of, policy) for row in rows if row[0] in schema]
    notes = tuple(_fading(fact, schema) for fact in found if fact.strength != fact.confidence)
    used = tuple(fact for fact in found if not _is_faded(fact, schema))
    hard = {fact.predicate: fact.value for fact in used if fact.role == "hard"}
    soft = {
        fact.predicate: likelihood(schema[fact.predicate], fact.value, fact.strength)
        for fact in used
        if fact.role == "soft"
    }
    return Facts(hard, soft), used, notes


def unused_note(predicate: Predicate, row: tuple[Any, ...], as_of: int, why: str) -> str:
    """The note on a fact about the predicate itself (value, confidence, timestamp, ...) that is
    too old or too uncertain to be the answer, and that cannot take part either."""
    value, confidence, timestamp = row[:3]
    fact = _described(predicate.name, value, timestamp)
    if as_of - timestamp > staleness_micros(predicate):
        return f"{fact} {_overdue(predicate)}: {why}"
    return f"{fact} is too uncertain to be the answer ({_share(confidence)}): {why}"


def _is_faded(fact: FactUsed, schema: Schema) -> bool:
    chance = 1.0 / len(schema[fact.predicate].values)
    return fact.strength != fact.confidence and abs(fact.strength - chance) < FADED


def _fading(fact: FactUsed, schema: Schema) -> str:
    counts = f"it counts with {_share(fact.strength)} instead of {_share(fact.confidence)}"
    if _is_faded(fact, schema):
        counts = "it is not used, since by now it says no more than chance"
    described = _described(fact.predicate, fact.value, fact.timestamp)
    return f"{described} {_overdue(schema[fact.predicate])}: {counts}"


def _described(predicate: str, value: str, timestamp: int) -> str:
    return f"the fact '{predicate} = {value}' of {from_micros(timestamp):%Y-%m-%d}"


def _overdue(predicate: Predicate) -> str:
    return f"is older than its {predicate.staleness_days:g} days (staleness_days in lpf.toml)"


def _share(probability: float) -> str:
    return f"{100 * probability:.3g} %"


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
