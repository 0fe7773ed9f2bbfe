"""Drafts, made as ready as they can be before the ledger knows their number."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lpf.errors import LedgerError
from lpf.ledger import statements
from lpf.ledger.canonical import canonical
from lpf.ledger.merkle import leaf_hash
from lpf.ledger.records import Draft, QueryText, record_id
from lpf.ledger.stencils import Filled, Stencil
from lpf.storage.database import Database

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
