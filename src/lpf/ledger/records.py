"""What goes into the ledger and what comes back.

Drafts that are alike but for a few fields: all else is written and checked once.

Drafts, made as ready as they can be before the ledger knows their number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lpf.errors import LedgerError, UnknownRecordError
from lpf.ledger import statements
from lpf.ledger.canonical import canonical, canonical_around
from lpf.ledger.formats import QUERY_TEXT_FIELD, RECORD_FORMAT
from lpf.ledger.merkle import leaf_hash
from lpf.storage.database import Database

_RECORD_ID = re.compile(r"INF([0-9]{8,18})")


def record_id(seq: int) -> str:
    """``INF00000042``: eight digits, more once they are needed."""
    return f"INF{seq:08d}"


def sequence_of(identifier: str) -> int:
    """The place of a record, from 1. UnknownRecordError for what no record can be called."""
    found = _RECORD_ID.fullmatch(identifier)
    seq = int(found[1]) if found else 0
    if seq < 1 or record_id(seq) != identifier:
        raise UnknownRecordError(
            f"{identifier!r} is not the id of a record; ids look like {record_id(42)}."
        )
    return seq


@dataclass(frozen=True, slots=True)
class QueryText:
    """The words of a question, kept outside the record so that they can be erased; the record
    holds ``commitment``, which says nothing about the words without ``salt``. See
    ``query_text_commitment``."""

    commitment: bytes
    salt: bytes
    text: str


def query_text_commitment(salt: bytes, text: str) -> bytes:
    """SHA-256 of salt and text: 32 bytes that bind the record to its words."""
    return hashlib.sha256(salt + text.encode()).digest()


@dataclass(frozen=True, slots=True)
class Draft:
    """A record to be. ``fields`` is all of it but ``record_id`` and ``format``, which the ledger
    adds. A part that many records share goes into ``blobs`` as canonical JSON, stored once, and
    ``fields`` holds ``reference(blob)`` in its place. A text in ``texts`` is the one whose
    commitment, in hexadecimal, is the field ``query_text``."""

    fields: Mapping[str, Any]
    blobs: tuple[bytes, ...] = ()
    texts: tuple[QueryText, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """A record that is on disk. ``leaf`` is its hash in the tree, 32 bytes."""

    record_id: str
    seq: int
    leaf: bytes


def reference(blob: bytes) -> dict[str, str]:
    """What a record holds in place of ``blob``."""
    return {"blob": hashlib.sha256(blob).hexdigest()}


# In canonical JSON a quote within a text is escaped, so this matches references and only those.
_REFERENCE = re.compile(rb'\{"blob":"([0-9a-f]{64})"\}')
_ID = "record_id"


class Stencil:
    """A draft whose fields ``names`` are left open. ``referenced`` and the keys of ``blobs`` are
    hashes of 32 bytes. LedgerError for a draft that would leave a record that does not verify,
    as far as the store is not needed to tell."""

    __slots__ = ("_names", "_pieces", "_place", "blobs", "referenced", "texts")

    def __init__(self, draft: Draft, names: Collection[str] = ()) -> None:
        for name in (_ID, "format"):
            if name in draft.fields:
                raise LedgerError(
                    f"{name}: the ledger itself sets this field; nothing was written."
                )
        fields = {**draft.fields, "format": RECORD_FORMAT}
        for name in names:
            fields.pop(name, None)
        self._names, self._pieces = canonical_around(fields, (*names, _ID))
        self._place = self._names.index(_ID)
        found = [digest for piece in self._pieces for digest in _REFERENCE.findall(piece)]
        self.referenced = {bytes.fromhex(digest.decode()) for digest in found}
        self.blobs = {hashlib.sha256(blob).digest(): blob for blob in draft.blobs}
        for digest in self.blobs.keys() - self.referenced:
            raise LedgerError(
                f"blob {digest.hex()}: the record does not refer to it; nothing was written. "
                "Put reference(blob) where it belongs in the fields."
            )
        for text in draft.texts:
            _require_storable(text)
            _require_committed(text, draft.fields.get(QUERY_TEXT_FIELD))
        self.texts = draft.texts

    def around_id(self, values: Mapping[str, str | float]) -> tuple[bytes, bytes]:
        """The record's bytes before and after its id. ``values`` has the open fields and no more;
        they are texts and numbers, so that they cannot refer to a blob."""
        pieces = self._pieces
        if len(self._names) == 1:
            return pieces[0], pieces[1]
        written = [b"" if name == _ID else canonical(values[name]) for name in self._names]
        parts = [part for pair in zip(pieces, written, strict=False) for part in pair]
        cut = 2 * self._place + 1
        return b"".join(parts[:cut]), b"".join([*parts[cut:], pieces[-1]])


@dataclass(frozen=True, slots=True)
class Filled:
    """A draft again: a stencil, and the values of its open fields."""

    stencil: Stencil
    values: Mapping[str, str | float]


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

    def make(self, draft: Draft | Filled) -> Entry:
        """LedgerError for a draft that would leave a record that does not verify."""
        filled = draft if isinstance(draft, Filled) else Filled(Stencil(draft), {})
        stencil, fresh = filled.stencil, {}
        if not stencil.referenced <= self._stored:
            fresh = self._fresh(stencil)
        return Entry(*stencil.around_id(filled.values), fresh, stencil.texts)

    def remember(self, entries: Iterable[Entry]) -> None:
        """The blobs of these entries are in the store now."""
        for entry in entries:
            if entry.blobs:
                if len(self._stored) > _REMEMBERED:
                    self._stored = set()
                self._stored.update(entry.blobs)

    def _fresh(self, stencil: Stencil) -> dict[bytes, bytes]:
        """The blobs that are to be stored with the record."""
        fresh = {
            digest: blob for digest, blob in stencil.blobs.items() if digest not in self._stored
        }
        for digest in stencil.referenced - fresh.keys() - self._stored:
            self._require_stored(digest)
        for digest, blob in fresh.items():
            _require_canonical(digest, blob)
        return fresh

    def _require_stored(self, digest: bytes) -> None:
        if self._database.row(statements.BLOB, (digest,)) is None:
            raise LedgerError(
                f"blob {digest.hex()}: the record refers to it, but neither draft nor store has "
                "it; nothing was written. Give it in Draft.blobs."
            )
        self._stored.add(digest)


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
