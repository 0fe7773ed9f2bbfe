"""The transaction that gives records their numbers, and the memory of where the ledger ends.

Each process remembers the tree's frontier at the last record it saw. Within the transaction the
store's last record is compared with it: the same, and nothing has to be read; further on, and the
records of other processes are caught up with; anything else, and history was rewritten.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lpf.errors import LedgerBrokenError, LedgerError, LedgerKeyError, StoreUnavailableError
from lpf.ledger import checkpoint as checkpoints
from lpf.ledger import statements
from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.entries import Entry
from lpf.ledger.identity import Identity, take_turn
from lpf.ledger.merkle import Frontier, root_of
from lpf.ledger.records import Receipt, record_id
from lpf.ledger.stored import require_checkpoint, require_leaf
from lpf.ledger.tiles import Read, StoredTree, leaves_of, write_completed_tiles
from lpf.storage.database import Connection, Database, Row
from lpf.storage.statements import Prepared
from lpf.storage.times import now_micros

Result = TypeVar("Result")

# A gap up to here is read leaf by leaf; beyond it, tiles are fewer rows.
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
    """The one place of a process that numbers records; threads take turns."""

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
        self._lock = threading.Lock()
        self._tip = self._current(database.rows, Tip(Frontier()))

    def commit(self, entries: Sequence[Entry]) -> list[Receipt]:
        """All entries on disk, in one transaction, or none and an error."""

        def append(connection: Connection, tip: Tip) -> tuple[list[Any], Tip]:
            rows, grown = _sealed(entries, tip)
            if self._is_due(grown):
                grown = self._signed(grown)
                rows[-1] = (*rows[-1][:3], _bytes_of(grown.signed))
            self._write(connection, entries, rows)
            write_completed_tiles(self._database, connection, tip.size, grown.size)
            return rows, grown

        rows = self._in_turn(append)
        return [Receipt(record_id(seq), seq, leaf) for seq, leaf, _, _ in rows]

    def checkpoint(self) -> Checkpoint | None:
        """A signed checkpoint over all records; None while there are none."""
        if self._key is None:
            raise LedgerKeyError(
                "this process has no signing key, so no checkpoint was made. Open the ledger with "
                "the key it was made with."
            )

        def sign(connection: Connection, tip: Tip) -> tuple[Checkpoint | None, Tip]:
            if tip.size > tip.signed_size:
                tip = self._signed(tip)
                row = (_bytes_of(tip.signed), tip.size)
                self._database.run(connection, statements.PUT_CHECKPOINT, row)
            return tip.signed, tip

        return self._in_turn(sign)

    def leave_to_parent(self) -> None:
        """Called in the child of a fork, where a thread that held the lock does not exist."""
        self._lock = threading.Lock()

    def _in_turn(self, work: Callable[[Connection, Tip], tuple[Result, Tip]]) -> Result:
        """Does ``work`` in a transaction in which nobody else appends. It is given the tip as it
        is in the store, and returns the one it leaves."""
        ready = False
        with self._lock:
            try:
                with self._database.writing() as connection:
                    take_turn(self._database, connection)
                    tip = self._current(self._reading(connection), self._tip)
                    result, grown = work(connection, tip)
                    ready = True
            except StoreUnavailableError as error:
                if ready:
                    # A StorageError would say that nothing was written and that it may be repeated.
                    raise LedgerError(str(error)) from error
                raise
            self._tip = grown  # only now: a transaction that failed leaves no trace here either
        return result

    def _reading(self, connection: Connection) -> Read:
        def read(statement: Prepared, arguments: Sequence[Any] = ()) -> list[Row]:
            found: list[Row] = self._database.run(connection, statement, arguments).fetchall()
            return found

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
        """The newest checkpoint others made. Nothing is ever signed on top of one that does not
        hold."""
        # What is signed later covers at least what was known before: no look further back.
        first = max(known.signed_size + 1, known.size)
        rows = read(statements.LATEST_CHECKPOINT, (first, size))
        if not rows:
            return known.signed
        found = require_checkpoint("the newest checkpoint", rows[0][0])
        found.verify()
        root = root_of(StoredTree(read, size), 0, found.size)
        if (found.root, found.key) != (root, self._identity.public_key):
            raise _broken(found.size, "its checkpoint does not fit the records or the key")
        return found

    def _is_due(self, tip: Tip) -> bool:
        if self._key is None:
            return False
        # A clock that was set back must not stop the signing, hence the lower bound.
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
        self, connection: Connection, entries: Sequence[Entry], rows: list[tuple[Any, ...]]
    ) -> None:
        database = self._database
        if len(rows) == 1:
            database.run(connection, statements.PUT_RECORD, rows[0])
        else:
            database.run_many(connection, statements.PUT_RECORD, rows)
        blobs = {digest: blob for entry in entries for digest, blob in entry.blobs.items()}
        if blobs:
            database.run_many(connection, statements.PUT_BLOB.of(database), list(blobs.items()))
        texts = [(t.commitment, t.salt, t.text) for entry in entries for t in entry.texts]
        if texts:
            database.run_many(connection, statements.PUT_TEXT.of(database), texts)


def _sealed(entries: Sequence[Entry], tip: Tip) -> tuple[list[tuple[Any, ...]], Tip]:
    """The rows of ``entries`` after ``tip``, and the tip after them."""
    frontier, rows = tip.frontier.copy(), []
    for seq, entry in enumerate(entries, tip.size + 1):
        leaf, body = entry.seal(seq)
        frontier.append(leaf)
        rows.append((seq, leaf, body, None))
    return rows, Tip(frontier, rows[-1][1], tip.signed)


def _bytes_of(signed: Checkpoint | None) -> bytes:
    assert signed is not None
    return signed.to_bytes()


def _require_continuation(read: Read, known: Tip, size: int) -> None:
    if size < known.size:
        raise _broken(size + 1, f"the ledger ended at {record_id(known.size)} before")
    found = read(statements.LEAVES, (known.size, known.size))
    if known.size and leaves_of(found, known.size) != [known.leaf]:
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
        "'lpf ledger verify' against a checkpoint kept elsewhere, and restore a backup.",
        (finding,),
    )
