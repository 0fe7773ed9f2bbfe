"""Parse JSON strictly: only the canonical form (RFC 8785) of a document is accepted."""

from __future__ import annotations

import json
from typing import Any

import rfc8785


class NotStrictError(ValueError):
    """Bytes are not in the required form. The message says what is wrong."""


def strict_object(data: bytes) -> dict[str, Any]:
    """Parse an object in canonical JSON; NotStrictError for anything else."""
    value = strict_value(data)
    if not isinstance(value, dict):
        raise NotStrictError(f"expected an object, found {type(value).__name__}")
    return value


def strict_value(data: bytes) -> Any:
    """Parse a value in canonical JSON; NotStrictError for anything else."""
    try:
        value = _DECODER.decode(data.decode("utf-8"))
        canonical = rfc8785.dumps(value)
    except (ValueError, RecursionError) as error:
        raise NotStrictError(f"not canonical JSON ({error})") from error
    if canonical != data:
        raise NotStrictError(f"not canonical, from byte {_first_difference(canonical, data)} on")
    return value


def require_fields(value: dict[str, Any], names: set[str]) -> None:
    """NotStrictError unless ``value`` has exactly these fields."""
    if value.keys() != names:
        raise NotStrictError(f"expected the fields {sorted(names)}, found {sorted(value)}")


def _first_difference(first: bytes, second: bytes) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise NotStrictError("a key occurs twice in one object")
    return fields


def _whole_number(digits: str) -> int | float:
    """A JSON number is a double: from 2**53 on it must be written like the nearest double."""
    number = int(digits) if len(digits) < 400 else 10**400
    return number if abs(number) < 2**53 else float(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeated_keys, parse_int=_whole_number)
