"""Numbers that are given out once: ids survive deletions, so none is ever used again."""

from __future__ import annotations

from sqlalchemy import bindparam
from sqlalchemy.dialects import postgresql, sqlite

from lpf.storage.database import Connection, Database
from lpf.storage.statements import Prepared
from lpf.storage.tables import counters


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
