"""All entities of a workspace: what is stored about each, its last answers, and their ranking."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest, nsmallest
from typing import Any

from sqlalchemy import bindparam, func, select

from lpf.errors import UnknownValueError
from lpf.index.near_names import near_names
from lpf.ledger.contents import Entry, LedgerContents
from lpf.results import QueryResult
from lpf.schema import Schema
from lpf.storage.database import Database
from lpf.storage.statements import KEYS, Prepared, any_of
from lpf.storage.tables import evidence, facts
from lpf.storage.values import from_micros

_CURRENT = facts.c.superseded_at.is_(None)


def _ids_after(table: Any, *conditions: Any) -> Prepared:
    return Prepared(
        select(table.c.entity_id)
        .distinct()
        .where(table.c.entity_id > bindparam("after"), *conditions)
        .order_by(table.c.entity_id)
        .limit(bindparam("limit")),
        "after",
        "limit",
    )


def _ids_like(table: Any, *conditions: Any) -> Prepared:
    return Prepared(
        select(table.c.entity_id)
        .distinct()
        .where(
            table.c.entity_id > bindparam("after"),
            func.lower(table.c.entity_id).like(bindparam("pattern"), escape="\\"),
            *conditions,
        )
        .order_by(table.c.entity_id)
        .limit(bindparam("limit")),
        "after",
        "pattern",
        "limit",
    )


def _counts(table: Any, *conditions: Any) -> Prepared:
    return Prepared(
        select(table.c.entity_id, table.c.predicate, func.count())
        .where(any_of(table.c.entity_id), *conditions)
        .group_by(table.c.entity_id, table.c.predicate),
        *KEYS,
    )


def _pairs(table: Any, *conditions: Any) -> Prepared:
    return Prepared(
        select(table.c.entity_id, table.c.predicate)
        .distinct()
        .where(*conditions)
        .order_by(table.c.entity_id, table.c.predicate)
    )


_AFTER = (_ids_after(evidence), _ids_after(facts, _CURRENT))
_LIKE = (_ids_like(evidence), _ids_like(facts, _CURRENT))
_ITEMS, _FACTS = _counts(evidence), _counts(facts, _CURRENT)
_PAIRS = (_pairs(evidence), _pairs(facts, _CURRENT))


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The newest recorded answer to a question; ``value`` is None if there was none."""

    record_id: str
    value: str | None
    confidence: float | None
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class EntitySummary:
    """What is stored about one entity, by predicate: the number of items and of facts, and the last
    answer."""

    entity_id: str
    items: dict[str, int] = field(default_factory=dict)
    facts: dict[str, int] = field(default_factory=dict)
    answers: dict[str, LastAnswer] = field(default_factory=dict)

    @property
    def predicates(self) -> list[str]:
        """Those with items, facts or answers."""
        return list(dict.fromkeys([*self.items, *self.facts, *self.answers]))


def list_entities(
    database: Database,
    contents: LedgerContents,
    *,
    limit: int,
    after: str = "",
    like: str | None = None,
) -> list[EntitySummary]:
    """Up to ``limit`` entities with evidence or facts, in the order of their IDs, from the first
    after ``after``. ``like`` keeps those whose ID contains it, whatever the case, or is similar to
    it if none does."""
    names = _names(database, limit, after, like)
    summaries = {name: EntitySummary(name) for name in names}
    for entity_id, predicate, count in database.look_up(_ITEMS, names):
        summaries[entity_id].items[predicate] = count
    for entity_id, predicate, count in database.look_up(_FACTS, names):
        summaries[entity_id].facts[predicate] = count
    for entry in contents.newest_of(names):
        summaries[entry.entity_id].answers[entry.predicate] = _last_answer(entry)
    return list(summaries.values())


def all_questions_of(
    database: Database, schema: Schema, predicates: Collection[str]
) -> list[tuple[str, str]]:
    """(entity ID, predicate) for every entity with evidence or facts about one of ``predicates``,
    or about a related one, in order."""
    asked_for = {
        known.name: {known.name, *schema.related(known.name)} & set(predicates) for known in schema
    }
    pairs = {tuple(row) for statement in _PAIRS for row in database.rows(statement)}
    return sorted(
        {(name, asked) for name, predicate in pairs for asked in asked_for.get(predicate, ())}
    )


@dataclass(frozen=True)
class Ranking:
    """Entities by the probability of one value. ``results`` are the first of them; ``asked`` were
    answered and recorded, of which ``without_answer`` had nothing that counts. ``failed`` are the
    errors by entity for those that could not be answered because stored facts are damaged."""

    value: str
    results: Sequence[QueryResult]
    asked: int
    without_answer: int
    failed: Mapping[str, str] = field(default_factory=dict)

    def share(self, result: QueryResult) -> float:
        """The probability of the value."""
        return result.distribution[self.value]


def rank(answers: Iterator[QueryResult], value: str, limit: int | None) -> Ranking:
    """Only the first ``limit`` answers are kept in memory, or all if it is None.
    Entities with equal probabilities are in the order of their IDs."""
    asked = without = 0

    def answered() -> Iterator[QueryResult]:
        nonlocal asked, without
        for result in answers:
            asked += 1
            if result.source == "none":
                without += 1
            else:
                yield result

    if limit is None:
        first = list(answered())
    else:
        first = nlargest(limit, answered(), key=lambda result: result.distribution[value])
    first.sort(key=lambda result: (-result.distribution[value], result.entity_id))
    return Ranking(value, first, asked, without)


def require_value(values: Sequence[str], predicate: str, given: str | None) -> str:
    """``given``, or the last of the values, which are usually listed from low to high.
    UnknownValueError for a value that the predicate does not have."""
    if given is None:
        return values[-1]
    if given not in values:
        raise UnknownValueError(
            f"{given!r} is not a value of {predicate!r}; its values are {list(values)}. Nothing "
            "was answered.",
            field="value",
        )
    return given


def _names(database: Database, limit: int, after: str, like: str | None) -> list[str]:
    if like is None:
        return _merged(lambda statement: database.rows(statement, (after, limit)), _AFTER, limit)
    escaped = re.sub(r"([\\%_])", r"\\\1", like.lower())
    found = _merged(
        lambda statement: database.rows(statement, (after, f"%{escaped}%", limit)), _LIKE, limit
    )
    if found or after:
        return found
    return near_names(database, like)[:limit]


def _merged(
    rows_of: Callable[[Prepared], Sequence[Any]], statements: Sequence[Prepared], limit: int
) -> list[str]:
    names = {name for statement in statements for (name,) in rows_of(statement)}
    return nsmallest(limit, names)


def _last_answer(entry: Entry) -> LastAnswer:
    asked_at = from_micros(entry.timestamp)
    return LastAnswer(entry.record_id, entry.value, entry.confidence, asked_at)
