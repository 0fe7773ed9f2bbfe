"""Checkpoints, read and checked by the verifier's own means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lpf.ledger.formats import CHECKPOINT_FORMAT
from lpf.ledger.verifier.strict import NotStrictError, require_fields, strict_object

_FIELDS = {"format", "key", "origin", "root", "signature", "size", "timestamp"}
_SHAPES = {
    "key": re.compile(r"[0-9a-f]{64}"),
    "root": re.compile(r"[0-9a-f]{64}"),
    "signature": re.compile(r"[0-9a-f]{128}"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII),
}


@dataclass(frozen=True, slots=True)
class Seal:
    """A checkpoint whose signature holds under the key it names."""

    origin: str
    key: bytes
    size: int
    root: bytes


def read_seal(data: bytes) -> Seal:
    """NotStrictError says what is wrong with a checkpoint."""
    fields = strict_object(data)
    require_fields(fields, _FIELDS)
    _require_shapes(fields)
    signature = bytes.fromhex(fields.pop("signature"))
    key = bytes.fromhex(fields["key"])
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, rfc8785.dumps(fields))
    except (InvalidSignature, ValueError) as error:
        raise NotStrictError(f"the signature is not that of the key {key.hex()}") from error
    return Seal(fields["origin"], key, fields["size"], bytes.fromhex(fields["root"]))


def _require_shapes(fields: dict[str, Any]) -> None:
    if fields["format"] != CHECKPOINT_FORMAT:
        raise NotStrictError(f"format: expected {CHECKPOINT_FORMAT!r}, found {fields['format']!r}")
    if type(fields["size"]) is not int or fields["size"] < 1:
        raise NotStrictError(f"size: expected a count of records, found {fields['size']!r}")
    if not isinstance(fields["origin"], str):
        raise NotStrictError(f"origin: expected a text, found {fields['origin']!r}")
    for name, shape in _SHAPES.items():
        if not (isinstance(fields[name], str) and shape.fullmatch(fields[name])):
            raise NotStrictError(f"{name}: {fields[name]!r} has not the form it must have")
