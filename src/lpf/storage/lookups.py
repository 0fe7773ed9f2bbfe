"""Look-ups of many keys with one compiled statement.

Numbers that are given out once: ids survive deletions, so none is ever used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, bindparam
from sqlalchemy.dialects import postgresql, sqlite

from lpf.storage.connections import Prepared
from lpf.storage.database import Connection, Database, Row
from lpf.storage.tables import counters

# A statement takes this many keys; fewer are filled up with repetitions, more are taken in turns.
KEYS_AT_ONCE = 64
KEYS = tuple(f"key{number}" for number in range(KEYS_AT_ONCE))


def any_of(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether ``column`` is one of KEYS, which are what the statement is prepared with first."""
    return column.in_([bindparam(key, type_=column.type) for key in KEYS])


def look_up(
    database: Database, statement: Prepared, keys: Iterable[object], *more: object
) -> Iterator[Row]:
    """Rows of a statement made with ``any_of``; ``more`` is what else it binds."""
    wanted = list(dict.fromkeys(keys))
    for start in range(0, len(wanted), KEYS_AT_ONCE):
        some = wanted[start : start + KEYS_AT_ONCE]
        filled = some + some[-1:] * (KEYS_AT_ONCE - len(some))
        yield from database.rows(statement, [*filled, *more])


def _taking(insert: type[postgresql.Insert] | type[sqlite.Insert]) -> Prepared:
    fresh = insert(counters).values(name=bindparam("name"), value=bindparam("count"))
    grown = fresh.on_conflict_do_update(
        index_elements=["name"], set_={"value": counters.c.value + fresh.excluded.value}
    )
    return Prepared(grown.returning(counters.c.value), "name", "count")


_SQLITE, _POSTGRES = _taking(sqlite.Insert), _taking(postgresql.Insert)


def take_numbers(database: Database, connection: Connection, name: str, count: int) -> range:
    """The next ``count`` numbers of a series, from 1. Part of the caller's transaction, which
    holds back other takers until it ends."""
    statement = _SQLITE if database.is_sqlite else _POSTGRES
    last = int(database.run(connection, statement, (name, count)).fetchone()[0])
    return range(last - count + 1, last + 1)
