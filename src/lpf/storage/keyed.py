"""Look-ups of many keys with one compiled statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, bindparam

from lpf.storage.database import Database, Row
from lpf.storage.statements import Prepared

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
