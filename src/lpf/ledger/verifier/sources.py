"""Where raw records come from: a store, or an export file. Both are streamed.

The verifier's own statements. SQLite keeps a value of any type in any column, and its driver
gives up on texts that are not UTF-8; so each value comes as bytes, or as the name of its type where
that is not the column's.
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
    """``leaf`` and ``body`` are None where they have the wrong type, which is a finding then."""

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
    """``words``: the text in UTF-8, or whatever stands in its place."""

    where: str
    commitment: bytes
    salt: bytes
    words: bytes


class Source(Protocol):
    """Read in this order: identity, texts, records, tiles, blobs."""

    has_tiles: bool

    def identity(self) -> tuple[str, bytes] | None:
        """The ledger's name and public key; None, with a finding, where they cannot be read."""

    def texts(self) -> Iterator[RawText]: ...

    def records(self) -> Iterator[RawRecord]: ...

    def tiles(self) -> Iterator[RawTile]:
        """In the order of level and number."""

    def last_number(self) -> int:
        """That of the newest record, which may have come after ``records`` was read."""

    def blobs(self) -> Iterator[RawBlob]: ...


class StoreSource:
    """The tables of a store. Others may append meanwhile: what is newer than the records' own
    reading is not looked at."""

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
        """The value's bytes; none of them, with a finding, where it has the wrong type."""
        return self._typed(where, name, value) or b""

    def _typed(self, where: str, name: str, value: Any) -> bytes | None:
        if isinstance(value, str):
            self._findings.add(where, f"{name}: is of type {value}, which does not belong there")
            return None
        return bytes(value)
