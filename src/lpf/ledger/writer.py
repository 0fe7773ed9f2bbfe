"""Appends to the ledger: ``Ledger``, and the transaction that numbers the records.

Each process remembers the tree's frontier at the last record it saw. In the transaction this is
compared with the store's last record. If they are the same, nothing has to be read; if the store
has more records, those of other processes are read; anything else means that history was
rewritten.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lpf.errors import (
    LedgerBrokenError,
    LedgerError,
    LedgerKeyError,
    StorageError,
    StoreUnavailableError,
)
from lpf.ledger import checkpoint as checkpoints
from lpf.ledger import statements
from lpf.ledger.background_writer import BackgroundWriter, MakeDraft
from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.formats import TEXT_FIELDS
from lpf.ledger.group_commit import GroupCommit
from lpf.ledger.identity import (
    Identity,
    create_identity,
    read_identity,
    require_checkpoint,
    require_key,
    require_leaf,
    take_turn,
)
from lpf.ledger.keys import public_bytes
from lpf.ledger.merkle import Frontier, root_of
from lpf.ledger.reader import LedgerReader, is_digest
from lpf.ledger.records import Draft, KnownBlobs, QueryText, Receipt, record_id
from lpf.ledger.tiles import Read, StoredTree, leaves_of, write_completed_tiles
from lpf.storage.connections import register_fork_reset
from lpf.storage.database import Connection, Database, Row
from lpf.storage.statements import Prepared
from lpf.storage.values import now_micros

Result = TypeVar("Result")

# Up to this many missing records are read leaf by leaf; beyond that, tiles are fewer rows.
_SMALL_GAP = 512


@dataclass(frozen=True)
class Tip:
    """Where the ledger ends: the tree, the last leaf, the last signed checkpoint."""

    frontier: Frontier
    leaf: bytes = b""
    signed: Checkpoint | None = None

    @property
    def size(self) -> int:
        return self.frontier.size

    @property
    def signed_size(self) -> int:
        return self.signed.size if self.signed else 0


class Sequencer:
    """Numbers the records of this process; threads take turns."""

    def __init__(
        self,
        database: Database,
        identity: Identity,
        private_key: Ed25519PrivateKey | None,
        checkpoint_seconds: float,
    ) -> None:
        self._database = database
        self._identity = identity
        self._key = private_key
        self._checkpoint_micros = int(checkpoint_seconds * 1_000_000)
        self.blobs = KnownBlobs(database)
        self._lock = threading.Lock()
        self._tip = self._current(database.rows, Tip(Frontier()))

    def commit(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Writes all drafts in one transaction; if that fails, none is written."""
        blobs = self.blobs.missing(drafts)

        def append(connection: Connection, tip: Tip) -> tuple[list[Any], Tip]:
            rows, grown = _sealed(drafts, tip)
            if self._is_due(grown):
                grown = self._signed(grown)
                rows[-1] = (*rows[-1][:3], _bytes_of(grown.signed))
            self._write(connection, rows, blobs, [text for draft in drafts for text in draft.texts])
            write_completed_tiles(self._database, connection, tip.size, grown.size)
            return rows, grown

        rows = self._in_turn(append)
        self.blobs.remember(blobs)
        return [Receipt(record_id(seq), seq, leaf) for seq, leaf, _, _ in rows]

    def checkpoint(self) -> Checkpoint | None:
        """A signed checkpoint over all records; None while there are none."""
        if self._key is None:
            raise LedgerKeyError(
                "this process has no signing key, so no checkpoint was signed. Open the ledger "
                "with the key it was created with."
            )

        def sign(connection: Connection, tip: Tip) -> tuple[Checkpoint | None, Tip]:
            if tip.size > tip.signed_size:
                tip = self._signed(tip)
                row = (_bytes_of(tip.signed), tip.size)
                self._database.run(connection, statements.PUT_CHECKPOINT, row)
            return tip.signed, tip

        return self._in_turn(sign)

    def reset_after_fork(self) -> None:
        """Called in the child of a fork, where a thread that held the lock does not exist."""
        self._lock = threading.Lock()

    def _in_turn(self, work: Callable[[Connection, Tip], tuple[Result, Tip]]) -> Result:
        """Runs ``work`` in a transaction in which no other process appends. It gets the tip of
        the store, and returns its result and the new tip."""
        ready = False
        with self._lock:
            try:
                with self._database.transaction() as connection:
                    take_turn(self._database, connection)
                    tip = self._current(self._reading(connection), self._tip)
                    result, grown = work(connection, tip)
                    ready = True
            except StoreUnavailableError as error:
                if ready:
                    # A StorageError would say that nothing was written and that it may be repeated.
                    raise LedgerError(str(error)) from error
                raise
            self._tip = grown  # only now: a failed transaction must not change it
        return result

    def _reading(self, connection: Connection) -> Read:
        def read(statement: Prepared, arguments: Sequence[Any] = ()) -> list[Row]:
            rows: list[Row] = self._database.run(connection, statement, arguments).fetchall()
            return rows

        return read

    def _current(self, read: Read, known: Tip) -> Tip:
        rows = read(statements.TIP, ())
        size = int(rows[0][0]) if rows else 0
        leaf = require_leaf(size, rows[0][1]) if rows else b""
        if size == known.size and leaf == known.leaf:
            return known
        _require_continuation(read, known, size)
        frontier = _grown(read, known.frontier, size)
        return Tip(frontier, leaf, self._last_signed(read, known, size))

    def _last_signed(self, read: Read, known: Tip, size: int) -> Checkpoint | None:
        """The newest checkpoint, signed by any process. LedgerBrokenError if it does not match:
        nothing is signed on top of it."""
        # Later checkpoints cover at least what was known before: no need to look further back.
        first = max(known.signed_size + 1, known.size)
        rows = read(statements.LATEST_CHECKPOINT, (first, size))
        if not rows:
            return known.signed
        latest = require_checkpoint("the newest checkpoint", rows[0][0])
        latest.verify()
        root = root_of(StoredTree(read, size), 0, latest.size)
        if (latest.root, latest.key) != (root, self._identity.public_key):
            raise _broken(latest.size, "its checkpoint does not match the records or the key")
        return latest

    def _is_due(self, tip: Tip) -> bool:
        if self._key is None:
            return False
        # A clock that was set back must not stop signing, hence the lower bound.
        age = now_micros() - tip.signed.timestamp if tip.signed else -1
        return not 0 <= age < self._checkpoint_micros

    def _signed(self, tip: Tip) -> Tip:
        assert self._key is not None
        signed = checkpoints.sign(
            self._key,
            origin=self._identity.origin,
            size=tip.size,
            root=tip.frontier.root(),
            timestamp=now_micros(),
        )
        return replace(tip, signed=signed)

    def _write(
        self,
        connection: Connection,
        rows: list[tuple[Any, ...]],
        blobs: dict[bytes, bytes],
        texts: list[QueryText],
    ) -> None:
        database = self._database
        if len(rows) == 1:
            database.run(connection, statements.PUT_RECORD, rows[0])
        else:
            database.run_many(connection, statements.PUT_RECORD, rows)
        if blobs:
            database.run_many(connection, statements.PUT_BLOB.of(database), list(blobs.items()))
        if texts:
            words = [(text.commitment, text.salt, text.text) for text in texts]
            database.run_many(connection, statements.PUT_TEXT.of(database), words)


