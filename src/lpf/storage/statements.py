"""Core statements, compiled once and run on the driver's own connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.engine import Dialect
from sqlalchemy.sql.expression import ClauseElement

Pick = Callable[[Sequence[Any]], Sequence[Any]]


class Prepared:
    """A statement whose bound names are filled by position, in the order of ``names``.

    SQLAlchemy's own execution costs several times what the database needs for a look-up; compiled
    to text, the same statement runs at the driver's speed on every dialect.
    """

    def __init__(self, statement: ClauseElement, *names: str) -> None:
        self._statement = statement
        self._names = names
        self._compiled: dict[str, tuple[str, Pick | None]] = {}

    def bound(self, dialect: Dialect, given: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """The text, and ``given`` as the text wants them."""
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = self._compile(dialect)
        text, pick = found
        return text, given if pick is None else pick(given)

    def _compile(self, dialect: Dialect) -> tuple[str, Pick | None]:
        compiled: Any = self._statement.compile(dialect=dialect)
        wanted: tuple[str, ...] = tuple(compiled.positiontup or ())
        missing = set(self._names) - set(wanted)
        assert not missing, f"{sorted(missing)} are not bound in: {compiled}"
        return str(compiled), None if wanted == self._names else self._picker(wanted, compiled)

    def _picker(self, wanted: tuple[str, ...], compiled: Any) -> Pick:
        """Puts values where the text wants them; what has no name here is a constant of it."""
        constants = compiled.params
        count = len(self._names)
        if wanted[:count] == self._names:
            rest = tuple(constants[name] for name in wanted[count:])
            return lambda given: (*given, *rest)
        place = {name: number for number, name in enumerate(self._names)}
        return lambda given: tuple(
            given[place[name]] if name in place else constants[name] for name in wanted
        )
