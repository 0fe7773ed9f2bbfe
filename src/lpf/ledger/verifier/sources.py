"""Where raw records come from: a store, or an export file. Both are streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import bindparam, select

from lpf.ledger.verifier.findings import Findings
from lpf.storage.database import Database
from lpf.storage.statements import Prepared
from lpf.storage.tables import ledger, ledger_blobs, ledger_identity, ledger_tiles

_IDENTITY = Prepared(select(ledger_identity.c.origin, ledger_identity.c.public_key))
_RECORDS = Prepared(
    select(ledger.c.seq, ledger.c.leaf, ledger.c.body, ledger.c.checkpoint).order_by(ledger.c.seq)
)
_TILE = Prepared(
    select(ledger_tiles.c.hashes)
    .where(ledger_tiles.c.level == bindparam("at_level"))
    .where(ledger_tiles.c.number == bindparam("at_number")),
    "at_level",
    "at_number",
)
_BLOBS = Prepared(select(ledger_blobs.c.hash, ledger_blobs.c.body))


@dataclass(frozen=True, slots=True)
class RawRecord:
    where: str
    seq: int
    leaf: bytes
    body: bytes
    checkpoint: bytes | None


@dataclass(frozen=True, slots=True)
class RawBlob:
    where: str
    digest: bytes
    body: bytes


class Source(Protocol):
    """Read in this order: identity, records (with tiles as they fill), blobs."""

    has_tiles: bool

    def identity(self) -> tuple[str, bytes] | None:
        """The ledger's name and public key; None, with a finding, where they cannot be read."""

    def records(self) -> Iterator[RawRecord]: ...

    def tile(self, level: int, number: int) -> bytes | None: ...

    def blobs(self) -> Iterator[RawBlob]: ...


class StoreSource:
    """The tables of a store. Others may append meanwhile: what is newer than the records' own
    reading is not looked at."""

    has_tiles = True

    def __init__(self, database: Database, findings: Findings) -> None:
        self._database = database
        self._findings = findings

    def identity(self) -> tuple[str, bytes] | None:
        rows = self._database.rows(_IDENTITY)
        if len(rows) != 1:
            self._findings.add("ledger_identity", f"expected one row, found {len(rows)}")
            return None
        return str(rows[0][0]), bytes(rows[0][1])

    def records(self) -> Iterator[RawRecord]:
        for chunk in self._database.stream(_RECORDS):
            for seq, leaf, body, checkpoint in chunk:
                signed = None if checkpoint is None else bytes(checkpoint)
                yield RawRecord(f"row {seq}", int(seq), bytes(leaf), bytes(body), signed)

    def tile(self, level: int, number: int) -> bytes | None:
        row = self._database.row(_TILE, (level, number))
        return None if row is None else bytes(row[0])

    def blobs(self) -> Iterator[RawBlob]:
        for chunk in self._database.stream(_BLOBS):
            for digest, body in chunk:
                yield RawBlob(f"blob {bytes(digest).hex()}", bytes(digest), bytes(body))
