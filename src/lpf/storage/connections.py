"""Track open connections by thread and process.

A connection is closed when its thread ends, and is never used by a forked child.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol
from weakref import WeakSet, ref

Connection = Any  # sqlite3.Connection or psycopg.Connection; only what both have is used


class OpenConnections:
    """The connections that one process has open, over all its threads."""

    def __init__(self) -> None:
        self.process = os.getpid()
        # No lock: each step is atomic, and the garbage collector may run one inside another.
        self._connections: dict[int, Connection] = {}

    def add(self, connection: Connection) -> None:
        self._connections[id(connection)] = connection

    def close(self, connection: Connection) -> None:
        self._connections.pop(id(connection), None)
        connection.close()

    def close_all(self) -> None:
        for connection in list(self._connections.values()):
            self.close(connection)


class ThreadConnection:
    """The connection of one thread. Closed when the thread's local state is collected."""

    def __init__(self, connection: Connection, open_connections: OpenConnections) -> None:
        self.connection = connection
        self._open_connections = open_connections

    def __del__(self) -> None:
        if self._open_connections.process == os.getpid():
            self._open_connections.close(self.connection)


class ThreadState(threading.local):
    """The connection and the current transaction of a thread."""

    held: ThreadConnection | None = None
    # The owner of the open transaction. A weak reference: if an interrupt leaves a transaction
    # open and its owner is collected, the transaction no longer has an owner.
    owner: ref[object] | None = None


class ResetsAfterFork(Protocol):
    """An object with connections or locks that a forked child must not use."""

    def reset_after_fork(self) -> None: ...


_TO_RESET: WeakSet[ResetsAfterFork] = WeakSet()
_INHERITED: list[OpenConnections] = []


def register_fork_reset(holder: ResetsAfterFork) -> None:
    """Call ``holder.reset_after_fork()`` in every forked child."""
    _TO_RESET.add(holder)


def keep_unused(inherited: OpenConnections) -> None:
    """Keep the parent's connections referenced: closing or collecting them in the child would send
    data over the parent's sockets."""
    _INHERITED.append(inherited)


def _reset_all() -> None:
    for holder in list(_TO_RESET):
        holder.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
