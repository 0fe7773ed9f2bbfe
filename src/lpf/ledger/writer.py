"""The ledger as a program that appends sees it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lpf.errors import LedgerError, StorageError
from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.entries import Entry, EntryMaker
from lpf.ledger.group import GroupCommit
from lpf.ledger.identity import Identity, create_identity, read_identity, require_key
from lpf.ledger.keys import public_bytes
from lpf.ledger.later import Later, MakeDraft
from lpf.ledger.records import Draft, Receipt
from lpf.ledger.sequencer import Sequencer
from lpf.ledger.stencils import Filled
from lpf.storage.connections import start_anew_after_fork
from lpf.storage.database import Database

CHECKPOINT_SECONDS = 1.0


class Ledger:
    """Appends records, from any number of threads, processes and (on PostgreSQL) hosts.

    A process that has the private key signs a checkpoint with the first commit after
    ``checkpoint_seconds`` and when it closes. One without appends all the same; its records stay
    unsigned until a process with the key commits. The child of a fork may go on with it; what was
    pending is its parent's.
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
        start_anew_after_fork(self)

    @staticmethod
    def create(database: Database, public_key: bytes) -> Identity:
        """Makes the store's ledger, once; with the same key again it changes nothing."""
        return create_identity(database, public_key)

    def append(self, draft: Draft | Filled) -> Receipt:
        """On disk when this returns. A StorageError says that nothing was written."""
        return self._submit([self._maker.make(draft)])[0]

    def append_many(self, drafts: Sequence[Draft | Filled]) -> list[Receipt]:
        """As ``append``; all of them or none, with numbers that follow each other."""
        return self._submit([self._maker.make(draft) for draft in drafts])

    def append_later(self, make_draft: MakeDraft) -> None:
        """On disk some 20 ms later, in a group; ``make_draft`` is called on another thread. While
        the store is full, busy or away, it is kept and tried again. LedgerError for what else
        failed since the last call, and where too much is kept; ``make_draft`` is then not taken."""
        self._later.put(make_draft)

    @property
    def signs(self) -> bool:
        """Whether this process has the private key, so that it signs what it appends."""
        return self._signs

    @property
    def pending(self) -> int:
        """How many records given to ``append_later`` are not on disk yet."""
        return self._later.pending

    def flush(self) -> None:
        """Waits until nothing is pending. LedgerError if some of it could not be written; it says
        how many are kept, which the next ``flush`` or ``close`` tries again."""
        self._later.flush()

    def checkpoint(self) -> Checkpoint | None:
        """Signs the ledger as it is now; None while it has no record. LedgerKeyError without a
        private key."""
        return self._sequencer.checkpoint()

    def close(self) -> None:
        """Writes what is pending and signs, where there is a key. The database stays open.
        LedgerError as ``flush``."""
        try:
            self._later.close()
        except LedgerError:
            with suppress(StorageError):  # that records are missing is what the caller must see
                self._sign()
            raise
        self._sign()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def leave_to_parent(self) -> None:
        """Called in the child of a fork: its parent's locks may be held, its thread is not here."""
        self._sequencer.leave_to_parent()
        self._group = GroupCommit(self._sequencer.commit)
        self._later.leave_to_parent()

    def _sign(self) -> None:
        if self._signs:
            self.checkpoint()

    def _submit(self, entries: Sequence[Entry]) -> list[Receipt]:
        if not entries:
            return []
        receipts = self._group.submit(entries)
        self._maker.remember(entries)
        return receipts
