"""The numbers of a report as JSON. JSON has no infinity and no NaN: such numbers become null."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

FORMAT = 1
MOST_NAMED = 5  # numbers that the warning names


def as_json(document: Mapping[str, Any]) -> bytes:
    """UTF-8, with null for every number that is not finite."""
    text = json.dumps(_finite(document), indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def null_warnings(document: Mapping[str, Any], file: str) -> Iterator[str]:
    """A warning if some numbers are null in ``file``, so that a gap is not mistaken for a zero."""
    paths = list(_not_finite(document))
    if not paths:
        return
    numbers = "1 number is" if len(paths) == 1 else f"{len(paths)} numbers are"
    more = ", …" if len(paths) > MOST_NAMED else ""
    yield (
        f"{numbers} infinite or undefined and missing from the figures; {file} has null there: "
        f"{', '.join(paths[:MOST_NAMED])}{more}."
    )


def _not_finite(value: object, path: str = "") -> Iterator[str]:
    """Dotted paths of the numbers that are infinite or NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    inner: Iterator[tuple[object, object]] = iter(())
    if isinstance(value, Mapping):
        inner = iter(value.items())
    elif isinstance(value, list | tuple):
        inner = iter(enumerate(value))
    for name, one in inner:
        yield from _not_finite(one, f"{path}.{name}" if path else str(name))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
