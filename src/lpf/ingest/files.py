"""Rows of a JSONL, CSV or Parquet file, one after another, each with its place in the file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lpf.errors import InputFileError
from lpf.ingest.parquet import parquet_columns, parquet_rows

LONGEST_CELL = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputRow:
    """``line`` is where the row starts, from 1 (in Parquet: its number). ``error`` says why it
    could not be read; what stands there is to be looked up in the file."""

    line: int
    values: Mapping[str, object]
    error: str = ""


@dataclass(frozen=True)
class InputFile:
    """``columns`` are those of all rows, None where every row names its own; ``total`` is the
    number of rows, None where only reading them tells. ``rows`` starts from the first each time."""

    name: str
    rows: Callable[[], Iterator[InputRow]]
    columns: tuple[str, ...] | None = None
    total: int | None = None

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
        return InputFile(path.name, lambda: _json_rows(path))
    if suffix == ".csv":
        return InputFile(path.name, lambda: _csv_rows(path), _csv_header(path))
    if suffix == ".parquet":
        columns, total = parquet_columns(path)
        return InputFile(path.name, lambda: _parquet_rows(path), columns, total)
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
            if file.read(1):
                return
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read: {error.strerror}.") from error
    raise InputFileError(f"{path}: is empty. Nothing was read.")


def _lines(path: Path) -> Iterator[tuple[int, str, str]]:
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


def _json_rows(path: Path) -> Iterator[InputRow]:
    for number, line, error in _lines(path):
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


def _csv_header(path: Path) -> tuple[str, ...]:
    _, _, error = next(_lines(path))
    if error:
        raise InputFileError(f"{path}, line 1: {error}. Nothing was read.")
    line, header = next(_csv_records(path, {}), (1, []))
    if isinstance(header, str):
        raise InputFileError(f"{path}, line {line}: {header}. Nothing was read.")
    columns = tuple(header)
    if not any(columns):
        raise InputFileError(f"{path}, line 1: has no names of columns. Nothing was read.")
    doubled = sorted({name for name in columns if columns.count(name) > 1})
    if doubled:
        raise InputFileError(f"{path}, line 1: columns {doubled} stand twice. Nothing was read.")
    return columns


def _csv_rows(path: Path) -> Iterator[InputRow]:
    undecoded: dict[int, str] = {}
    records = _csv_records(path, undecoded)
    _, header = next(records)
    for line, cells in records:
        if isinstance(cells, str):
            yield InputRow(line, {}, cells)
        elif undecoded:
            odd_line = min(undecoded)
            yield InputRow(odd_line, {}, undecoded[odd_line])
        elif len(cells) != len(header):
            yield InputRow(line, {}, f"has {len(cells)} cells, the first line has {len(header)}")
        else:
            filled = zip(header, cells, strict=True)
            yield InputRow(line, {str(name): cell or None for name, cell in filled})
        undecoded.clear()


def _csv_records(path: Path, undecoded: dict[int, str]) -> Iterator[tuple[int, list[str] | str]]:
    """Line a record starts in, and its cells or why there are none; lines that are not UTF-8 are
    noted in ``undecoded``."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    reader = csv.reader(_noting(path, undecoded), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield _unreadable(path, line, reader.line_num, str(error))
        else:
            if cells:
                yield line, cells


def _unreadable(path: Path, first: int, last: int, error: str) -> tuple[int, str]:
    """Where a record that spans the lines ``first`` to ``last`` is wrong, and how. A quote too
    many hides the rows after it, so it is told which lines those are."""
    hidden = f"lines {first} to {last} were not read" if last > first else "its line was not read"
    if error != "unexpected end of data":
        return first, f"is not valid CSV: {error}" + (f"; {hidden}" if last > first else "")
    lines = (text for number, text, _ in _lines(path) if number >= first)
    open_cell = next(csv.reader(lines))[-1]  # less strict, it ends the cell where the file ends
    spanned = open_cell.count("\n") + (not open_cell.endswith("\n"))
    count = last - first + 1
    return last - spanned + 1, f"opens a quote that is never closed; {hidden} ({count} in all)"


def _noting(path: Path, undecoded: dict[int, str]) -> Iterator[str]:
    for number, line, error in _lines(path):
        if error:
            undecoded[number] = error
        yield line


def _parquet_rows(path: Path) -> Iterator[InputRow]:
    for number, values in enumerate(parquet_rows(path), 1):
        yield InputRow(number, values)
