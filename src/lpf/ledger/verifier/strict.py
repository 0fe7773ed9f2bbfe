"""JSON, read so strictly that each document has exactly one form.

Checkpoints, read and checked by the verifier's own means.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lpf.ledger.formats import CHECKPOINT_FORMAT


class NotStrictError(ValueError):
    """Says what is wrong with the bytes."""


def strict_object(data: bytes) -> dict[str, Any]:
    """The object that ``data`` is the canonical JSON of; NotStrictError for anything else."""
    value = strict_value(data)
    if not isinstance(value, dict):
        raise NotStrictError(f"expected an object, found {type(value).__name__}")
    return value


def strict_value(data: bytes) -> Any:
    try:
        value = _DECODER.decode(data.decode("utf-8"))
        again = rfc8785.dumps(value)
    except (ValueError, RecursionError) as error:
        raise NotStrictError(f"not canonical JSON ({error})") from error
    if again != data:
        raise NotStrictError(f"not canonical, from byte {_first_difference(again, data)} on")
    return value


def require_fields(value: dict[str, Any], names: set[str]) -> None:
    if value.keys() != names:
        raise NotStrictError(f"expected the fields {sorted(names)}, found {sorted(value)}")


def _first_difference(first: bytes, second: bytes) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrictError("a key occurs twice in one object")
    return found


def _whole_number(digits: str) -> int | float:
    """A JSON number is a double: beyond 2**53 it must be written as the nearest one is."""
    number = int(digits) if len(digits) < 400 else 10**400
    return number if abs(number) < 2**53 else float(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_int=_whole_number)


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
