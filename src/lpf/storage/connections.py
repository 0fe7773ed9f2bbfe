"""Connections by thread and process: each ends with its thread, none is shared by a fork."""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol
from weakref import WeakSet, ref

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

    def leave_to_parent(self) -> None: ...


# A fork copies the sockets and files of its parent; each holder must then start anew.
_HOLDERS: WeakSet[Forkable] = WeakSet()
_INHERITED: list[Opened] = []


def start_anew_after_fork(holder: Forkable) -> None:
    _HOLDERS.add(holder)


def keep_unused(inherited: Opened) -> None:
    """To close what the parent opened, or to have it collected, would speak on its behalf."""
    _INHERITED.append(inherited)


def _leave_all_to_parent() -> None:
    for holder in list(_HOLDERS):
        holder.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all_to_parent)
