"""One store, SQLite or PostgreSQL, and the only place that knows the difference."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.engine import Dialect, Engine
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from lpf.errors import ConfigError, StorageError, StoreUnavailableError
from lpf.storage.failures import is_disconnect, told_plainly, why_unopened
from lpf.storage.statements import Prepared

Connection = Any  # sqlite3.Connection | psycopg.Connection: alike in what is used here
Row = tuple[Any, ...]
Result = TypeVar("Result")

DEFAULT_BUSY_SECONDS = 60.0
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # a commit that was acknowledged survives a power cut
    "PRAGMA secure_delete=ON",  # freed pages are overwritten, so that erased means erased
    "PRAGMA foreign_keys=ON",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-65536",
    "PRAGMA mmap_size=0",
)


class _Opened:
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


class _Held:
    """The connection of one thread, which ends with it."""

    def __init__(self, connection: Connection, opened: _Opened) -> None:
        self.connection = connection
        self._opened = opened

    def __del__(self) -> None:
        if self._opened.process == os.getpid():
            self._opened.close(self.connection)


class _Here(threading.local):
    """What a thread knows of the store."""

    held: _Held | None = None
    writing = False


class Database:
    """Connections of one store: one a thread, opened when first needed, never shared by a fork."""

    def __init__(self, url: str | Path, *, busy_seconds: float = DEFAULT_BUSY_SECONDS) -> None:
        self.url = _as_url(url)
        self.busy_seconds = busy_seconds
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.name = self.url.render_as_string(hide_password=True)
        self.path = Path(self.url.database) if self.is_sqlite and self.url.database else None
        self._engine = _engine(self.url, busy_seconds)
        self.dialect: Dialect = self._engine.dialect
        self._begin = "BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN"
        self._opened = _Opened()
        self._here = _Here()
        _STORES.add(self)

    @property
    def connection(self) -> Connection:
        """The driver's connection of this thread, in autocommit."""
        held = self._here.held
        if held is None:
            held = self._here.held = _Held(self._connect(), self._opened)
        return held.connection

    def rows(self, statement: Prepared, arguments: Sequence[Any] = ()) -> list[Row]:
        """What a reading statement finds. A connection that broke is opened anew, once."""
        return self._repeatable(lambda: self.run(self.connection, statement, arguments).fetchall())

    def row(self, statement: Prepared, arguments: Sequence[Any] = ()) -> Row | None:
        """The first row found, if any."""
        found: Row | None = self._repeatable(
            lambda: self.run(self.connection, statement, arguments).fetchone()
        )
        return found

    def stream(
        self, statement: Prepared, arguments: Sequence[Any] = (), size: int = 1000
    ) -> Iterator[list[Row]]:
        """Rows in lists of ``size``, of one consistent state, on a connection of their own, so
        that the store may be used meanwhile."""
        with told_plainly(self.name):
            connection = self._connect()
            try:
                if self.is_sqlite:
                    cursor = self.run(connection, statement, arguments)
                else:
                    connection.execute("BEGIN")  # a server-side cursor lives in a transaction
                    cursor = connection.cursor(name="lpf_stream")
                    cursor.execute(*statement.bound(self.dialect, arguments))
                with closing(cursor):
                    while chunk := cursor.fetchmany(size):
                        yield chunk
            finally:
                self._opened.close(connection)

    def run(
        self, connection: Connection, statement: Prepared, arguments: Sequence[Any] = ()
    ) -> Any:
        """A cursor over the result, within whatever transaction ``connection`` is in."""
        return connection.execute(*statement.bound(self.dialect, arguments))

    def run_many(
        self, connection: Connection, statement: Prepared, rows: Sequence[Sequence[Any]]
    ) -> None:
        if rows:
            bound = [statement.bound(self.dialect, row) for row in rows]
            connection.cursor().executemany(bound[0][0], [values for _, values in bound])

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: all of it is kept, on disk, when this returns; or none of it."""
        here = self._here
        if here.writing:
            raise StorageError(
                f"{self.name}: this thread is within a transaction already, and one within another "
                "cannot be kept by itself. Nothing of the inner one was written."
            )
        with told_plainly(self.name):
            connection = self._repeatable(self._begun)
            here.writing = True
            try:
                yield connection
                self._commit(connection)
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                here.writing = False

    def close(self) -> None:
        """Closes the connections of all threads. Using the store again opens new ones."""
        opened, self._opened, self._here = self._opened, _Opened(), _Here()
        opened.close_all()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def leave_to_parent(self) -> None:
        """Called in the child of a fork. What it inherited is kept, unused: to close it, or to
        have it collected, would speak on the parent's behalf."""
        _INHERITED.append(self._opened)
        self._opened, self._here = _Opened(), _Here()

    def _repeatable(self, work: Callable[[], Result]) -> Result:
        """Does what may be done twice; on a new connection where the old one broke."""
        try:
            return work()
        except Exception as error:
            with told_plainly(self.name):
                if self._here.writing or not is_disconnect(error):
                    raise
                self._let_go()
                return work()

    def _begun(self) -> Connection:
        connection = self.connection
        connection.execute(self._begin)
        return connection

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
        except Exception as error:
            if not is_disconnect(error):
                raise
            raise StoreUnavailableError(
                f"{self.name}: the connection broke while a transaction was being committed. It "
                "was written as a whole or not at all; look which before repeating it."
            ) from error

    def _roll_back(self, connection: Connection) -> None:
        """The transaction's own error is what the caller must see; a connection that cannot even
        roll back is of no more use and is closed, which rolls back too."""
        try:
            if not self.is_sqlite or connection.in_transaction:
                connection.execute("ROLLBACK")
        except Exception:
            self._let_go()

    def _connect(self) -> Connection:
        try:
            with told_plainly(self.name):
                proxied = self._engine.raw_connection()
        except StoreUnavailableError as error:
            raise why_unopened(self.path) or error from error.__cause__
        connection = proxied.driver_connection
        proxied.detach()
        self._opened.add(connection)
        return connection

    def _let_go(self) -> None:
        held, self._here.held = self._here.held, None
        if held is not None:
            self._opened.close(held.connection)


