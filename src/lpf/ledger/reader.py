"""The ledger as a program that looks things up sees it.

Each body is compared with its own hash. That the hashes are those that were signed, only
``verify`` can tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lpf.errors import UnknownRecordError
from lpf.ledger import statements
from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.identity import (
    Identity,
    broken,
    read_identity,
    require_blob,
    require_body,
    require_checkpoint,
)
from lpf.ledger.records import QueryText, query_text_commitment, record_id, sequence_of
from lpf.storage.database import Database


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """``body`` is the canonical JSON, ``fields`` the same parsed, ``leaf`` its hash (32 bytes)."""

    seq: int
    leaf: bytes
    body: bytes
    checkpoint: Checkpoint | None

    @property
    def record_id(self) -> str:
        return record_id(self.seq)

    @property
    def fields(self) -> dict[str, Any]:
        """LedgerBrokenError where the body is no object in JSON."""
        try:
            parsed = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise broken(self.record_id, "its body is not JSON") from error
        if not isinstance(parsed, dict):
            raise broken(self.record_id, "its body is not an object in JSON")
        return parsed


class LedgerReader:
    """Look-ups in a store's ledger; needs no key. LedgerBrokenError for a record or blob whose
    body is not the one that its hash was made of."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def identity(self) -> Identity:
        return read_identity(self._database)

    @property
    def size(self) -> int:
        row = self._database.row(statements.SIZE)
        return int(row[0] or 0) if row else 0

    def get(self, identifier: str) -> StoredRecord:
        seq = sequence_of(identifier)
        row = self._database.row(statements.RECORD, (seq,))
        if row is None:
            raise UnknownRecordError(
                f"{identifier}: the ledger has no such record; it has {self.size} so far."
            )
        return _record(seq, *row)

    def records(self, first: int = 1, last: int | None = None) -> Iterator[StoredRecord]:
        """In order, numbers ``first`` to ``last``; memory does not grow with their count."""
        bounds = (first, self.size if last is None else last)
        for chunk in self._database.stream(statements.RECORDS, bounds):
            for row in chunk:
                yield _record(*row)

    def latest_checkpoint(self) -> Checkpoint | None:
        row = self._database.row(statements.LATEST_CHECKPOINT, (1, self.size))
        return require_checkpoint("the newest checkpoint", row[0]) if row else None

    def blob(self, digest: bytes) -> bytes:
        """The canonical JSON that records refer to by ``digest``."""
        row = self._database.row(statements.BLOB, (digest,))
        if row is None:
            raise broken(f"blob {digest.hex()}", "is missing")
        return require_blob(digest, row[0])

    def expand(self, record: StoredRecord) -> dict[str, Any]:
        """The record's fields with every ``{"blob": hash}`` replaced by what it stands for."""
        require_body(record.seq, record.leaf, record.body)
        expanded: dict[str, Any] = self._expanded(record.fields)
        return expanded

    def query_text(self, commitment: bytes) -> QueryText | None:
        """The words behind a commitment; None where they were erased or never kept.
        LedgerBrokenError where they are not the ones that were committed to."""
        row = self._database.row(statements.TEXT, (commitment,))
        return _query_text(commitment, *row) if row else None

    def _expanded(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._expanded(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"blob"} and is_digest(value["blob"]):
            return json.loads(self.blob(bytes.fromhex(value["blob"])))
        return {name: self._expanded(item) for name, item in value.items()}


def is_digest(value: Any) -> bool:
    """Whether a text is a SHA-256 in lower-case hexadecimal."""
    return isinstance(value, str) and len(value) == 64 and not set(value) - set("0123456789abcdef")


def referenced_blobs(value: Any) -> set[bytes]:
    """The hashes of all blobs that a record's fields refer to."""
    if isinstance(value, dict):
        if value.keys() == {"blob"} and is_digest(value["blob"]):
            return {bytes.fromhex(value["blob"])}
        value = list(value.values())
    if isinstance(value, list):
        return set().union(*map(referenced_blobs, value))
    return set()


def _query_text(commitment: bytes, salt: Any, text: Any) -> QueryText:
    # SQLite keeps values of any type in any column, hence the look at theirs.
    typed = isinstance(salt, bytes) and isinstance(text, str)
    if typed and query_text_commitment(salt, text) == commitment:
        return QueryText(commitment, salt, text)
    raise broken(f"query text {commitment.hex()}", "its words or salt were changed")


def _record(seq: int, leaf: object, body: object, checkpoint: object) -> StoredRecord:
    sound = require_body(seq, leaf, body)
    signed = None if checkpoint is None else require_checkpoint(record_id(seq), checkpoint)
    return StoredRecord(seq, *sound, signed)
