"""The ledger as a program that appends sees it."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.entries import Entry, EntryMaker
from lpf.ledger.group import GroupCommit
from lpf.ledger.identity import Identity, create_identity, read_identity, require_key
from lpf.ledger.keys import public_bytes
from lpf.ledger.later import Later, MakeDraft
from lpf.ledger.records import Draft, Receipt
from lpf.ledger.sequencer import Sequencer
from lpf.storage.database import Database

CHECKPOINT_SECONDS = 1.0


class Ledger:
    """Appends records, from any number of threads, processes and (on PostgreSQL) hosts.

    A process that has the private key signs a checkpoint with the first commit after
    ``checkpoint_seconds`` and when it closes. One without appends all the same; its records stay
    unsigned until a process with the key commits. A program that forks opens it afterwards.
    """

    def __init__(
        self,
        database: Database,
        private_key: Ed25519PrivateKey | None = None,
        *,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        """LedgerKeyError for the key of another ledger, LedgerError where there is none yet,
        LedgerBrokenError where the stored tree does not fit the last checkpoint."""
        self.identity = read_identity(database)
        if private_key is not None:
            require_key(self.identity, public_bytes(private_key))
        self._signs = private_key is not None
        self._sequencer = Sequencer(database, self.identity, private_key, checkpoint_seconds)
        self._maker = EntryMaker(database)
        self._group = GroupCommit(self._sequencer.commit)
        self._later = Later(self._maker.make, self._submit)

    @staticmethod
    def create(database: Database, public_key: bytes) -> Identity:
        """Makes the store's ledger, once; with the same key again it changes nothing."""
        return create_identity(database, public_key)

    def append(self, draft: Draft) -> Receipt:
        """On disk when this returns. A StorageError says that nothing was written."""
        return self._submit([self._maker.make(draft)])[0]

    def append_many(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """As ``append``; all of them or none, with numbers that follow each other."""
        return self._submit([self._maker.make(draft) for draft in drafts])

    def append_later(self, make_draft: MakeDraft) -> None:
        """On disk some 20 ms later, in a group; ``make_draft`` is called on another thread.
        LedgerError for what failed since the last call; ``make_draft`` is then not taken."""
        self._later.put(make_draft)

    @property
    def pending(self) -> int:
        """How many records given to ``append_later`` are not on disk yet."""
        return self._later.pending

    def flush(self) -> None:
        """Waits until nothing is pending. LedgerError if some of it could not be written."""
        self._later.flush()

    def checkpoint(self) -> Checkpoint | None:
        """Signs the ledger as it is now; None while it has no record. LedgerKeyError without a
        private key."""
        return self._sequencer.checkpoint()

    def close(self) -> None:
        """Writes what is pending and signs, where there is a key. The database stays open."""
        try:
            self._later.close()
        finally:
            if self._signs:
                self.checkpoint()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, entries: Sequence[Entry]) -> list[Receipt]:
        if not entries:
            return []
        receipts = self._group.submit(entries)
        self._maker.remember(entries)
        return receipts
