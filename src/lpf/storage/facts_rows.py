"""Canonical facts as they are given and as they are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lpf.errors import FactError, UnknownPredicateError, UnknownValueError
from lpf.schema import Schema
from lpf.storage.database import Row
from lpf.storage.texts import too_long, unusable_name
from lpf.storage.times import from_micros, iso, to_micros

# Clocks of different machines differ a little; a fact that is later than this is a mistake.
FUTURE_MICROS = 5 * 60 * 1_000_000
# What is known of an entity is of its time; an earlier year is a slip, such as 0205 for 2025.
FIRST_YEAR = 1900
_EARLIEST = to_micros(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact to be added: ``entity_id`` had ``value`` at ``timestamp``. ``where`` is what an error
    calls it, such as its file and line."""

    entity_id: str
    predicate: str
    value: str
    timestamp: datetime
    confidence: float = 1.0
    source: str | None = None
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact in the store. ``superseded_at`` is when it stopped counting, ``superseded_by`` the
    fact that took its place, None where it was withdrawn."""

    fact_id: int
    entity_id: str
    predicate: str
    value: str
    confidence: float
    timestamp: datetime
    source: str | None
    recorded_at: datetime
    superseded_at: datetime | None = None
    superseded_by: int | None = None


def checked_rows(facts: Sequence[NewFact], schema: Schema, now: int) -> list[Row]:
    """(entity_id, predicate, value, confidence, timestamp, source) a fact. FactError names the
    first that is refused."""
    return [
        _checked(fact, fact.where or f"facts[{i}]", schema, now) for i, fact in enumerate(facts)
    ]


def fact_of(row: Row) -> Fact:
    """A row of the table ``facts``."""
    fact_id, entity_id, predicate, value, confidence, timestamp, source = row[:7]
    recorded_at, superseded_at, superseded_by = row[7:]
    return Fact(
        fact_id,
        entity_id,
        predicate,
        value,
        confidence,
        from_micros(timestamp),
        source,
        from_micros(recorded_at),
        None if superseded_at is None else from_micros(superseded_at),
        superseded_by,
    )


def _checked(fact: NewFact, where: str, schema: Schema, now: int) -> Row:
    _check_texts(fact, where)
    try:
        schema[fact.predicate].position(fact.value)
    except UnknownPredicateError as error:
        raise _refusal(where, "predicate", str(error)) from None
    except UnknownValueError as error:
        raise _refusal(where, "value", str(error)) from None
    confidence = _checked_confidence(fact.confidence, where)
    timestamp = _checked_timestamp(fact.timestamp, where, now)
    return (fact.entity_id, fact.predicate, fact.value, confidence, timestamp, fact.source)


def _check_texts(fact: NewFact, where: str) -> None:
    for name in ("entity_id", "predicate", "value", "source"):
        text = getattr(fact, name)
        if name == "source" and text is None:
            continue
        problem = unusable_name(text) or (None if name == "value" else too_long(text, name))
        if problem:
            raise _refusal(where, name, f"{problem}.")


def _checked_confidence(confidence: object, where: str) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise _refusal(where, "confidence", f"must be a number, got {confidence!r}.")
    if math.isnan(confidence) or not 0.0 <= confidence <= 1.0:
        raise _refusal(where, "confidence", f"must lie in [0, 1], got {confidence!r}.")
    return float(confidence)


def _checked_timestamp(timestamp: object, where: str, now: int) -> int:
    if not isinstance(timestamp, datetime) or timestamp.tzinfo is None:
        raise _refusal(where, "timestamp", f"must be a time with its zone, got {timestamp!r}.")
    micros = to_micros(timestamp)
    if micros < _EARLIEST:
        slip = f"lies before the year {FIRST_YEAR}, probably a slip"
        rule = f"{slip}, got {timestamp.isoformat()!r}."
        raise _refusal(where, "timestamp", rule)
    if micros > now + FUTURE_MICROS:
        rule = f"lies in the future: {iso(micros)}, and it is {iso(now)}."
        raise _refusal(where, "timestamp", rule)
    return micros


def _refusal(where: str, name: str, rule: str) -> FactError:
    return FactError(f"{where}: {name}: {rule} No fact was added; correct it and repeat.")
