"""Drafts that are alike but for a few fields: all else is written and checked once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lpf.errors import LedgerError
from lpf.ledger.canonical import canonical, canonical_around
from lpf.ledger.formats import QUERY_TEXT_FIELD, RECORD_FORMAT
from lpf.ledger.records import Draft, QueryText, query_text_commitment

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
