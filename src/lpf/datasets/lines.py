"""Lines of a JSONL file, each with its number, or a DatasetError that says which one is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Never

from lpf.errors import DatasetError

_BOM = b"\xef\xbb\xbf"


def object_lines(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """The number of each line, from 1, and its JSON object. Blank lines are passed over."""
    try:
        with path.open("rb") as file:
            # Bytes end a line at \n alone; texts also end one at marks that JSON allows within.
            for number, line in enumerate(file, 1):
                content = line.removeprefix(_BOM) if number == 1 else line
                if content.strip():
                    yield number, _object(content, f"{path}, line {number}")
    except OSError as error:
        raise DatasetError(
            f"{path}: cannot be read ({error.strerror}). Nothing was read. "
            "Give the path of a JSONL file."
        ) from error


def _object(line: bytes, place: str) -> dict[str, object]:
    try:
        found = _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{place}: is not valid UTF-8 ({error.reason} at byte {error.start + 1}). "
            "Nothing was read. Save the file as UTF-8."
        ) from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"{place}: is not JSON ({error}). Nothing was read. Write one JSON object a line."
        ) from error
    if not isinstance(found, dict):
        raise DatasetError(
            f"{place}: must be a JSON object, got a {type(found).__name__}. Nothing was read. "
            "Write one JSON object a line."
        )
    return found


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no number of JSON; write null")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