def _sealed(drafts: Sequence[Draft], tip: Tip) -> tuple[list[tuple[Any, ...]], Tip]:
    """The rows of ``drafts`` after ``tip``, and the tip after them."""
    frontier, rows = tip.frontier.copy(), []
    for seq, draft in enumerate(drafts, tip.size + 1):
        leaf, body = draft.seal(seq)
        frontier.append(leaf)
        rows.append((seq, leaf, body, None))
    return rows, Tip(frontier, rows[-1][1], tip.signed)


def _bytes_of(signed: Checkpoint | None) -> bytes:
    assert signed is not None
    return signed.to_bytes()


def _require_continuation(read: Read, known: Tip, size: int) -> None:
    if size < known.size:
        raise _broken(size + 1, f"the ledger ended at {record_id(known.size)} before")
    leaves = read(statements.LEAVES, (known.size, known.size))
    if known.size and leaves_of(leaves, known.size) != [known.leaf]:
        raise _broken(known.size, "its hash is not the one it was written with")


def _grown(read: Read, frontier: Frontier, size: int) -> Frontier:
    if size - frontier.size > _SMALL_GAP:
        return Frontier.of(StoredTree(read, size), size)
    grown = frontier.copy()
    first = frontier.size + 1
    for leaf in leaves_of(read(statements.LEAVES, (first, size)), first):
        grown.append(leaf)
    if grown.size != size:
        raise _broken(grown.size + 1, f"records are missing up to {record_id(size)}")
    return grown


