"""One store, SQLite or PostgreSQL, and the only place that knows the difference."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.engine import Dialect, Engine
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from lpf.errors import ConfigError, StoreUnavailableError
from lpf.storage.failures import is_disconnect, told_plainly
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
        self._open: dict[int, Connection] = {}
        self._lock = threading.Lock()
        self._local = threading.local()

    @property
    def connection(self) -> Connection:
        """The driver's connection of this thread, in autocommit."""
        local = self._local
        if getattr(local, "process", None) != os.getpid():
            local.connection = self._connect()
            local.process = os.getpid()
        return local.connection

    def rows(self, statement: Prepared, arguments: Sequence[Any] = ()) -> list[Row]:
        """What a reading statement finds. A connection that broke is opened anew, once."""
        return self._reading(lambda: self.run(self.connection, statement, arguments).fetchall())

    def row(self, statement: Prepared, arguments: Sequence[Any] = ()) -> Row | None:
        """The first row found, if any."""
        found: Row | None = self._reading(
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
                while chunk := cursor.fetchmany(size):
                    yield chunk
            finally:
                self._drop(connection)

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
        with told_plainly(self.name):
            connection = self.connection
            connection.execute(self._begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise

    def close(self) -> None:
        """Closes the connections of all threads. Using the store again opens new ones."""
        with self._lock:
            connections, self._open = list(self._open.values()), {}
            self._local = threading.local()
        for connection in connections:
            connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reading(self, read: Callable[[], Result]) -> Result:
        try:
            return read()
        except Exception as error:
            with told_plainly(self.name):
                if not is_disconnect(error):
                    raise
                self._drop(self._local.connection)
                self._local.process = None
                return read()

    def _connect(self) -> Connection:
        with told_plainly(self.name):
            proxied = self._engine.raw_connection()
            connection = proxied.driver_connection
            proxied.detach()
        with self._lock:
            self._open[id(connection)] = connection
        return connection

    def _drop(self, connection: Connection) -> None:
        with self._lock:
            self._open.pop(id(connection), None)
        connection.close()

    def _roll_back(self, connection: Connection) -> None:
        """The transaction's own error is what the caller must see; a connection that cannot even
        roll back is of no more use and is closed, which rolls back too."""
        try:
            if not self.is_sqlite or connection.in_transaction:
                connection.execute("ROLLBACK")
        except Exception:
            self._drop(connection)
            self._local.process = None


def _as_url(url: str | Path) -> URL:
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url))
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigError(f"store.url: {url!r} is not the address of a database.") from error
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        raise ConfigError(
            f"store.url: must start with sqlite:/// or postgresql://, got {parsed.drivername!r}."
        )
    return parsed


def _engine(url: URL, busy_seconds: float) -> Engine:
    arguments: dict[str, Any]
    if url.get_backend_name() == "sqlite":
        arguments = {"isolation_level": None, "timeout": busy_seconds, "check_same_thread": False}
        engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
        event.listen(engine, "connect", _set_up_sqlite)
        return engine
    options = f"-c lock_timeout={int(busy_seconds * 1000)}"
    arguments = {"autocommit": True, "connect_timeout": 10, "options": options}
    try:
        return create_engine(url, poolclass=NullPool, connect_args=arguments, paramstyle="format")
    except ModuleNotFoundError as error:
        raise StoreUnavailableError(
            "a PostgreSQL store needs the driver psycopg: pip install 'lpf[postgres]'."
        ) from error


def _set_up_sqlite(connection: Connection, _: object) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)
