"""Drafts, made as ready as they can be before the ledger knows their number."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from lpf.errors import LedgerError
from lpf.ledger import statements
from lpf.ledger.canonical import canonical, canonical_halves
from lpf.ledger.formats import QUERY_TEXT_FIELD, RECORD_FORMAT
from lpf.ledger.merkle import leaf_hash
from lpf.ledger.records import Draft, QueryText, query_text_commitment, record_id
from lpf.storage.database import Database

# In canonical JSON a quote within a text is escaped, so this matches references and only those.
_REFERENCE = re.compile(rb'\{"blob":"([0-9a-f]{64})"\}')
_OWN_FIELDS = ("record_id", "format")
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A draft's bytes around the record id, and the rows it needs besides its own."""

    before: bytes
    after: bytes
    blobs: dict[bytes, bytes]
    texts: tuple[QueryText, ...]

    def seal(self, seq: int) -> tuple[bytes, bytes]:
        """The leaf hash and the body of record ``seq``."""
        body = b'%b"%b"%b' % (self.before, record_id(seq).encode(), self.after)
        return leaf_hash(body), body


class EntryMaker:
    """Remembers which blobs the store has, so that a shared one costs nothing after its first
    record."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored: set[bytes] = set()

    def make(self, draft: Draft) -> Entry:
        """LedgerError for a draft that would leave a record that does not verify."""
        for name in _OWN_FIELDS:
            if name in draft.fields:
                raise LedgerError(
                    f"{name}: the ledger itself sets this field; nothing was written."
                )
        fields = {**draft.fields, "format": RECORD_FORMAT}
        before, after = canonical_halves(fields, "record_id")
        referenced = {bytes.fromhex(found.decode()) for found in _references(before, after)}
        blobs = {hashlib.sha256(blob).digest(): blob for blob in draft.blobs}
        self._check(blobs, referenced)
        for text in draft.texts:
            _require_storable(text)
            _require_committed(text, draft.fields.get(QUERY_TEXT_FIELD))
        fresh = {digest: blob for digest, blob in blobs.items() if digest not in self._stored}
        return Entry(before, after, fresh, draft.texts)

    def remember(self, entries: Iterable[Entry]) -> None:
        """The blobs of these entries are in the store now."""
        for entry in entries:
            if entry.blobs:
                if len(self._stored) > _REMEMBERED:
                    self._stored = set()
                self._stored.update(entry.blobs)

    def _check(self, blobs: dict[bytes, bytes], referenced: set[bytes]) -> None:
        for digest in blobs.keys() - referenced:
            raise LedgerError(
                f"blob {digest.hex()}: the record does not refer to it; nothing was written. "
                "Put reference(blob) where it belongs in the fields."
            )
        for digest in referenced - blobs.keys() - self._stored:
            self._require_stored(digest)
        for digest in blobs.keys() - self._stored:
            _require_canonical(digest, blobs[digest])

    def _require_stored(self, digest: bytes) -> None:
        if self._database.row(statements.BLOB, (digest,)) is None:
            raise LedgerError(
                f"blob {digest.hex()}: the record refers to it, but neither draft nor store has "
                "it; nothing was written. Give it in Draft.blobs."
            )
        self._stored.add(digest)


def _references(before: bytes, after: bytes) -> list[bytes]:
    return _REFERENCE.findall(before) + _REFERENCE.findall(after)


def _require_canonical(digest: bytes, blob: bytes) -> None:
    try:
        sound = canonical(json.loads(blob)) == blob
    except ValueError:
        sound = False
    if not sound:
        raise LedgerError(
            f"blob {digest.hex()}: is not canonical JSON; nothing was written. "
            "Make it with canonical(value)."
        )


def _require_storable(text: QueryText) -> None:
    """What one of the databases cannot hold would fail every record of the same commit."""
    try:
        sound = b"\x00" not in text.text.encode()
    except UnicodeEncodeError:
        sound = False
    if not sound:
        raise LedgerError(
            f"query text {text.commitment.hex()}: holds a NUL or a lone surrogate, which no store "
            "can keep; nothing was written. Remove it from the text."
        )


def _require_committed(text: QueryText, named: object) -> None:
    """Words that do not belong to their record would be a finding for ever."""
    if text.commitment != query_text_commitment(text.salt, text.text):
        raise LedgerError(
            f"query text {text.commitment.hex()}: is not the commitment to its salt and words; "
            "nothing was written. Make it with query_text_commitment(salt, text)."
        )
    if named != text.commitment.hex():
        raise LedgerError(
            f"query text {text.commitment.hex()}: the record's field {QUERY_TEXT_FIELD} does not "
            "name it; nothing was written. Put commitment.hex() there."
        )
