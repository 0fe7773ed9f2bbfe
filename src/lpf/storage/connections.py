"""Connections by thread and process: each ends with its thread, none is shared by a fork.

Core statements, compiled once and run on the driver's own connection.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakSet, ref

from sqlalchemy.engine import Dialect
from sqlalchemy.sql.expression import ClauseElement

Connection = Any  # sqlite3.Connection | psycopg.Connection: alike in what is used here


class Opened:
    """The connections that one process has open, of all its threads."""

    def __init__(self) -> None:
        self.process = os.getpid()
        # No lock: each step is atomic, and one may be taken by the collector within another.
        self._connections: dict[int, Connection] = {}

    def add(self, connection: Connection) -> None:
        self._connections[id(connection)] = connection

    def close(self, connection: Connection) -> None:
        self._connections.pop(id(connection), None)
        connection.close()

    def close_all(self) -> None:
        for connection in list(self._connections.values()):
            self.close(connection)


class Held:
    """The connection of one thread, which ends with it."""

    def __init__(self, connection: Connection, opened: Opened) -> None:
        self.connection = connection
        self._opened = opened

    def __del__(self) -> None:
        if self._opened.process == os.getpid():
            self._opened.close(self.connection)


class Here(threading.local):
    """What a thread knows of the store."""

    held: Held | None = None
    # Whose the transaction is that this thread is within. Weak: one whose owner is gone without
    # having ended it, as an interrupt may leave it, is nobody's.
    owner: ref[object] | None = None


class Forkable(Protocol):
    """What holds connections and must let go of them in the child of a fork."""

    def reset_after_fork(self) -> None: ...


# A fork copies the sockets and files of its parent; each holder must then start anew.
_HOLDERS: WeakSet[Forkable] = WeakSet()
_INHERITED: list[Opened] = []


def register_fork_reset(holder: Forkable) -> None:
    _HOLDERS.add(holder)


def keep_unused(inherited: Opened) -> None:
    """To close what the parent opened, or to have it collected, would speak on its behalf."""
    _INHERITED.append(inherited)


def _leave_all_to_parent() -> None:
    for holder in list(_HOLDERS):
        holder.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all_to_parent)


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
