"""From the address of a store to the engine that opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.engine import Engine
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from lpf.errors import ConfigError, StoreUnavailableError
from lpf.storage.connections import Connection

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
