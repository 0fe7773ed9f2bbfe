"""The verifier's own statements. SQLite keeps a value of any type in any column, and its driver
gives up on texts that are not UTF-8; so each value comes as bytes, or as the name of its type where
that is not the column's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, LargeBinary, Select, case, cast, func, literal_column, select

from lpf.storage.database import Database
from lpf.storage.statements import Prepared
from lpf.storage.tables import ledger, ledger_blobs, ledger_identity, ledger_tiles, query_texts

Column = ColumnElement[Any]
Read = Callable[[Column, str], Column]


class ByDialect:
    """A statement whose columns are read in the way of each database."""

    def __init__(self, build: Callable[[Read], Select[Any]]) -> None:
        self._sqlite = Prepared(build(_of_sqlite))
        self._postgres = Prepared(build(_of_postgres))

    def of(self, database: Database) -> Prepared:
        return self._sqlite if database.is_sqlite else self._postgres


def _of_sqlite(column: Column, kind: str) -> Column:
    found = func.typeof(column)
    value = cast(column, LargeBinary) if kind == "text" else column
    return case((found == literal_column(f"'{kind}'"), value), else_=found)


def _of_postgres(column: Column, kind: str) -> Column:
    """Which lets no other type in."""
    return func.convert_to(column, literal_column("'UTF8'")) if kind == "text" else column


IDENTITY = ByDialect(
    lambda read: select(
        read(ledger_identity.c.origin, "text"), read(ledger_identity.c.public_key, "blob")
    )
)
TEXTS = ByDialect(
    lambda read: select(
        read(query_texts.c.commitment, "blob"),
        read(query_texts.c.salt, "blob"),
        read(query_texts.c.text, "text"),
    )
)
RECORDS = ByDialect(
    lambda read: select(
        ledger.c.seq,
        read(ledger.c.leaf, "blob"),
        read(ledger.c.body, "blob"),
        read(ledger.c.checkpoint, "blob"),
    ).order_by(ledger.c.seq)
)
LAST_NUMBER = Prepared(select(func.max(ledger.c.seq)))
TILES = ByDialect(
    lambda read: select(
        read(ledger_tiles.c.level, "integer"),
        read(ledger_tiles.c.number, "integer"),
        read(ledger_tiles.c.hashes, "blob"),
    ).order_by(ledger_tiles.c.level, ledger_tiles.c.number)
)
BLOBS = ByDialect(
    lambda read: select(read(ledger_blobs.c.hash, "blob"), read(ledger_blobs.c.body, "blob"))
)