# A fork copies the sockets and files of its parent; each of the stores must then start anew.
_STORES: WeakSet[Database] = WeakSet()
_INHERITED: list[_Opened] = []


def _leave_all_to_parent() -> None:
    for database in list(_STORES):
        database.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all_to_parent)


def _as_url(url: str | Path) -> URL:
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url))
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = URL.create("unknown")  # not shown: it may hold a password
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if kind != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise ConfigError(
            "store.url: must be sqlite:///path/of/the/file or postgresql://user@host/name, "
            f"got one of kind {kind!r}" + (" without a file." if kind == "sqlite" else ".")
        )
    return parsed.set(drivername="sqlite")


def _engine(url: URL, busy_seconds: float) -> Engine:
    if url.get_backend_name() == "sqlite":
        arguments = {"isolation_level": None, "timeout": busy_seconds, "check_same_thread": False}
        engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
        event.listen(engine, "connect", _set_up_sqlite)
        return engine
    try:
        return create_engine(
            url,
            poolclass=NullPool,
            connect_args=_postgres_arguments(url, busy_seconds),
            paramstyle="format",
        )
    except ModuleNotFoundError as error:
        raise StoreUnavailableError(
            "a PostgreSQL store needs the driver psycopg: pip install 'lpf[postgres]'."
        ) from error


def _postgres_arguments(url: URL, busy_seconds: float) -> dict[str, Any]:
    """What the address itself says of these is kept."""
    patience = max(1, round(busy_seconds * 1000))  # to PostgreSQL, 0 would mean for ever
    return {
        "autocommit": True,
        "connect_timeout": url.query.get("connect_timeout", "10"),
        "options": f"{url.query.get('options', '')} -c lock_timeout={patience}".strip(),
    }


def _set_up_sqlite(connection: Connection, _: object) -> None:
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except Exception:
        connection.close()
        raise
