"""A row with its place in a file, and the lines of a text file that rows are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputRow:
    """``line`` is where the row starts, from 1 (in Parquet: its number). ``error`` says why it
    could not be read; what stands there is to be looked up in the file."""

    line: int
    values: Mapping[str, object]
    error: str = ""


def text_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Number, text and what is wrong with it. A line that is not UTF-8 is passed on all the same:
    its quotes and commas count."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(_BOM)
            try:
                yield number, line.decode(), ""
            except UnicodeDecodeError as error:
                reason = f"is not valid UTF-8 ({error.reason} at byte {error.start + 1})"
                yield number, line.decode(errors="backslashreplace"), reason
