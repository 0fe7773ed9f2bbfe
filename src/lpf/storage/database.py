"""One store, SQLite or PostgreSQL: statements and transactions, alike on both.

From the address of a store to the engine that opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
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
    Held,
    Here,
    Opened,
    Prepared,
    keep_unused,
    register_fork_reset,
)
from lpf.storage.driver_errors import is_disconnect, translate_errors, why_unopened

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # a commit that was acknowledged survives a power cut
    "PRAGMA secure_delete=ON",  # freed pages are overwritten, so that erased means erased
    "PRAGMA foreign_keys=ON",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-65536",
    "PRAGMA mmap_size=0",
)


def parsed_address(url: str | Path) -> URL:
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


def engine_for(url: URL, busy_seconds: float) -> Engine:
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


__all__ = ["Connection", "Database", "Row"]

Row = tuple[Any, ...]
Result = TypeVar("Result")

DEFAULT_BUSY_SECONDS = 60.0


class Database:
    """Connections of one store: one a thread, opened when first needed, never shared by a fork."""

    def __init__(self, url: str | Path, *, busy_seconds: float = DEFAULT_BUSY_SECONDS) -> None:
        self.url = parsed_address(url)
        self.busy_seconds = busy_seconds
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.name = self.url.render_as_string(hide_password=True)
        self.path = Path(self.url.database) if self.is_sqlite and self.url.database else None
        self._engine = engine_for(self.url, busy_seconds)
        self.dialect: Dialect = self._engine.dialect
        self._begin = "BEGIN IMMEDIATE" if self.is_sqlite else "BEGIN"
        self._opened = Opened()
        self._here = Here()
        register_fork_reset(self)

    @property
    def connection(self) -> Connection:
        """The driver's connection of this thread, in autocommit."""
        held = self._here.held
        if held is None:
            held = self._here.held = Held(self._connect(), self._opened)
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
        with translate_errors(self.name):
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

    def writing(self) -> AbstractContextManager[Connection]:
        """One transaction: all of it is kept, on disk, when this returns; or none of it."""
        return _Transaction(self)

    @property
    def is_writing(self) -> bool:
        """Whether this thread is within a transaction."""
        return self._here.owner is not None

    def close(self) -> None:
        """Closes the connections of all threads. Using the store again opens new ones."""
        opened, self._opened, self._here = self._opened, Opened(), Here()
        opened.close_all()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset_after_fork(self) -> None:
        """Called in the child of a fork."""
        keep_unused(self._opened)
        self._opened, self._here = Opened(), Here()

    def _repeatable(self, work: Callable[[], Result]) -> Result:
        """Does what may be done twice; on a new connection where the old one broke."""
        try:
            return work()
        except Exception as error:
            with translate_errors(self.name):
                if self.is_writing or not is_disconnect(error):
                    raise
                self._let_go()
                return work()

    def _begun(self, owner: _Transaction) -> Connection:
        """The connection of this thread, in a transaction."""
        here = self._here
        if here.owner is not None and here.owner() is not None:
            raise StorageError(
                f"{self.name}: this thread is within a transaction already, and one within another "
                "cannot be kept by itself. Nothing of the inner one was written."
            )
        here.owner = None  # so that a connection that broke may be opened anew
        with translate_errors(self.name):
            connection = self._repeatable(self._try_to_begin)
        here.owner = ref(owner)
        return connection

    def _try_to_begin(self) -> Connection:
        connection = self.connection
        if self._is_open(connection):  # left by an interrupt, and nobody's
            connection.execute("ROLLBACK")
        connection.execute(self._begin)
        return connection

    def _is_open(self, connection: Connection) -> bool:
        """Whether the connection is in a transaction."""
        if self.is_sqlite:
            return bool(connection.in_transaction)
        return bool(connection.info.transaction_status)  # 0 is idle

    def _abandoned(self, owner: _Transaction) -> None:
        """Rolls back what was begun for ``owner``, if that is open still. Whatever is another's
        stays."""
        here = self._here
        if here.owner is None or here.owner() is owner:
            try:
                if here.held is not None:
                    self._roll_back(here.held.connection)
            finally:
                here.owner = None

    def _forsaken(self, owner: _Transaction) -> None:
        """The collector found ``owner`` before its end. It may be called within a statement, which
        no other can be run in; to close the connection rolls back too. In another thread than
        the owner's nothing is done: the next transaction of that one will roll back."""
        here = self._here
        if here.owner is not None and here.owner() in (None, owner):
            here.owner = None
            self._let_go()

    def _ended(self, connection: Connection, error: BaseException | None) -> None:
        """Commits; raises what the transaction failed with, where it did."""
        with translate_errors(self.name):
            if error is not None:
                raise error
            self._commit(connection)
        self._here.owner = None

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
            if self._is_open(connection):
                connection.execute("ROLLBACK")
        except BaseException as failure:
            self._let_go()
            if not isinstance(failure, Exception):
                raise

    def _connect(self) -> Connection:
        try:
            with translate_errors(self.name):
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


class _Transaction:
    """A class, because every record passes here and a generator costs several times as much.

    An interrupt may come between any two steps. Within these methods it is caught and rolls back;
    before their first step it cannot be, and what is then left open falls with this object."""

    __slots__ = ("__weakref__", "_connection", "_database")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Connection:
        try:
            self._connection = self._database._begun(self)
            return self._connection
        except BaseException:
            self._database._abandoned(self)
            raise

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            self._database._ended(self._connection, error)
        except BaseException:
            self._database._abandoned(self)
            raise

    def __del__(self) -> None:
        if hasattr(self, "_database"):  # not where the interrupt came even before
            self._database._forsaken(self)
