"""Drafts that go into the ledger, the receipts that come back, and record ids."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpf.errors import LedgerError, UnknownRecordError
from lpf.ledger import statements
from lpf.ledger.canonical import canonical, canonical_around
from lpf.ledger.formats import RECORD_FORMAT, TEXT_FIELDS
from lpf.ledger.merkle import leaf_hash
from lpf.storage.database import Database

_RECORD_ID = re.compile(r"INF([0-9]{8,18})")
# In canonical JSON a quote within a text is escaped, so this matches references and only those.
_REFERENCE = re.compile(rb'\{"blob":"([0-9a-f]{64})"\}')
_SET_BY_LEDGER = ("record_id", "format")
_MOST_KNOWN_BLOBS = 10_000


def is_record_id(text: str) -> bool:
    """Return True for a text of the form of a record ID."""
    return _RECORD_ID.fullmatch(text) is not None


def record_id(seq: int) -> str:
    """``INF00000042``: eight digits, or more if needed."""
    return f"INF{seq:08d}"


def sequence_of(identifier: str) -> int:
    """The position of a record, from 1. UnknownRecordError if the text is not a record id."""
    match = _RECORD_ID.fullmatch(identifier)
    seq = int(match[1]) if match else 0
    if seq < 1 or record_id(seq) != identifier:
        raise UnknownRecordError(
            f"{identifier!r} is not the id of a record; ids look like {record_id(42)}."
        )
    return seq


@dataclass(frozen=True, slots=True)
class QueryText:
    """The text a question was asked with, or a reviewer's comment, stored outside the record so
    that it can be erased. The record holds ``commitment``, which reveals nothing about the text
    without ``salt``. See ``query_text_commitment``."""

    commitment: bytes
    salt: bytes
    text: str


def query_text_commitment(salt: bytes, text: str) -> bytes:
    """SHA-256 of salt and text: 32 bytes that bind the record to the text."""
    return hashlib.sha256(salt + text.encode()).digest()


def salted(text: str) -> QueryText:
    """A text that can be erased. The record has its salted hash; the text is stored separately."""
    salt = os.urandom(16)
    return QueryText(query_text_commitment(salt, text), salt, text)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A record that is on disk. ``leaf`` is its hash in the tree, 32 bytes."""

    record_id: str
    seq: int
    leaf: bytes


def reference(blob: bytes) -> dict[str, str]:
    """What a record holds in place of ``blob``."""
    return {"blob": hashlib.sha256(blob).hexdigest()}


class Draft:
    """A record without its number, as the bytes before and after its id.

    ``fields`` is the whole record except ``record_id`` and ``format``, which the ledger adds. A
    part that many records share goes into ``blobs`` as canonical JSON, stored once, and ``fields``
    holds ``reference(blob)`` in its place. ``texts`` holds the text whose commitment, in
    hexadecimal, is the field ``query_text`` or ``comment``. LedgerError for a draft whose record
    would not verify, as far as that can be checked without the store.
    """

    __slots__ = ("_after", "_before", "blobs", "references", "texts")

    def __init__(
        self,
        fields: Mapping[str, Any],
        blobs: Iterable[bytes] = (),
        texts: tuple[QueryText, ...] = (),
    ) -> None:
        for name in _SET_BY_LEDGER:
            if name in fields:
                raise LedgerError(
                    f"{name}: the ledger itself sets this field; nothing was written."
                )
        before, after = canonical_around({**fields, "format": RECORD_FORMAT}, "record_id")
        self._before, self._after = before, after
        digests = _REFERENCE.findall(before) + _REFERENCE.findall(after)
        # Digests of 32 bytes, here and as keys of ``blobs``.
        self.references = {bytes.fromhex(digest.decode()) for digest in digests}
        self.blobs = {hashlib.sha256(blob).digest(): blob for blob in blobs}
        for digest in self.blobs.keys() - self.references:
            raise LedgerError(
                f"blob {digest.hex()}: the record does not refer to it; nothing was written. "
                "Put reference(blob) where it belongs in the fields."
            )
        for text in texts:
            _require_storable(text)
            _require_committed(text, [fields.get(name) for name in TEXT_FIELDS])
        self.texts = texts

    def seal(self, seq: int) -> tuple[bytes, bytes]:
        """The leaf hash and the body of this draft as record number ``seq``."""
        body = b'%b"%b"%b' % (self._before, record_id(seq).encode(), self._after)
        return leaf_hash(body), body


def _require_storable(text: QueryText) -> None:
    """A text that one of the databases cannot hold would fail every record of the same commit."""
    try:
        is_storable = b"\x00" not in text.text.encode()
    except UnicodeEncodeError:
        is_storable = False
    if not is_storable:
        raise LedgerError(
            f"query text {text.commitment.hex()}: holds a NUL or a lone surrogate, which no store "
            "can hold; nothing was written. Remove it from the text."
        )


def _require_committed(text: QueryText, named: Sequence[object]) -> None:
    """A text that does not match its record could never be verified."""
    if text.commitment != query_text_commitment(text.salt, text.text):
        raise LedgerError(
            f"query text {text.commitment.hex()}: is not the commitment to its salt and text; "
            "nothing was written. Compute it with query_text_commitment(salt, text)."
        )
    if text.commitment.hex() not in named:
        raise LedgerError(
            f"query text {text.commitment.hex()}: the record's field {' or '.join(TEXT_FIELDS)} "
            "does not name it; nothing was written. Put commitment.hex() there."
        )


class KnownBlobs:
    """Remembers which blobs the store has, so that a shared blob is written and checked once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored: set[bytes] = set()

    def check(self, draft: Draft) -> None:
        """LedgerError unless each blob the draft refers to is canonical JSON or in the store."""
        for digest in draft.references - self._stored:
            if digest in draft.blobs:
                _require_canonical(digest, draft.blobs[digest])
            else:
                self._require_stored(digest)

    def missing(self, drafts: Iterable[Draft]) -> dict[bytes, bytes]:
        """The blobs that must be stored with these drafts."""
        return {
            digest: blob
            for draft in drafts
            for digest, blob in draft.blobs.items()
            if digest not in self._stored
        }

    def remember(self, digests: Iterable[bytes]) -> None:
        """Call after these blobs were stored."""
        if len(self._stored) > _MOST_KNOWN_BLOBS:
            self._stored = set()
        self._stored.update(digests)

    def _require_stored(self, digest: bytes) -> None:
        if self._database.row(statements.BLOB, (digest,)) is None:
            raise LedgerError(
                f"blob {digest.hex()}: the record refers to it, but neither draft nor store has "
                "it; nothing was written. Give it in Draft(blobs=...)."
            )
        self._stored.add(digest)


def _require_canonical(digest: bytes, blob: bytes) -> None:
    try:
        is_canonical = canonical(json.loads(blob)) == blob
    except (ValueError, RecursionError):
        is_canonical = False
    if not is_canonical:
        raise LedgerError(
            f"blob {digest.hex()}: is not canonical JSON; nothing was written. "
            "Make it with canonical(value)."
        )
