"""The fact store: known values of entities, with their history.

A fact is never changed. A correction adds a new fact that supersedes it; a withdrawal supersedes
it with nothing. A superseded fact no longer counts, not even for questions about an earlier date,
but stays visible in the history.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain, groupby
from operator import itemgetter

from sqlalchemy import bindparam, func, insert, select, update

from lpf.errors import FactError, StoreDamagedError, UnknownPredicateError, UnknownValueError
from lpf.schema import Schema
from lpf.storage.database import Connection, Database, Row
from lpf.storage.seals import row_seal
from lpf.storage.statements import KEYS, Prepared, any_of
from lpf.storage.tables import facts
from lpf.storage.values import (
    END_OF_TIME,
    from_micros,
    iso,
    length_problem,
    name_problem,
    now_micros,
    to_micros,
)

__all__ = ["Fact", "FactStore", "NewFact"]

SERIES = "facts"
# Clocks of different machines differ a little; a fact further in the future is a mistake.
FUTURE_MICROS = 5 * 60 * 1_000_000
# An earlier year is a typing error, such as 0205 for 2025.
FIRST_YEAR = 1900
_EARLIEST = to_micros(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC))

COLUMNS = tuple(facts.c.keys())
_PREDICATE, _VALUE, _CONFIDENCE, _TIMESTAMP, _SOURCE, _SUPERSEDED_AT = (
    COLUMNS.index(name)
    for name in ("predicate", "value", "confidence", "timestamp", "source", "superseded_at")
)
_by_time = itemgetter(_TIMESTAMP, 0)
_CURRENT = facts.c.superseded_at.is_(None)

# All facts of a question, superseded ones too: a damaged row must not be missed because one of its
# columns no longer fits a condition.
OF_QUESTION = Prepared(
    select(facts).where(
        facts.c.entity_id == bindparam("entity_id"), facts.c.predicate == bindparam("predicate")
    ),
    "entity_id",
    "predicate",
)
OF_ENTITY = Prepared(
    select(facts)
    .where(facts.c.entity_id == bindparam("entity_id"))
    .order_by(facts.c.predicate, facts.c.timestamp, facts.c.fact_id),
    "entity_id",
)
TABLE = Prepared(
    select(facts).order_by(facts.c.entity_id, facts.c.predicate, facts.c.timestamp, facts.c.fact_id)
)
BY_ID = Prepared(select(facts).where(facts.c.fact_id == bindparam("fact")), "fact")
OF_ENTITIES = Prepared(select(facts).where(any_of(facts.c.entity_id)), *KEYS)
INSERT = Prepared(insert(facts).values({name: bindparam(name) for name in COLUMNS}), *COLUMNS)
SUPERSEDE = Prepared(
    update(facts)
    .where(facts.c.fact_id == bindparam("fact"))
    .values(
        superseded_at=bindparam("moment"), superseded_by=bindparam("by"), seal=bindparam("seal")
    ),
    "moment",
    "by",
    "seal",
    "fact",
)
COUNT = Prepared(select(func.count()).select_from(facts).where(_CURRENT))


@cache
def page_statement(superseded: bool, *columns: str) -> Prepared:
    """Facts after a given fact, in order, filtered by the values of ``columns``."""
    same = [facts.c[name] == bindparam(name) for name in columns]
    counting = [] if superseded else [_CURRENT]
    statement = select(facts).where(*same, facts.c.fact_id > bindparam("after"), *counting)
    ordered = statement.order_by(facts.c.fact_id).limit(bindparam("limit"))
    return Prepared(ordered, *columns, "after", "limit")


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact to be added: ``entity_id`` had ``value`` at ``timestamp``. ``where`` says where the
    fact comes from, such as file and line; error messages show it."""

    entity_id: str
    predicate: str
    value: str
    timestamp: datetime
    confidence: float = 1.0
    source: str | None = None
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact in the store. ``superseded_at`` is when it stopped counting; ``superseded_by`` is the
    ID of the correction, or None if it was withdrawn."""

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


class FactStore:
    """All facts of one store. ``as_of`` and ``now`` are in microseconds since 1970."""

    def __init__(self, database: Database, schema: Schema) -> None:
        self.database = database
        self.schema = schema

    def canonical(self, entity_id: str, predicate: str, as_of: int) -> Row | None:
        """The newest fact not later than ``as_of``: (value, confidence, timestamp, source,
        fact_id)."""
        rows = self.database.rows(OF_QUESTION, (entity_id, predicate))
        current = _counting(rows, as_of) if rows else rows
        return _answer(max(current, key=_by_time)) if current else None

    def of_entity(self, entity_id: str, as_of: int) -> list[Row]:
        """The newest fact of each predicate: (predicate, value, confidence, timestamp, source,
        fact_id)."""
        rows = _counting(self.database.rows(OF_ENTITY, (entity_id,)), as_of)
        newest = {row[_PREDICATE]: row for row in rows}
        return [(predicate, *_answer(row)) for predicate, row in newest.items()]

    def get(self, fact_id: int) -> Fact:
        """FactError if there is no such fact."""
        row = self.database.row(BY_ID, (fact_id,))
        if row is None:
            raise FactError(f"fact {fact_id} is not in the store. Nothing was changed.")
        if not _sound([row]):
            raise FactError(f"fact {fact_id} was damaged and withdrawn. Nothing was changed.")
        return fact_from_row(row)

    def add(self, facts: Sequence[NewFact], now: int | None = None) -> list[Fact]:
        """Add all facts or none, and return those that were new. A fact that is already in the
        store, superseded or not, is not added again, unless it was withdrawn as damaged. FactError
        names the first invalid fact."""
        now = now_micros() if now is None else now
        given = dict.fromkeys(_checked_rows(facts, self.schema, now))
        with self.database.transaction() as connection:
            self._block_writers(connection)
            rows = self.database.look_up(OF_ENTITIES, (row[0] for row in given))
            known = {tuple(row[1 : _SOURCE + 1]) for row in rows if not _is_void(row)}
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
        """Supersede a fact by one with the given changes. FactError if it is already superseded or
        if nothing would change."""
        now = now_micros() if now is None else now
        given = {"value": value, "confidence": confidence, "timestamp": timestamp, "source": source}
        changes = {name: new for name, new in given.items() if new is not None}
        with self.database.transaction() as connection:
            old = self._get_current(connection, fact_id)
            corrected = replace(old, **changes)  # type: ignore[arg-type]
            if corrected == old:
                raise FactError(f"fact {fact_id} already has these values. Nothing was written.")
            rows = _checked_rows([_as_new(corrected)], self.schema, now)
            (correction,) = self._insert(connection, rows, now)
            self._supersede(connection, fact_id, now, correction.fact_id)
        return correction

    def withdraw(self, fact_id: int, now: int | None = None) -> Fact | None:
        """Supersede a fact with nothing in its place. A damaged fact can be withdrawn too: what it
        said is unknown, so None is returned. From then on it is ignored, and may be added again."""
        now = now_micros() if now is None else now
        with self.database.transaction() as connection:
            self._block_writers(connection)
            row = self.database.row(BY_ID, (fact_id,))
            is_damaged = row is not None and _is_damaged(row)
            if is_damaged:
                void = (now, None, _void_seal(fact_id), fact_id)
                self.database.run(connection, SUPERSEDE, void)
            else:
                self._get_current(connection, fact_id)
                self._supersede(connection, fact_id, now, None)
        return None if is_damaged else self.get(fact_id)

    def history(self, entity_id: str, predicate: str | None = None) -> list[Fact]:
        """All facts of an entity, superseded ones included, in the order they were recorded."""
        return self._page({"entity_id": entity_id, "predicate": predicate}, END_OF_TIME, 0, True)

    def page(
        self,
        entity_id: str | None = None,
        predicate: str | None = None,
        limit: int = 100,
        after_fact: int = 0,
        superseded: bool = False,
    ) -> list[Fact]:
        """Up to ``limit`` facts in the order they were recorded; superseded ones only if asked for.
        For the next page, pass the last ``fact_id`` as ``after_fact``."""
        filters = {"entity_id": entity_id, "predicate": predicate}
        return self._page(filters, limit, after_fact, superseded)

    def table(
        self, min_confidence: float = 0.0, as_of: int | None = None
    ) -> Iterator[tuple[str, dict[str, str]]]:
        """(entity_id, {predicate: value}) for each entity, from the newest fact of each predicate.
        Newest facts with a confidence below ``min_confidence`` are left out."""
        as_of = now_micros() if as_of is None else as_of
        rows = chain.from_iterable(_counting(rows, as_of) for rows in self.database.stream(TABLE))
        for entity_id, group in groupby(rows, key=itemgetter(1)):
            newest = {row[_PREDICATE]: (row[_VALUE], row[_CONFIDENCE]) for row in group}
            values = {
                name: value
                for name, (value, confidence) in newest.items()
                if confidence >= min_confidence
            }
            if values:
                yield entity_id, values

    def count(self) -> int:
        """The number of facts that are not superseded."""
        row = self.database.row(COUNT)
        return 0 if row is None else int(row[0])

    def _page(
        self, filters: dict[str, str | None], limit: int, after_fact: int, superseded: bool
    ) -> list[Fact]:
        given = {name: value for name, value in filters.items() if value is not None}
        statement = page_statement(superseded, *given)
        rows = self.database.rows(statement, (*given.values(), after_fact, limit))
        return [fact_from_row(row) for row in _sound(rows)]

    def damaged(self) -> list[int]:
        """The IDs of all facts that do not match their seals."""
        chunks = self.database.stream(TABLE)
        return sorted(row[0] for rows in chunks for row in rows if _is_damaged(row))

    def _insert(self, connection: Connection, rows: Sequence[Row], now: int) -> list[Fact]:
        numbers = self.database.take_numbers(connection, SERIES, len(rows))
        numbered = zip(numbers, rows, strict=True)
        full = [_sealed((number, *row, now, None, None)) for number, row in numbered]
        self.database.run_many(connection, INSERT, full)
        return [fact_from_row(row) for row in full]

    def _supersede(self, connection: Connection, fact_id: int, moment: int, by: int | None) -> None:
        row = self.database.row(BY_ID, (fact_id,))
        assert row is not None, "it was read in this transaction"
        *_, seal = _sealed((*row[:_SUPERSEDED_AT], moment, by))
        self.database.run(connection, SUPERSEDE, (moment, by, seal, fact_id))

    def _get_current(self, connection: Connection, fact_id: int) -> Fact:
        """The fact, if it is not superseded. Blocks other writers of facts."""
        self._block_writers(connection)
        fact = self.get(fact_id)
        if fact.superseded_at is None:
            return fact
        by = "withdrawn" if fact.superseded_by is None else f"superseded by {fact.superseded_by}"
        raise FactError(
            f"fact {fact_id} was {by} at {iso(to_micros(fact.superseded_at))}. Nothing was "
            "changed; correct the current fact instead."
        )

    def _block_writers(self, connection: Connection) -> None:
        self.database.take_numbers(connection, SERIES, 0)


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


def _checked_rows(facts: Sequence[NewFact], schema: Schema, now: int) -> list[Row]:
    """(entity_id, predicate, value, confidence, timestamp, source) per fact. FactError for the
    first invalid fact."""
    return [
        _checked_row(fact, fact.where or f"facts[{i}]", schema, now) for i, fact in enumerate(facts)
    ]


def _counting(rows: Sequence[Row], as_of: int) -> list[Row]:
    """Those that count at ``as_of``: not superseded, not dated later."""
    return [row for row in _sound(rows) if row[_SUPERSEDED_AT] is None and row[_TIMESTAMP] <= as_of]


def _sound(rows: Sequence[Row]) -> list[Row]:
    """The rows without those withdrawn as damaged. StoreDamagedError names damaged ones."""
    damaged = [row[0] for row in rows if _is_damaged(row)]
    if damaged:
        names = ", ".join(map(str, damaged[:5]))
        raise StoreDamagedError(
            f"facts {names} do not match their hashes: they were changed in the store. Nothing "
            "was answered or listed.",
            hint="Restore a backup, or withdraw each with 'lpf facts withdraw ID'; 'lpf doctor "
            "--full' lists all of them.",
        )
    return [row for row in rows if not _is_void(row)]


def _is_damaged(row: Row) -> bool:
    return row_seal(row[1:-1]) != row[-1] and not _is_void(row)


def _is_void(row: Row) -> bool:
    """Return True for a damaged fact that was withdrawn."""
    return row[_SUPERSEDED_AT] is not None and bool(row[-1] == _void_seal(row[0]))


def _void_seal(fact_id: int) -> bytes:
    return row_seal(("damaged and withdrawn", fact_id))


def _answer(row: Row) -> Row:
    """(value, confidence, timestamp, source, fact_id)."""
    return (*row[_VALUE : _SOURCE + 1], row[0])


def _sealed(row: Row) -> Row:
    """All columns of a fact, from all but the seal."""
    return (*row, row_seal(row[1:]))


def fact_from_row(row: Row) -> Fact:
    """Convert a row of the table ``facts``."""
    fact_id, entity_id, predicate, value, confidence, timestamp, source = row[:7]
    recorded_at, superseded_at, superseded_by, _ = row[7:]
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


def _checked_row(fact: NewFact, where: str, schema: Schema, now: int) -> Row:
    _check_texts(fact, where)
    try:
        schema[fact.predicate].position(fact.value)
    except UnknownPredicateError as error:
        raise _invalid(where, "predicate", error.message) from None
    except UnknownValueError as error:
        raise _invalid(where, "value", error.message) from None
    confidence = _checked_confidence(fact.confidence, where)
    timestamp = _checked_timestamp(fact.timestamp, where, now)
    return (fact.entity_id, fact.predicate, fact.value, confidence, timestamp, fact.source)


def _check_texts(fact: NewFact, where: str) -> None:
    for name in ("entity_id", "predicate", "value", "source"):
        text = getattr(fact, name)
        if name == "source" and text is None:
            continue
        problem = name_problem(text) or (None if name == "value" else length_problem(text, name))
        if problem:
            raise _invalid(where, name, problem)


def _checked_confidence(confidence: object, where: str) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise _invalid(where, "confidence", f"must be a number, got {confidence!r}")
    if math.isnan(confidence) or not 0.0 <= confidence <= 1.0:
        raise _invalid(where, "confidence", f"must be in [0, 1], got {confidence!r}")
    return float(confidence)


def _checked_timestamp(timestamp: object, where: str, now: int) -> int:
    if not isinstance(timestamp, datetime) or timestamp.tzinfo is None:
        problem = f"must be a datetime with a time zone, got {timestamp!r}"
        raise _invalid(where, "timestamp", problem)
    micros = to_micros(timestamp)
    if micros < _EARLIEST:
        problem = f"is before the year {FIRST_YEAR}, probably a typing error"
        raise _invalid(where, "timestamp", f"{problem}, got {timestamp.isoformat()!r}")
    if micros > now + FUTURE_MICROS:
        problem = f"is in the future: {iso(micros)}, but it is now {iso(now)}"
        raise _invalid(where, "timestamp", problem)
    return micros


def _invalid(where: str, name: str, problem: str) -> FactError:
    return FactError(
        f"{problem.rstrip('.')} ({where}).",
        field=name,
        hint="No fact was added; correct it and try again.",
    )
