"""Canonical facts: what is known of an entity, with its history.

A fact is never changed. A correction adds another that takes its place, a withdrawal marks it;
either way it counts no more, for any moment, and stays to be seen.

The statements of the facts store, each written once for both databases.

Canonical facts as they are given and as they are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain, groupby
from operator import itemgetter

from sqlalchemy import BigInteger, bindparam, func, insert, literal_column, select, update

from lpf.errors import FactError, UnknownPredicateError, UnknownValueError
from lpf.schema import Schema
from lpf.storage.connections import Prepared
from lpf.storage.database import Connection, Database, Row
from lpf.storage.lookups import KEYS, any_of, look_up, take_numbers
from lpf.storage.tables import facts
from lpf.storage.values import (
    END_OF_TIME,
    from_micros,
    iso,
    now_micros,
    to_micros,
    too_long,
    unusable_name,
)

COLUMNS = tuple(facts.c.keys())
_COUNTS = facts.c.superseded_at.is_(None)
_KNOWN_BY_THEN = facts.c.timestamp <= bindparam("as_of", type_=BigInteger)
_ANSWER = (facts.c.value, facts.c.confidence, facts.c.timestamp, facts.c.source, facts.c.fact_id)

CANONICAL = Prepared(
    select(*_ANSWER)
    .where(
        facts.c.entity_id == bindparam("entity_id"),
        facts.c.predicate == bindparam("predicate"),
        _KNOWN_BY_THEN,
        _COUNTS,
    )
    .order_by(facts.c.timestamp.desc(), facts.c.fact_id.desc())
    .limit(literal_column("1")),
    "entity_id",
    "predicate",
    "as_of",
)
OF_ENTITY = Prepared(
    select(facts.c.predicate, *_ANSWER)
    .where(facts.c.entity_id == bindparam("entity_id"), _KNOWN_BY_THEN, _COUNTS)
    .order_by(facts.c.predicate, facts.c.timestamp, facts.c.fact_id),
    "entity_id",
    "as_of",
)
TABLE = Prepared(
    select(facts.c.entity_id, facts.c.predicate, facts.c.value, facts.c.confidence)
    .where(_KNOWN_BY_THEN, _COUNTS)
    .order_by(facts.c.entity_id, facts.c.predicate, facts.c.timestamp, facts.c.fact_id),
    "as_of",
)
BY_ID = Prepared(select(facts).where(facts.c.fact_id == bindparam("fact")), "fact")
CONTENTS = Prepared(
    select(
        facts.c.entity_id,
        facts.c.predicate,
        facts.c.value,
        facts.c.confidence,
        facts.c.timestamp,
        facts.c.source,
    ).where(any_of(facts.c.entity_id)),
    *KEYS,
)
INSERT = Prepared(insert(facts).values({name: bindparam(name) for name in COLUMNS}), *COLUMNS)
SUPERSEDE = Prepared(
    update(facts)
    .where(facts.c.fact_id == bindparam("fact"))
    .values(superseded_at=bindparam("moment"), superseded_by=bindparam("by")),
    "moment",
    "by",
    "fact",
)
COUNT = Prepared(select(func.count()).select_from(facts).where(_COUNTS))


@cache
def listing(superseded: bool, *columns: str) -> Prepared:
    """Facts after one, in order, that have the given values in ``columns``."""
    same = [facts.c[name] == bindparam(name) for name in columns]
    counting = [] if superseded else [_COUNTS]
    statement = select(facts).where(*same, facts.c.fact_id > bindparam("after"), *counting)
    ordered = statement.order_by(facts.c.fact_id).limit(bindparam("limit"))
    return Prepared(ordered, *columns, "after", "limit")


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


__all__ = ["Fact", "FactStore", "NewFact"]

SERIES = "facts"


class FactStore:
    """All facts of one store. ``as_of`` and ``now`` are in microseconds since 1970."""

    def __init__(self, database: Database, schema: Schema) -> None:
        self.database = database
        self.schema = schema

    def canonical(self, entity_id: str, predicate: str, as_of: int) -> Row | None:
        """The newest fact by ``as_of``: (value, confidence, timestamp, source, fact_id)."""
        return self.database.row(CANONICAL, (entity_id, predicate, as_of))

    def of_entity(self, entity_id: str, as_of: int) -> list[Row]:
        """The newest fact of every predicate that has one: (predicate, value, confidence,
        timestamp, source, fact_id)."""
        rows = self.database.rows(OF_ENTITY, (entity_id, as_of))
        return list({row[0]: row for row in rows}.values())

    def get(self, fact_id: int) -> Fact:
        found = self.database.row(BY_ID, (fact_id,))
        if found is None:
            raise FactError(f"fact {fact_id}: is not in the store. Nothing was changed.")
        return fact_of(found)

    def add(self, facts: Sequence[NewFact], now: int | None = None) -> list[Fact]:
        """Adds all facts or none, and returns those that were new. One that is in the store
        already, counting or superseded, is not added again. FactError names the row refused."""
        now = now_micros() if now is None else now
        given = dict.fromkeys(checked_rows(facts, self.schema, now))
        with self.database.writing() as connection:
            # Taking a number holds back other writers of facts, so what is new now stays so.
            take_numbers(self.database, connection, SERIES, 0)
            known = set(look_up(self.database, CONTENTS, (row[0] for row in given)))
            return self._insert(connection, [row for row in given if row not in known], now)

    def correct(
        self,
        fact_id: int,
        *,
        value: str | None = None,
        confidence: float | None = None,
        timestamp: datetime | None = None,
        source: str | None = None,
        now: int | None = None,
    ) -> Fact:
        """Puts a fact with the given changes in the place of one that counts. FactError where it
        is superseded already, or where nothing changes."""
        now = now_micros() if now is None else now
        given = {"value": value, "confidence": confidence, "timestamp": timestamp, "source": source}
        changes = {name: new for name, new in given.items() if new is not None}
        with self.database.writing() as connection:
            old = self._counting(connection, fact_id)
            corrected = replace(old, **changes)  # type: ignore[arg-type]
            if corrected == old:
                raise FactError(f"fact {fact_id}: nothing would change. Nothing was written.")
            rows = checked_rows([_as_new(corrected)], self.schema, now)
            (written,) = self._insert(connection, rows, now)
            self.database.run(connection, SUPERSEDE, (now, written.fact_id, fact_id))
        return written

    def withdraw(self, fact_id: int, now: int | None = None) -> Fact:
        """Marks a fact as counting no more, with nothing in its place."""
        now = now_micros() if now is None else now
        with self.database.writing() as connection:
            self._counting(connection, fact_id)
            self.database.run(connection, SUPERSEDE, (now, None, fact_id))
        return self.get(fact_id)

    def history(self, entity_id: str, predicate: str | None = None) -> list[Fact]:
        """All facts of an entity, counting or not, in the order they were recorded."""
        return self._page({"entity_id": entity_id, "predicate": predicate}, END_OF_TIME, 0, True)

    def listed(
        self,
        entity_id: str | None = None,
        predicate: str | None = None,
        limit: int = 100,
        after_fact: int = 0,
        superseded: bool = False,
    ) -> list[Fact]:
        """A page of the facts that count, or of all; the next starts after its last fact."""
        asked = {"entity_id": entity_id, "predicate": predicate}
        return self._page(asked, limit, after_fact, superseded)

    def table(
        self, min_confidence: float = 0.0, as_of: int | None = None
    ) -> Iterator[tuple[str, dict[str, str]]]:
        """Entity by entity, the values of its newest facts that are at least so sure."""
        as_of = now_micros() if as_of is None else as_of
        rows = chain.from_iterable(self.database.stream(TABLE, (as_of,)))
        for entity_id, group in groupby(rows, key=itemgetter(0)):
            newest = {predicate: (value, sure) for _, predicate, value, sure in group}
            values = {
                name: value for name, (value, sure) in newest.items() if sure >= min_confidence
            }
            if values:
                yield entity_id, values

    def count(self) -> int:
        """How many facts count."""
        found = self.database.row(COUNT)
        return 0 if found is None else int(found[0])

    def _page(
        self, asked: dict[str, str | None], limit: int, after_fact: int, superseded: bool
    ) -> list[Fact]:
        given = {name: value for name, value in asked.items() if value is not None}
        statement = listing(superseded, *given)
        rows = self.database.rows(statement, (*given.values(), after_fact, limit))
        return [fact_of(row) for row in rows]

    def _insert(self, connection: Connection, rows: Sequence[Row], now: int) -> list[Fact]:
        numbers = take_numbers(self.database, connection, SERIES, len(rows))
        numbered = zip(numbers, rows, strict=True)
        full = [(number, *row, now, None, None) for number, row in numbered]
        self.database.run_many(connection, INSERT, full)
        return [fact_of(row) for row in full]

    def _counting(self, connection: Connection, fact_id: int) -> Fact:
        """The fact, if it may still be corrected; holds back other writers of facts."""
        take_numbers(self.database, connection, SERIES, 0)
        fact = self.get(fact_id)
        if fact.superseded_at is None:
            return fact
        by = "withdrawn" if fact.superseded_by is None else f"superseded by {fact.superseded_by}"
        raise FactError(
            f"fact {fact_id}: was {by} at {iso(to_micros(fact.superseded_at))}. Nothing was "
            "changed; correct the fact that counts now."
        )


def _as_new(fact: Fact) -> NewFact:
    return NewFact(
        fact.entity_id,
        fact.predicate,
        fact.value,
        fact.timestamp,
        fact.confidence,
        fact.source,
        where=f"correction of fact {fact.fact_id}",
    )
