"""Rows of the store, looked at before anything is made of them.

SQLite keeps a value of any type in any column, so whoever changes a row can change its type too.
"""

from __future__ import annotations

import hashlib

from lpf.errors import LedgerBrokenError, ProofError
from lpf.ledger import checkpoint as checkpoints
from lpf.ledger.checkpoint import Checkpoint
from lpf.ledger.formats import HASH_BYTES
from lpf.ledger.merkle import leaf_hash
from lpf.ledger.records import record_id


def broken(where: str, what: str) -> LedgerBrokenError:
    finding = f"{where}: {what}"
    return LedgerBrokenError(
        f"{finding}. Nothing was done; run 'lpf ledger verify' to see what else was changed, and "
        "restore a backup.",
        (finding,),
    )


def require_body(seq: int, leaf: object, body: object) -> tuple[bytes, bytes]:
    """A record's leaf and body. LedgerBrokenError unless the one is the other's hash."""
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
    """Parsed; its signature is not looked at here."""
    try:
        return checkpoints.parse(require_bytes(where, "checkpoint", data))
    except ProofError as error:
        raise broken(where, "its checkpoint is not the one that was recorded") from error


def require_bytes(where: str, name: str, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    raise broken(where, f"its {name} was changed into another type")
