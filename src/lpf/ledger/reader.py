"""Look up records of a ledger.

Each body is compared with its hash. Only ``verify`` checks that the hashes are the signed ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
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
from lpf.storage.values import to_micros

TIMES_COMPARED = 20


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """``body`` is canonical JSON, ``fields`` is the parsed body, ``leaf`` its hash (32 bytes)."""

    seq: int
    leaf: bytes
    body: bytes
    checkpoint: Checkpoint | None

    @property
    def record_id(self) -> str:
        return record_id(self.seq)

    @property
    def fields(self) -> dict[str, Any]:
        """LedgerBrokenError if the body is not a JSON object."""
        try:
            parsed = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise broken(self.record_id, "its body is not JSON") from error
        if not isinstance(parsed, dict):
            raise broken(self.record_id, "its body is not a JSON object")
        return parsed


class LedgerReader:
    """Reads the ledger of a store; needs no key. LedgerBrokenError for a record or blob that does
    not match its hash."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def identity(self) -> Identity:
        return read_identity(self._database)

    @property
    def size(self) -> int:
        """The number of records."""
        row = self._database.row(statements.SIZE)
        return int(row[0] or 0) if row else 0

    def get(self, identifier: str) -> StoredRecord:
        """UnknownRecordError if there is no such record."""
        seq = sequence_of(identifier)
        row = self._database.row(statements.RECORD, (seq,))
        if row is None:
            raise UnknownRecordError(
                f"{identifier} is not in the ledger, which has {self.size} records."
            )
        return _record(seq, *row)

    def get_many(self, numbers: Iterable[int]) -> Iterator[StoredRecord]:
        """The records with these numbers, those that there are."""
        for row in self._database.look_up(statements.RECORDS_OF, numbers):
            yield _record(*row)

    def newest_time(self) -> int | None:
        """The latest time of the newest records, in microseconds since 1970: of several, since a
        clock that was set back gives the very newest an earlier time. None if none has a time;
        ``verify`` reports damaged records."""
        size = self.size
        rows = self._database.rows(statements.RECORDS, (max(1, size - TIMES_COMPARED + 1), size))
        times = [_time_of(body) for _, _, body, _ in rows]
        return max((time for time in times if time is not None), default=None)

    def records(self, first: int = 1, last: int | None = None) -> Iterator[StoredRecord]:
        """Stream the records with numbers ``first`` to ``last``, in order."""
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
        """The record's fields with every ``{"blob": hash}`` replaced by the blob's content."""
        require_body(record.seq, record.leaf, record.body)
        expanded: dict[str, Any] = self._expanded(record.fields)
        return expanded

    def query_text(self, commitment: bytes) -> QueryText | None:
        """The text behind a salted hash; None if it was erased or never stored. LedgerBrokenError
        if it does not match the hash."""
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


def _time_of(body: Any) -> int | None:
    try:
        return to_micros(datetime.fromisoformat(json.loads(body)["timestamp"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def is_digest(value: Any) -> bool:
    """Return True if the value is a SHA-256 in lower-case hexadecimal."""
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
    # SQLite stores values of any type in any column, so the types are checked.
    typed = isinstance(salt, bytes) and isinstance(text, str)
    if typed and query_text_commitment(salt, text) == commitment:
        return QueryText(commitment, salt, text)
    raise broken(f"query text {commitment.hex()}", "its text or salt was changed")


def _record(seq: int, leaf: object, body: object, checkpoint: object) -> StoredRecord:
    digest, content = require_body(seq, leaf, body)
    signed = None if checkpoint is None else require_checkpoint(record_id(seq), checkpoint)
    return StoredRecord(seq, digest, content, signed)
