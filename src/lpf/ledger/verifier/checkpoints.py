"""Check checkpoints against the tree: those in the ledger, and one from a trusted place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lpf.errors import InputFileError
from lpf.ledger.formats import CHECKPOINT_FORMAT
from lpf.ledger.verifier.findings import Findings
from lpf.ledger.verifier.strict import NotStrictError, require_fields, strict_object
from lpf.ledger.verifier.tree import CountingTree

_FIELDS = {"format", "key", "origin", "root", "signature", "size", "timestamp"}
_PATTERNS = {
    "key": re.compile(r"[0-9a-f]{64}"),
    "root": re.compile(r"[0-9a-f]{64}"),
    "signature": re.compile(r"[0-9a-f]{128}"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII),
}


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint with a valid signature of the key it names."""

    origin: str
    key: bytes
    size: int
    root: bytes


def read_checkpoint(data: bytes) -> SignedCheckpoint:
    """Parse a checkpoint and check its signature. NotStrictError says what is wrong."""
    fields = strict_object(data)
    require_fields(fields, _FIELDS)
    _check_values(fields)
    signature = bytes.fromhex(fields.pop("signature"))
    key = bytes.fromhex(fields["key"])
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, rfc8785.dumps(fields))
    except (InvalidSignature, ValueError) as error:
        raise NotStrictError(f"the signature is not that of the key {key.hex()}") from error
    return SignedCheckpoint(fields["origin"], key, fields["size"], bytes.fromhex(fields["root"]))


def read_trusted(data: bytes) -> SignedCheckpoint:
    """Parse the trusted checkpoint. InputFileError if it is not one; that says nothing about the
    ledger."""
    try:
        return read_checkpoint(data.strip())
    except NotStrictError as error:
        raise InputFileError(
            f"the trusted checkpoint is not a valid checkpoint ({error}). Nothing was verified; "
            "give the file that 'lpf ledger checkpoint' wrote."
        ) from error


class CheckpointCheck:
    """Checks each checkpoint after its record was added to the tree.

    ``count`` is the number of checkpoints in the ledger so far; ``signed_size`` is the size that
    the last correct one covers.
    """

    def __init__(
        self, findings: Findings, tree: CountingTree, trusted: SignedCheckpoint | None
    ) -> None:
        self._findings = findings
        self._tree = tree
        self._trusted = trusted
        self._identity: tuple[str, bytes] | None = None
        self.count = 0
        self.signed_size = 0

    def begin(self, identity: tuple[str, bytes] | None) -> None:
        """Set the ledger's origin and key, which all checkpoints must have."""
        self._identity = identity
        if self._trusted is not None:
            self._check_identity("trusted checkpoint", self._trusted)

    def check(self, where: str, seq: int, data: bytes | None) -> None:
        """Call after record ``seq`` was added to the tree; ``data`` is its stored checkpoint."""
        if data is not None:
            self._check_stored(f"checkpoint of {where}", seq, data)
        trusted = self._trusted
        if trusted is not None and trusted.size == seq and self._tree.root() != trusted.root:
            self._findings.add(
                where,
                "rewritten: the records up to here have the root "
                f"{self._tree.root().hex()}, the trusted checkpoint says {trusted.root.hex()}",
            )

    def finish(self, last_seq: int) -> None:
        """Call after the last record."""
        if self._trusted is not None and self._trusted.size > last_seq:
            self._findings.add(
                f"INF{last_seq + 1:08d}",
                f"truncated: the trusted checkpoint covers {self._trusted.size} records, "
                f"there are {last_seq}",
            )

    def _check_stored(self, where: str, seq: int, data: bytes) -> None:
        try:
            checkpoint = read_checkpoint(data)
        except NotStrictError as error:
            self._findings.add(where, str(error))
            return
        self.count += 1
        identity_ok = self._check_identity(where, checkpoint)
        if not self._findings.expect(where, "size", seq, checkpoint.size):
            return
        expect = self._findings.expect_each
        if expect("checkpoint", where, "root", self._tree.root(), checkpoint.root) and identity_ok:
            self.signed_size = checkpoint.size

    def _check_identity(self, where: str, checkpoint: SignedCheckpoint) -> bool:
        origin, key = self._identity or (checkpoint.origin, checkpoint.key)
        expect = self._findings.expect_each
        same_origin = expect("checkpoint", where, "origin", origin, checkpoint.origin)
        return expect("checkpoint", where, "key", key, checkpoint.key) and same_origin


def _check_values(fields: dict[str, Any]) -> None:
    if fields["format"] != CHECKPOINT_FORMAT:
        raise NotStrictError(f"format: expected {CHECKPOINT_FORMAT!r}, found {fields['format']!r}")
    if type(fields["size"]) is not int or fields["size"] < 1:
        raise NotStrictError(f"size: expected a count of records, found {fields['size']!r}")
    if not isinstance(fields["origin"], str):
        raise NotStrictError(f"origin: expected a string, found {fields['origin']!r}")
    for name, pattern in _PATTERNS.items():
        if not (isinstance(fields[name], str) and pattern.fullmatch(fields[name])):
            raise NotStrictError(f"{name}: {fields[name]!r} does not have the required form")
