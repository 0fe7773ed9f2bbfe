"""JSON, read so strictly that each document has exactly one form."""

from __future__ import annotations

import json
from typing import Any

import rfc8785


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
