"""Checkpoints: signed statements of a ledger's size and root hash."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from lpf.errors import ProofError
from lpf.ledger.canonical import canonical
from lpf.ledger.formats import CHECKPOINT_FORMAT
from lpf.ledger.keys import public_bytes
from lpf.storage.values import iso, to_micros

_FIELDS = {"format", "key", "origin", "root", "size", "timestamp", "signature"}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The first ``size`` records of the ledger ``origin`` have the root hash ``root``.

    ``key`` is the public key (32 bytes), ``timestamp`` is in microseconds since 1970.
    """

    origin: str
    size: int
    root: bytes
    timestamp: int
    key: bytes
    signature: bytes

    def document(self) -> dict[str, Any]:
        """The checkpoint as a JSON object."""
        return {**_statement(self), "signature": self.signature.hex()}

    def to_bytes(self) -> bytes:
        """Canonical JSON, as stored in the ledger."""
        return canonical(self.document())

    def verify(self) -> None:
        """ProofError unless it is signed with ``key``. The caller must know whose key that is."""
        try:
            Ed25519PublicKey.from_public_bytes(self.key).verify(
                self.signature, canonical(_statement(self))
            )
        except (InvalidSignature, ValueError) as error:
            raise ProofError(
                f"the checkpoint over {self.size} records is not signed by the key it names, "
                f"{self.key.hex()}. It was not used; use one from a place you trust."
            ) from error


def sign(
    key: Ed25519PrivateKey, *, origin: str, size: int, root: bytes, timestamp: int
) -> Checkpoint:
    """A new checkpoint, signed with ``key``."""
    unsigned = Checkpoint(origin, size, root, timestamp, public_bytes(key), b"")
    signature = key.sign(canonical(_statement(unsigned)))
    return Checkpoint(origin, size, root, timestamp, unsigned.key, signature)


def parse(data: bytes) -> Checkpoint:
    """Parse what ``Checkpoint.to_bytes`` wrote; ProofError for anything else. The signature is not
    checked."""
    try:
        fields = json.loads(data)
        if set(fields) != _FIELDS or fields["format"] != CHECKPOINT_FORMAT:
            raise ValueError(f"expected format {CHECKPOINT_FORMAT!r} and fields {sorted(_FIELDS)}")
        return _from_fields(fields)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ProofError(f"not a checkpoint ({error}). It was not used.") from error


def _from_fields(fields: dict[str, Any]) -> Checkpoint:
    return Checkpoint(
        origin=str(fields["origin"]),
        size=int(fields["size"]),
        root=bytes.fromhex(fields["root"]),
        timestamp=to_micros(datetime.fromisoformat(fields["timestamp"])),
        key=bytes.fromhex(fields["key"]),
        signature=bytes.fromhex(fields["signature"]),
    )


def _statement(checkpoint: Checkpoint) -> dict[str, Any]:
    """The signed part: everything but the signature."""
    return {
        "format": CHECKPOINT_FORMAT,
        "key": checkpoint.key.hex(),
        "origin": checkpoint.origin,
        "root": checkpoint.root.hex(),
        "size": checkpoint.size,
        "timestamp": iso(checkpoint.timestamp),
    }
