"""Prepared statements: SQLAlchemy Core expressions, compiled once per dialect.

They are executed on the driver's own connection. SQLAlchemy's execution layer costs several times
what the database needs for a lookup; compiled to text, the same statement runs at driver speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.expression import ClauseElement

from lpf.storage.tables import counters

ArgumentOrder = Callable[[Sequence[Any]], Sequence[Any]]

# ``any_of`` binds this many keys. Shorter lists repeat their last key, longer ones are split.
KEYS_AT_ONCE = 64
KEYS = tuple(f"key{number}" for number in range(KEYS_AT_ONCE))


class Prepared:
    """A statement whose bind parameters are given by position, in the order of ``names``."""

    def __init__(self, statement: ClauseElement, *names: str) -> None:
        self._statement = statement
        self._names = names
        self._compiled: dict[str, tuple[str, ArgumentOrder | None]] = {}

    def bound(self, dialect: Dialect, arguments: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """Return the SQL text and ``arguments`` in the order the text needs them."""
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = self._compile(dialect)
        text, order = compiled
        return text, arguments if order is None else order(arguments)

    def _compile(self, dialect: Dialect) -> tuple[str, ArgumentOrder | None]:
        compiled: Any = self._statement.compile(dialect=dialect)
        positions: tuple[str, ...] = tuple(compiled.positiontup or ())
        missing = set(self._names) - set(positions)
        assert not missing, f"{sorted(missing)} are not bound in: {compiled}"
        if positions == self._names:
            return str(compiled), None
        return str(compiled), self._argument_order(positions, compiled.params)

    def _argument_order(
        self, positions: tuple[str, ...], constants: dict[str, Any]
    ) -> ArgumentOrder:
        """Parameters that are not in ``names`` are constants of the statement."""
        count = len(self._names)
        if positions[:count] == self._names:
            rest = tuple(constants[name] for name in positions[count:])
            return lambda arguments: (*arguments, *rest)
        place = {name: number for number, name in enumerate(self._names)}
        return lambda arguments: tuple(
            arguments[place[name]] if name in place else constants[name] for name in positions
        )


def any_of(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition that ``column`` is one of KEYS. Prepare the statement with ``*KEYS`` first
    and run it with ``Database.look_up``."""
    return column.in_([bindparam(key, type_=column.type) for key in KEYS])


def _take_numbers(insert: type[postgresql.Insert] | type[sqlite.Insert]) -> Prepared:
    new = insert(counters).values(name=bindparam("name"), value=bindparam("count"))
    upsert = new.on_conflict_do_update(
        index_elements=["name"], set_={"value": counters.c.value + new.excluded.value}
    )
    return Prepared(upsert.returning(counters.c.value), "name", "count")


TAKE_NUMBERS_SQLITE = _take_numbers(sqlite.Insert)
TAKE_NUMBERS_POSTGRES = _take_numbers(postgresql.Insert)
