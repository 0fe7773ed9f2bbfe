"""Run statements and transactions on one store, SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import ref

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.engine import Dialect, Engine
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from lpf.errors import ConfigError, StorageError, StoreUnavailableError
from lpf.storage.connections import (
    Connection,
    OpenConnections,
    ThreadConnection,
    ThreadState,
    keep_unused,
    register_fork_reset,
)
from lpf.storage.driver_errors import (
    explain_open_failure,
    is_disconnect,
    is_undecodable,
    translate_errors,
)
from lpf.storage.seals import stored_number
from lpf.storage.sqlite_file import prepare_file
from lpf.storage.statements import (
    KEYS_AT_ONCE,
    TAKE_NUMBERS_POSTGRES,
    TAKE_NUMBERS_SQLITE,
    Prepared,
)

__all__ = ["Connection", "Database", "Row", "any_text"]

Row = tuple[Any, ...]
Result = TypeVar("Result")

DEFAULT_BUSY_SECONDS = 60.0

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # an acknowledged commit survives a power cut
    "PRAGMA secure_delete=ON",  # overwrite freed pages, so that erased text is gone
    "PRAGMA foreign_keys=ON",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-65536",
    "PRAGMA mmap_size=0",
)


class Database:
    """One connection per thread, opened on first use and never shared with a forked child."""

    def __init__(self, url: str | Path, *, busy_seconds: float = DEFAULT_BUSY_SECONDS) -> None:
        self.url = _parse_url(url)
        self.busy_seconds = busy_seconds
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.name = _shown(self.url)
        self.path = Path(self.url.database) if self.is_sqlite and self.url.database else None
        self._is_ours = False  # checked before the first connection writes anything
        self._engine = _create_engine(self.url, busy_seconds)
        self.dialect: Dialect = self._engine.dialect
        self._begin_sql = "BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN"
        self._open_connections = OpenConnections()
        self._thread = ThreadState()
        register_fork_reset(self)

    @property
    def connection(self) -> Connection:
        """The driver connection of this thread, in autocommit mode."""
        held = self._thread.held
        if held is None:
            held = self._thread.held = ThreadConnection(self._connect(), self._open_connections)
        return held.connection

    def rows(self, statement: Prepared, arguments: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query. If the connection is broken, retry once on a new one."""
        return self._retry_once(lambda: self.run(self.connection, statement, arguments).fetchall())

    def row(self, statement: Prepared, arguments: Sequence[Any] = ()) -> Row | None:
        """The first row of a query, or None."""
        first: Row | None = self._retry_once(
            lambda: self.run(self.connection, statement, arguments).fetchone()
        )
        return first

    def look_up(self, statement: Prepared, keys: Iterable[object], *more: object) -> Iterator[Row]:
        """Rows of a statement built with ``any_of``, for any number of keys. ``more`` are the
        statement's other arguments."""
        unique = list(dict.fromkeys(keys))
        for start in range(0, len(unique), KEYS_AT_ONCE):
            chunk = unique[start : start + KEYS_AT_ONCE]
            padded = chunk + chunk[-1:] * (KEYS_AT_ONCE - len(chunk))
            yield from self.rows(statement, [*padded, *more])

    def stream(
        self, statement: Prepared, arguments: Sequence[Any] = (), size: int = 1000
    ) -> Iterator[list[Row]]:
        """Rows of one consistent snapshot, in lists of ``size``. Uses its own connection, so the
        database can be used while the rows are being read."""
        with translate_errors(self.name):
            connection = self._connect()
            try:
                if self.is_sqlite:
                    connection.text_factory = _decoded
                    cursor = self.run(connection, statement, arguments)
                else:
                    connection.execute("BEGIN")  # a server-side cursor needs a transaction
                    cursor = connection.cursor(name="lpf_stream")
                    cursor.execute(*statement.bound(self.dialect, arguments))
                with closing(cursor):
                    while chunk := cursor.fetchmany(size):
                        yield chunk
            finally:
                self._open_connections.close(connection)

    def run(
        self, connection: Connection, statement: Prepared, arguments: Sequence[Any] = ()
    ) -> Any:
        """Execute a statement in the current transaction of ``connection``; return its cursor."""
        return connection.execute(*statement.bound(self.dialect, arguments))

    def run_many(
        self, connection: Connection, statement: Prepared, rows: Sequence[Sequence[Any]]
    ) -> None:
        """Execute a statement once per row of arguments."""
        if rows:
            bound = [statement.bound(self.dialect, row) for row in rows]
            connection.cursor().executemany(bound[0][0], [values for _, values in bound])

    def take_numbers(self, connection: Connection, series: str, count: int) -> range:
        """Return the next ``count`` numbers of a series, starting from 1; none is given out twice.

        Part of the caller's transaction. Until that ends, others who take numbers of the same
        series wait, so ``count=0`` serves as a lock.
        """
        statement = TAKE_NUMBERS_SQLITE if self.is_sqlite else TAKE_NUMBERS_POSTGRES
        (value,) = self.run(connection, statement, (series, count)).fetchone()
        last = stored_number(value, f"counters: {series!r}")
        return range(last - count + 1, last + 1)

    def transaction(self) -> AbstractContextManager[Connection]:
        """A transaction on this thread's connection. It is committed to disk when the block ends
        and rolled back if the block raises."""
        return _Transaction(self)

    @property
    def in_transaction(self) -> bool:
        """True inside a ``transaction()`` block of this thread."""
        return self._thread.owner is not None

    def close(self) -> None:
        """Close the connections of all threads. Using the database again opens new ones."""
        old, self._open_connections = self._open_connections, OpenConnections()
        self._thread = ThreadState()
        old.close_all()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset_after_fork(self) -> None:
        """Called in a forked child: leave the parent's connections alone."""
        keep_unused(self._open_connections)
        self._open_connections, self._thread = OpenConnections(), ThreadState()

    def _retry_once(self, work: Callable[[], Result]) -> Result:
        """Run ``work``, which must be repeatable; again on a new connection if the old one is
        broken."""
        try:
            return work()
        except Exception as error:
            with translate_errors(self.name):
                if is_undecodable(error):
                    with any_text(self, self.connection):
                        return work()
                if self.in_transaction or not is_disconnect(error):
                    raise
                self._close_thread_connection()
                return work()

    def _begin_for(self, owner: _Transaction) -> Connection:
        """Begin a transaction on this thread's connection."""
        thread = self._thread
        if thread.owner is not None and thread.owner() is not None:
            raise StorageError(
                f"{self.name}: this thread is already in a transaction, and transactions cannot be "
                "nested. Nothing of the inner one was written."
            )
        thread.owner = None  # so that a broken connection may be replaced
        with translate_errors(self.name):
            connection = self._retry_once(self._begin)
        thread.owner = ref(owner)
        return connection

    def _begin(self) -> Connection:
        connection = self.connection
        if self._has_open_transaction(connection):  # left behind by an interrupt
            connection.execute("ROLLBACK")
        connection.execute(self._begin_sql)
        return connection

    def _has_open_transaction(self, connection: Connection) -> bool:
        if self.is_sqlite:
            return bool(connection.in_transaction)
        return bool(connection.info.transaction_status)  # 0 is idle

    def _finish(self, connection: Connection, error: BaseException | None) -> None:
        """Commit, or raise the error that the transaction failed with."""
        with translate_errors(self.name):
            if error is not None:
                raise error
            self._commit(connection)
        self._thread.owner = None

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
        except Exception as error:
            if not is_disconnect(error):
                raise
            raise StoreUnavailableError(
                f"{self.name}: the connection broke during a commit. Either all of the transaction "
                "was written or none of it; check which before repeating it."
            ) from error

    def _abort(self, owner: _Transaction) -> None:
        """Roll back the transaction of ``owner`` if it is still open. A transaction of another
        owner is left alone."""
        thread = self._thread
        if thread.owner is None or thread.owner() is owner:
            try:
                if thread.held is not None:
                    self._roll_back(thread.held.connection)
            finally:
                thread.owner = None

    def _roll_back(self, connection: Connection) -> None:
        """If the rollback fails, close the connection, which rolls back too. The caller must see
        the error of the transaction, not that of the rollback."""
        try:
            if self._has_open_transaction(connection):
                connection.execute("ROLLBACK")
        except BaseException as failure:
            self._close_thread_connection()
            if not isinstance(failure, Exception):
                raise

    def _transaction_collected(self, owner: _Transaction) -> None:
        """The garbage collector found ``owner`` before it was finished.

        This may run in the middle of another statement, so no ROLLBACK can be executed; closing
        the connection rolls back too. If the collector runs in a thread other than the owner's,
        nothing is done here, and the owner's thread rolls back when it begins its next transaction.
        """
        thread = self._thread
        if thread.owner is not None and thread.owner() in (None, owner):
            thread.owner = None
            self._close_thread_connection()

    def _connect(self) -> Connection:
        try:
            if self.path is not None and not self._is_ours:
                prepare_file(self.path)
                self._is_ours = True
            with translate_errors(self.name):
                proxy = self._engine.raw_connection()
        except StoreUnavailableError as error:
            raise explain_open_failure(self.path) or error from error.__cause__
        connection = proxy.driver_connection
        proxy.detach()
        self._open_connections.add(connection)
        return connection

    def _close_thread_connection(self) -> None:
        held, self._thread.held = self._thread.held, None
        if held is not None:
            self._open_connections.close(held.connection)


