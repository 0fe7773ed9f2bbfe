"""Rows of a JSONL, CSV or Parquet file, one after another, each with its place in the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lpf.errors import InputFileError
from lpf.ingest.columns import doubled, plain_names
from lpf.ingest.csv_rows import csv_form, csv_rows
from lpf.ingest.parquet import parquet_columns, parquet_rows
from lpf.ingest.rows import InputRow, text_lines

__all__ = ["InputFile", "InputRow", "open_input", "rows_in_memory"]

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class InputFile:
    """``name`` is the path as it was given. ``columns`` are those of all rows, None where every row
    names its own; ``total`` is the number of rows, None where only reading them tells. ``rows``
    starts from the first each time. ``notes`` say how it is read, where that may surprise."""

    name: str
    rows: Callable[[], Iterator[InputRow]]
    columns: tuple[str, ...] | None = None
    total: int | None = None
    notes: tuple[str, ...] = ()

    def require(self, *needed: Sequence[str]) -> None:
        """InputFileError where columns are known and of some of ``needed`` (each a column with its
        aliases) there is none."""
        if self.columns is None:
            return
        absent = [names[0] for names in needed if not set(names) & set(self.columns)]
        if absent:
            raise InputFileError(
                f"{self.name}: the columns {absent} are missing; it has {list(self.columns)}. "
                "Nothing was read; add them, or rename those that hold them."
            )


def open_input(path: str | Path) -> InputFile:
    """A file by its suffix: .jsonl, .csv or .parquet. InputFileError where it cannot be read."""
    path = Path(path)
    _check_readable(path)
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return InputFile(str(path), lambda: _json_rows(path))
    if suffix == ".csv":
        form = csv_form(path)
        return InputFile(str(path), lambda: csv_rows(path, form), form.columns, notes=form.notes)
    if suffix == ".parquet":
        return _open_parquet(path)
    raise InputFileError(
        f"{path}: has the suffix {path.suffix!r}; files end in .jsonl, .csv or .parquet. "
        "Nothing was read; convert or rename it."
    )


def rows_in_memory(name: str, rows: Sequence[Mapping[str, object]]) -> InputFile:
    """Rows that are here already, as if they came from a file; the first is line 1."""
    numbered = [InputRow(number, row) for number, row in enumerate(rows, 1)]
    return InputFile(name, lambda: iter(numbered), total=len(numbered))


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(2)
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read: {error.strerror}.") from error
    if not start:
        raise InputFileError(f"{path}: is empty. Nothing was read.")
    if start in UTF16_MARKS:
        raise InputFileError(f"{path}: is UTF-16; save it as UTF-8. Nothing was read.")


def _json_rows(path: Path) -> Iterator[InputRow]:
    for number, line, error in text_lines(path):
        text = line.strip()
        if error:
            yield InputRow(number, {}, error)
        elif text:
            yield _json_row(number, text)


def _json_row(number: int, text: str) -> InputRow:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        return InputRow(number, {}, f"is not valid JSON: {error}")
    if not isinstance(values, dict):
        return InputRow(number, {}, "must be a JSON object with the fields of a row")
    return InputRow(number, values)


def _open_parquet(path: Path) -> InputFile:
    header, total = parquet_columns(path)
    columns = plain_names(header)
    twice = doubled(columns)
    if twice:
        raise InputFileError(f"{path}: columns {twice} stand twice. Nothing was read.")
    return InputFile(str(path), lambda: _parquet_rows(path, columns), columns, total)


def _parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[InputRow]:
    for number, values in enumerate(parquet_rows(path), 1):
        yield InputRow(number, dict(zip(columns, values.values(), strict=True)))
