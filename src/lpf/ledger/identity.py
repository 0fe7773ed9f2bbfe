"""Which ledger this is (its name and public key), and checks of rows read from the store.

SQLite stores a value of any type in any column, so a row that was tampered with may hold values of
another type.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from lpf.errors import LedgerBrokenError, LedgerError, LedgerKeyError, ProofError
from lpf.ledger import checkpoint as checkpoints
from lpf.ledger import statements
from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.formats import HASH_BYTES
from lpf.ledger.merkle import leaf_hash
from lpf.ledger.records import record_id
from lpf.storage.database import Connection, Database
from lpf.storage.values import now_micros


def broken(where: str, what: str) -> LedgerBrokenError:
    finding = f"{where}: {what}"
    return LedgerBrokenError(
        f"{finding}. Nothing was done; run 'lpf ledger verify' to see what else was changed, and "
        "restore a backup.",
        (finding,),
    )


def require_body(seq: int, leaf: object, body: object) -> tuple[bytes, bytes]:
    """A record's leaf and body. LedgerBrokenError unless the leaf is the body's hash."""
    if isinstance(leaf, bytes) and isinstance(body, bytes) and leaf_hash(body) == leaf:
        return leaf, body
    raise broken(
        record_id(seq),
        "its body is not the one that was recorded (its hash differs from the one in the tree)",
    )


def require_blob(digest: object, body: object) -> bytes:
    """A blob's body. LedgerBrokenError unless ``digest`` is its hash."""
    name = require_bytes("ledger_blobs", "hash", digest)
    if isinstance(body, bytes) and hashlib.sha256(body).digest() == name:
        return body
    raise broken(
        f"blob {name.hex()}", "its body is not the one that was recorded (its hash differs)"
    )


def require_leaf(seq: int, leaf: object) -> bytes:
    if isinstance(leaf, bytes) and len(leaf) == HASH_BYTES:
        return leaf
    raise broken(record_id(seq), f"its hash is not one of {HASH_BYTES} bytes")


def require_checkpoint(where: str, data: object) -> Checkpoint:
    """The parsed checkpoint; its signature is not checked here."""
    try:
        return checkpoints.parse(require_bytes(where, "checkpoint", data))
    except ProofError as error:
        raise broken(where, "its checkpoint is not the one that was recorded") from error


def require_bytes(where: str, name: str, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    raise broken(where, f"its {name} was changed into another type")


@dataclass(frozen=True, slots=True)
class Identity:
    """``origin`` is the ledger's name, ``public_key`` 32 bytes."""

    origin: str
    public_key: bytes


def read_identity(database: Database) -> Identity:
    """LedgerError if the store has no ledger yet."""
    rows = database.rows(statements.IDENTITY)
    if not rows:
        raise LedgerError(
            f"{database.name}: has no ledger yet. Create a key with create_key and the ledger with "
            "Ledger.create; 'lpf init' does both."
        )
    if len(rows) > 1:
        raise broken("ledger_identity", f"{len(rows)} rows instead of one")
    origin, key = rows[0]
    return Identity(str(origin), require_bytes("ledger_identity", "public key", key))


def create_identity(database: Database, public_key: bytes) -> Identity:
    """The store's identity, created now if there is none. LedgerKeyError if there is one with
    another key."""
    if len(public_key) != 32:
        raise LedgerKeyError(
            f"a public key has 32 bytes, this one {len(public_key)}; no ledger was created."
        )
    with database.transaction() as connection:
        take_turn(database, connection)
        if not database.run(connection, statements.IDENTITY).fetchall():
            row = (f"lpf-{secrets.token_hex(8)}", public_key, now_micros())
            database.run(connection, statements.PUT_IDENTITY, row)
    identity = read_identity(database)
    require_key(identity, public_key)
    return identity


def require_key(identity: Identity, public_key: bytes) -> None:
    if public_key != identity.public_key:
        raise LedgerKeyError(
            f"the key {public_key.hex()} is not that of the ledger {identity.origin}, which is "
            f"{identity.public_key.hex()}. Nothing was written; use the ledger.key it was "
            "created with, or none to append without signing."
        )


def take_turn(database: Database, connection: Connection) -> None:
    """Locks the numbering of records until the end of the transaction. In SQLite the transaction
    itself ensures that."""
    if not database.is_sqlite:
        connection.execute(statements.SEQUENCER_LOCK)