class _Transaction:
    """The context manager behind ``Database.transaction``.

    A class, because every record passes through here and a generator is several times slower.

    An interrupt may come between any two steps. Inside these methods it is caught and the
    transaction is rolled back. Before the first step of a method it cannot be caught; then the
    transaction is rolled back when this object is collected.
    """

    __slots__ = ("__weakref__", "_connection", "_database")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Connection:
        try:
            self._connection = self._database._begin_for(self)
            return self._connection
        except BaseException:
            self._database._abort(self)
            raise

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            self._database._finish(self._connection, error)
        except BaseException:
            self._database._abort(self)
            raise

    def __del__(self) -> None:
        if hasattr(self, "_database"):  # missing if an interrupt came during __init__
            self._database._transaction_collected(self)


@contextmanager
def any_text(database: Database, connection: Connection) -> Iterator[None]:
    """Read texts of damaged cells too, on this connection: bytes that are not UTF-8 become lone
    surrogates instead of an error. PostgreSQL cannot hold such texts."""
    if not database.is_sqlite:
        yield
        return
    connection.text_factory = _decoded
    try:
        yield
    finally:
        connection.text_factory = str


def _decoded(content: bytes) -> str:
    return content.decode(errors="surrogateescape")


def _parse_url(url: str | Path) -> URL:
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url))
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = URL.create("unknown")  # not shown: it may hold a password
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if kind != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise ConfigError(
            "must be sqlite:///path/to/file or postgresql://user@host/name, "
            f"got a {kind!r} address" + (" without a file." if kind == "sqlite" else "."),
            field="store.url",
        )
    return parsed.set(drivername="sqlite")


def _shown(url: URL) -> str:
    """The address for messages, without passwords."""
    query = {name: "***" if "pass" in name.lower() else url.query[name] for name in url.query}
    return url.set(query=query).render_as_string(hide_password=True)


def _create_engine(url: URL, busy_seconds: float) -> Engine:
    if url.get_backend_name() == "sqlite":
        arguments = {"isolation_level": None, "timeout": busy_seconds, "check_same_thread": False}
        engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
        event.listen(engine, "connect", _set_pragmas)
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
            "a PostgreSQL store needs the psycopg driver.",
            hint="Install it with pip install 'lpf[postgres]'.",
        ) from error


def _postgres_arguments(url: URL, busy_seconds: float) -> dict[str, Any]:
    """Defaults; settings in the URL itself take precedence."""
    lock_timeout = max(1, round(busy_seconds * 1000))  # in PostgreSQL, 0 means no limit
    return {
        "autocommit": True,
        "connect_timeout": url.query.get("connect_timeout", "10"),
        "options": f"{url.query.get('options', '')} -c lock_timeout={lock_timeout}".strip(),
    }


def _set_pragmas(connection: Connection, _: object) -> None:
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except Exception:
        connection.close()
        raise