def _broken(seq: int, what: str) -> LedgerBrokenError:
    finding = f"{record_id(seq)}: {what}"
    return LedgerBrokenError(
        f"{finding}: the ledger's history was rewritten. Nothing was written; run "
        "'lpf ledger verify' with a checkpoint stored elsewhere, and restore a backup.",
        (finding,),
    )


CHECKPOINT_SECONDS = 1.0


class Ledger:
    """Appends records, from any number of threads, processes and (on PostgreSQL) hosts.

    A process that has the private key signs a checkpoint with the first commit after
    ``checkpoint_seconds`` and when it closes. A process without the key appends as well; its
    records stay unsigned until a process with the key commits. The child of a fork may keep using
    the ledger; pending records are written by the parent.
    """

    def __init__(
        self,
        database: Database,
        private_key: Ed25519PrivateKey | None = None,
        *,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        """LedgerKeyError for the key of another ledger, LedgerError if there is no ledger yet,
        LedgerBrokenError if the stored tree does not match the last checkpoint."""
        self.identity = read_identity(database)
        if private_key is not None:
            require_key(self.identity, public_bytes(private_key))
        self._signs = private_key is not None
        # Of the newest record when the ledger was opened; see ``LedgerReader.newest_time``.
        self.newest_time = LedgerReader(database).newest_time()
        self._sequencer = Sequencer(database, self.identity, private_key, checkpoint_seconds)
        self._check = self._sequencer.blobs.check
        self._group = GroupCommit(self._sequencer.commit)
        self._later = BackgroundWriter(self._check, self._submit)
        register_fork_reset(self)

    @staticmethod
    def create(database: Database, public_key: bytes) -> Identity:
        """Creates the store's ledger; does nothing if it exists with the same key."""
        return create_identity(database, public_key)

    def append(self, draft: Draft) -> Receipt:
        """On disk when this returns. A StorageError says that nothing was written."""
        return self.append_many([draft])[0]

    def append_many(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Like ``append``: all of them or none, with consecutive numbers."""
        for draft in drafts:
            self._check(draft)
        return self._submit(drafts)

    def append_later(self, make_draft: MakeDraft) -> None:
        """On disk some 20 ms later, in a group; ``make_draft`` is called on another thread. While
        the store is full, busy or unreachable, the record is retried. LedgerError if
        anything else failed since the last call, or if too many records are waiting; ``make_draft``
        is then not accepted."""
        self._later.put(make_draft)

    @property
    def signs(self) -> bool:
        """Return True if this process has the private key and signs what it appends."""
        return self._signs

    @property
    def pending(self) -> int:
        """How many records given to ``append_later`` are not on disk yet."""
        return self._later.pending

    def flush(self) -> None:
        """Waits until nothing is pending. LedgerError if some records could not be written; it says
        how many are retried by the next ``flush`` or ``close``."""
        self._later.flush()

    def checkpoint(self) -> Checkpoint | None:
        """Signs the ledger as it is now; None if it has no record. LedgerKeyError without a private
        key."""
        return self._sequencer.checkpoint()

    def close(self) -> None:
        """Writes pending records and signs, if there is a key. The database stays open. LedgerError
        as from ``flush``."""
        try:
            self._later.close()
        except LedgerError:
            with suppress(StorageError):  # the caller must see that records are missing
                self._sign()
            raise
        self._sign()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset_after_fork(self) -> None:
        """Called in the child of a fork, where threads that hold its locks do not exist."""
        self._sequencer.reset_after_fork()
        self._group = GroupCommit(self._sequencer.commit)
        self._later.reset_after_fork()

    def _sign(self) -> None:
        if self._signs:
            self.checkpoint()

    def _submit(self, drafts: Sequence[Draft]) -> list[Receipt]:
        return self._group.submit(drafts) if drafts else []


def erase_query_texts(database: Database, record_ids: Iterable[str]) -> int:
    """Deletes query texts and comments of records in one transaction; returns how many there were.
    The records stay as they are: they hold commitments only. UnknownRecordError, with nothing
    erased, if one is not a record.

    The store's files may hold deleted bytes until they are overwritten; scrubbing them is up to
    the caller.
    """
    reader = LedgerReader(database)
    found = [reader.get(each).fields for each in record_ids]
    named = [fields.get(name, "") for fields in found for name in TEXT_FIELDS]
    commitments = {bytes.fromhex(name) for name in named if is_digest(name)}
    with database.transaction() as connection:
        runs = [database.run(connection, statements.DELETE_TEXT, (c,)) for c in commitments]
        return sum(run.rowcount for run in runs)
