"""Stream raw records from a store, with statements of the verifier's own.

SQLite stores values of any type in any column, and its driver fails on texts that are not UTF-8.
So each value is read as bytes or, if its type is not the column's, as the name of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import ColumnElement, LargeBinary, Select, case, cast, func, literal_column, select

from lpf.ledger.verifier.findings import Findings
from lpf.storage.database import Database, Row
from lpf.storage.statements import Prepared
from lpf.storage.tables import ledger, ledger_blobs, ledger_identity, ledger_tiles, query_texts

Column = ColumnElement[Any]
Read = Callable[[Column, str], Column]


class RawStatement:
    """A statement whose columns are read differently in each database."""

    def __init__(self, build: Callable[[Read], Select[Any]]) -> None:
        self._sqlite = Prepared(build(_read_sqlite))
        self._postgres = Prepared(build(_read_postgres))

    def of(self, database: Database) -> Prepared:
        return self._sqlite if database.is_sqlite else self._postgres


def _read_sqlite(column: Column, kind: str) -> Column:
    type_name = func.typeof(column)
    value = cast(column, LargeBinary) if kind == "text" else column
    return case((type_name == literal_column(f"'{kind}'"), value), else_=type_name)


def _read_postgres(column: Column, kind: str) -> Column:
    """PostgreSQL enforces the type of a column."""
    return func.convert_to(column, literal_column("'UTF8'")) if kind == "text" else column


IDENTITY = RawStatement(
    lambda read: select(
        read(ledger_identity.c.origin, "text"), read(ledger_identity.c.public_key, "blob")
    )
)
TEXTS = RawStatement(
    lambda read: select(
        read(query_texts.c.commitment, "blob"),
        read(query_texts.c.salt, "blob"),
        read(query_texts.c.text, "text"),
    )
)
RECORDS = RawStatement(
    lambda read: select(
        ledger.c.seq,
        read(ledger.c.leaf, "blob"),
        read(ledger.c.body, "blob"),
        read(ledger.c.checkpoint, "blob"),
    ).order_by(ledger.c.seq)
)
LAST_NUMBER = Prepared(select(func.max(ledger.c.seq)))
TILES = RawStatement(
    lambda read: select(
        read(ledger_tiles.c.level, "integer"),
        read(ledger_tiles.c.number, "integer"),
        read(ledger_tiles.c.hashes, "blob"),
    ).order_by(ledger_tiles.c.level, ledger_tiles.c.number)
)
BLOBS = RawStatement(
    lambda read: select(read(ledger_blobs.c.hash, "blob"), read(ledger_blobs.c.body, "blob"))
)


@dataclass(frozen=True, slots=True)
class RawRecord:
    """``leaf`` and ``body`` are None if they have the wrong type, which is a finding."""

    where: str
    seq: int
    leaf: bytes | None
    body: bytes | None
    checkpoint: bytes | None


@dataclass(frozen=True, slots=True)
class RawBlob:
    where: str
    digest: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class RawTile:
    where: str
    level: int
    number: int
    hashes: bytes


@dataclass(frozen=True, slots=True)
class RawText:
    """``words`` is the text in UTF-8, or other bytes found in its place."""

    where: str
    commitment: bytes
    salt: bytes
    words: bytes


class RecordSource(Protocol):
    """A store or an export file. Must be read in this order: identity, texts, records, tiles,
    blobs."""

    has_tiles: bool

    def identity(self) -> tuple[str, bytes] | None:
        """The ledger's origin and public key, or None, with a finding, if they cannot be read."""

    def texts(self) -> Iterator[RawText]: ...

    def records(self) -> Iterator[RawRecord]: ...

    def tiles(self) -> Iterator[RawTile]:
        """Ordered by level and number."""

    def last_number(self) -> int:
        """The number of the newest record, which may be newer than those of ``records``."""

    def blobs(self) -> Iterator[RawBlob]: ...


class StoreSource:
    """A RecordSource that reads the tables of a store. Records appended while it is being read are
    ignored."""

    has_tiles = True

    def __init__(self, database: Database, findings: Findings) -> None:
        self._database = database
        self._findings = findings

    def identity(self) -> tuple[str, bytes] | None:
        rows = self._database.rows(IDENTITY.of(self._database))
        if len(rows) != 1:
            self._findings.add("ledger_identity", f"expected one row, found {len(rows)}")
            return None
        origin, key = (
            self._data("ledger_identity", name, value)
            for name, value in zip(("origin", "public_key"), rows[0], strict=True)
        )
        return origin.decode(errors="replace"), key

    def texts(self) -> Iterator[RawText]:
        for commitment, salt, words in self._rows(TEXTS):
            name = self._data("query_texts", "commitment", commitment)
            where = f"query text {name.hex()}"
            given = self._data(where, "salt", salt), self._data(where, "text", words)
            yield RawText(where, name, *given)

    def records(self) -> Iterator[RawRecord]:
        for seq, leaf, body, checkpoint in self._rows(RECORDS):
            where = f"INF{seq:08d}"
            signed = None if checkpoint in (None, "null") else checkpoint
            yield RawRecord(
                where,
                int(seq),
                self._typed(where, "leaf", leaf),
                self._typed(where, "body", body),
                None if signed is None else self._typed(where, "checkpoint", signed),
            )

    def tiles(self) -> Iterator[RawTile]:
        for level, number, hashes in self._rows(TILES):
            where = f"tile {number} of level {level}"
            if isinstance(level, str) or isinstance(number, str):
                self._findings.add(where, "expected whole numbers for level and number")
            else:
                yield RawTile(where, level, number, self._data(where, "hashes", hashes))

    def last_number(self) -> int:
        row = self._database.row(LAST_NUMBER)
        return int(row[0] or 0) if row else 0

    def blobs(self) -> Iterator[RawBlob]:
        for digest, body in self._rows(BLOBS):
            name = self._data("ledger_blobs", "hash", digest)
            where = f"blob {name.hex()}"
            yield RawBlob(where, name, self._data(where, "body", body))

    def _rows(self, statement: RawStatement) -> Iterator[Row]:
        for chunk in self._database.stream(statement.of(self._database)):
            yield from chunk

    def _data(self, where: str, name: str, value: Any) -> bytes:
        """The value's bytes; empty, with a finding, if it has the wrong type."""
        return self._typed(where, name, value) or b""

    def _typed(self, where: str, name: str, value: Any) -> bytes | None:
        if isinstance(value, str):
            self._findings.add(where, f"{name}: has the wrong type {value}")
            return None
        return bytes(value)
