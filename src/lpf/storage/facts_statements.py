"""The statements of the facts store, each written once for both databases."""

from __future__ import annotations

from functools import cache

from sqlalchemy import BigInteger, bindparam, func, insert, literal_column, select, update

from lpf.storage.keyed import KEYS, any_of
from lpf.storage.statements import Prepared
from lpf.storage.tables import facts

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
