"""Canonical facts: what is known of an entity, with its history.

A fact is never changed. A correction adds another that takes its place, a withdrawal marks it;
either way it counts no more, for any moment, and stays to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter

from lpf.errors import FactError
from lpf.schema import Schema
from lpf.storage import facts_statements as statements
from lpf.storage.counters import take_numbers
from lpf.storage.database import Connection, Database, Row
from lpf.storage.facts_rows import Fact, NewFact, checked_rows, fact_of
from lpf.storage.keyed import look_up
from lpf.storage.times import END_OF_TIME, iso, now_micros, to_micros

__all__ = ["Fact", "FactStore", "NewFact"]

SERIES = "facts"


class FactStore:
    """All facts of one store. ``as_of`` and ``now`` are in microseconds since 1970."""

    def __init__(self, database: Database, schema: Schema) -> None:
        self.database = database
        self.schema = schema

    def canonical(self, entity_id: str, predicate: str, as_of: int) -> Row | None:
        """The newest fact by ``as_of``: (value, confidence, timestamp, source, fact_id)."""
        return self.database.row(statements.CANONICAL, (entity_id, predicate, as_of))

    def of_entity(self, entity_id: str, as_of: int) -> list[Row]:
        """The newest fact of every predicate that has one: (predicate, value, confidence,
        timestamp, source, fact_id)."""
        rows = self.database.rows(statements.OF_ENTITY, (entity_id, as_of))
        return list({row[0]: row for row in rows}.values())

    def get(self, fact_id: int) -> Fact:
        found = self.database.row(statements.BY_ID, (fact_id,))
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
            known = set(look_up(self.database, statements.CONTENTS, (row[0] for row in given)))
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
            self.database.run(connection, statements.SUPERSEDE, (now, written.fact_id, fact_id))
        return written

    def withdraw(self, fact_id: int, now: int | None = None) -> Fact:
        """Marks a fact as counting no more, with nothing in its place."""
        now = now_micros() if now is None else now
        with self.database.writing() as connection:
            self._counting(connection, fact_id)
            self.database.run(connection, statements.SUPERSEDE, (now, None, fact_id))
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
        rows = chain.from_iterable(self.database.stream(statements.TABLE, (as_of,)))
        for entity_id, facts in groupby(rows, key=itemgetter(0)):
            newest = {predicate: (value, sure) for _, predicate, value, sure in facts}
            values = {
                name: value for name, (value, sure) in newest.items() if sure >= min_confidence
            }
            if values:
                yield entity_id, values

    def count(self) -> int:
        """How many facts count."""
        found = self.database.row(statements.COUNT)
        return 0 if found is None else int(found[0])

    def _page(
        self, asked: dict[str, str | None], limit: int, after_fact: int, superseded: bool
    ) -> list[Fact]:
        given = {name: value for name, value in asked.items() if value is not None}
        statement = statements.listing(superseded, *given)
        rows = self.database.rows(statement, (*given.values(), after_fact, limit))
        return [fact_of(row) for row in rows]

    def _insert(self, connection: Connection, rows: Sequence[Row], now: int) -> list[Fact]:
        numbers = take_numbers(self.database, connection, SERIES, len(rows))
        numbered = zip(numbers, rows, strict=True)
        full = [(number, *row, now, None, None) for number, row in numbered]
        self.database.run_many(connection, statements.INSERT, full)
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
