"""Read the rows of a JSONL, CSV or Parquet file, or of a list or DataFrame, each with its number.

CSV files have a header and are separated by commas, semicolons or tabs. Column names of known
fields are recognised whatever their case. Parquet needs pyarrow.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lpf.errors import ConfigError, InputFileError
from lpf.types import Evidence

__all__ = ["InputFile", "InputRow", "Rows", "open_input", "rows_in_memory"]

TEXT_NAMES = ("text", "text_content")
EVIDENCE_COLUMNS = frozenset(Evidence.__slots__) - {"embedding_id"} | {*TEXT_NAMES}
FACT_COLUMNS = frozenset({"entity_id", "predicate", "value", "timestamp", "confidence", "source"})
FIELDS = EVIDENCE_COLUMNS | FACT_COLUMNS
MIN_SIMILARITY = 0.75
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"
LONGEST_CELL = 64 * 1024 * 1024
COMMA = ","
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}
PARQUET_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class InputRow:
    """``line`` is the line where the row starts, from 1 (in Parquet: the row number). ``error``
    says why it could not be parsed; then ``values`` is empty."""

    line: int
    values: Mapping[str, object]
    error: str = ""


@dataclass(frozen=True)
class InputFile:
    """An opened file. Each call of ``rows`` starts from the first row.

    ``name`` is the path as given. ``columns`` is None if every row names its own; ``total``, the
    number of rows, is None if it is not known before reading. ``notes`` say how the file is read
    if that may be unexpected.
    """

    name: str
    rows: Callable[[], Iterator[InputRow]]
    columns: tuple[str, ...] | None = None
    total: int | None = None
    notes: tuple[str, ...] = ()
    unit: str = "line"  # "row" for rows in memory

    def require(self, *needed: Sequence[str]) -> None:
        """InputFileError if the columns are known and some of ``needed`` are missing. Each of
        ``needed`` is a column name with its aliases."""
        if self.columns is None:
            return
        missing = [names[0] for names in needed if not set(names) & set(self.columns)]
        if missing:
            raise InputFileError(
                f"{self.name}: the columns {missing} are missing; the file has "
                f"{list(self.columns)}. Nothing was read; add or rename columns."
            )


def open_input(path: str | Path) -> InputFile:
    """Open a file by its suffix: .jsonl, .csv or .parquet. InputFileError if it cannot be read."""
    path = Path(path)
    _check_readable(path)
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return InputFile(str(path), lambda: _json_rows(_text_lines(path)))
    if suffix == ".csv":
        form = csv_form(path)
        return InputFile(str(path), lambda: csv_rows(path, form), form.columns, notes=form.notes)
    if suffix == ".parquet":
        return _open_parquet(path)
    raise InputFileError(
        f"{path}: unknown suffix {path.suffix!r}; files must end in .jsonl, .csv or .parquet. "
        "Nothing was read; convert or rename the file."
    )


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(2)
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read: {error.strerror}.") from error
    _check_start(str(path), start)


def _check_start(name: str, start: bytes) -> None:
    if not start:
        raise InputFileError(f"{name}: the file is empty. Nothing was read.")
    if start in UTF16_MARKS:
        raise InputFileError(f"{name}: the file is UTF-16. Nothing was read; save it as UTF-8.")


def open_lines(name: str, data: bytes) -> InputFile:
    """JSONL that is in memory, such as standard input. InputFileError as for a file."""
    _check_start(name, data[:2])
    return InputFile(name, lambda: _json_rows(_decoded(io.BytesIO(data))))


def similar_fields(columns: Iterable[str], fields: Collection[str]) -> dict[str, str]:
    """Map each column name that is similar to one of ``fields`` to that field."""
    similar = {}
    for column in columns:
        name = column.strip().lower().replace(" ", "_").replace("-", "_")
        matches = get_close_matches(name, fields, 1, MIN_SIMILARITY)
        if matches:
            similar[column] = matches[0]
    return similar


def column_names(header: Sequence[str]) -> tuple[str, ...]:
    """Names without surrounding whitespace, and names of fields in lower case."""
    stripped = [name.strip() for name in header]
    return tuple(name.lower() if name.lower() in FIELDS else name for name in stripped)


def repeated(columns: Sequence[str]) -> list[str]:
    return sorted({name for name in columns if columns.count(name) > 1})


def _text_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, text and decoding error. The text of a line that is not UTF-8 is needed too,
    because its quotes and commas count in CSV."""
    with path.open("rb") as file:
        yield from _decoded(file)


def _decoded(lines: Iterable[bytes]) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(_BOM)
        try:
            yield number, line.decode(), ""
        except UnicodeDecodeError as error:
            reason = f"is not valid UTF-8 ({error.reason} at byte {error.start + 1})"
            yield number, line.decode(errors="backslashreplace"), reason


# JSONL


def _json_rows(lines: Iterable[tuple[int, str, str]]) -> Iterator[InputRow]:
    for number, line, error in lines:
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
        return InputRow(number, {}, "must be a JSON object with the fields of the row")
    return InputRow(number, values)


# CSV


@dataclass(frozen=True, slots=True)
class CsvForm:
    """The separator and the column names of a CSV file."""

    separator: str
    columns: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """A note if the separator is not a comma."""
        other = OTHER_SEPARATORS.get(self.separator)
        return (f"read as separated by {other}",) if other else ()


def csv_form(path: Path) -> CsvForm:
    """Read separator and columns from the header. InputFileError if the header is invalid."""
    _, _, error = next(_text_lines(path))
    if error:
        raise InputFileError(f"{path}, line 1: {error}. Nothing was read.")
    separator = _separator(path)
    line, header = _first_record(path, separator)
    if isinstance(header, str):
        raise InputFileError(f"{path}, line {line}: {header}. Nothing was read.")
    columns = column_names(header)
    if not any(columns):
        raise InputFileError(f"{path}, line 1: has no column names. Nothing was read.")
    twice = repeated(columns)
    if twice:
        raise InputFileError(f"{path}, line 1: repeated columns {twice}. Nothing was read.")
    return CsvForm(separator, columns)


def csv_rows(path: Path, form: CsvForm) -> Iterator[InputRow]:
    """Rows after the header."""
    undecoded: dict[int, str] = {}
    records = _records(path, form.separator, undecoded)
    next(records)
    width = len(form.columns)
    for line, cells in records:
        if isinstance(cells, str):
            yield InputRow(line, {}, cells)
        elif undecoded:
            first_undecoded = min(undecoded)
            yield InputRow(first_undecoded, {}, undecoded[first_undecoded])
        elif len(cells) != width:
            yield InputRow(line, {}, f"has {len(cells)} cells, the first line has {width}")
        else:
            named_cells = zip(form.columns, cells, strict=True)
            yield InputRow(line, {name: cell or None for name, cell in named_cells})
        undecoded.clear()


def _separator(path: Path) -> str:
    """The comma, unless exactly one other separator finds known fields in the header and the comma
    finds none."""
    if _has_fields(path, COMMA):
        return COMMA
    others = [separator for separator in OTHER_SEPARATORS if _has_fields(path, separator)]
    return others[0] if len(others) == 1 else COMMA


def _has_fields(path: Path, separator: str) -> bool:
    _, header = _first_record(path, separator)
    return not isinstance(header, str) and any(name in FIELDS for name in column_names(header))


def _first_record(path: Path, separator: str) -> tuple[int, list[str] | str]:
    return next(_records(path, separator, {}), (1, []))


def _records(
    path: Path, separator: str, undecoded: dict[int, str]
) -> Iterator[tuple[int, list[str] | str]]:
    """The line where each record starts, and its cells or an error message. Errors of lines that
    are not UTF-8 are added to ``undecoded`` by line number."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    reader = csv.reader(_decoded_lines(path, undecoded), delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield _unreadable(path, separator, line, reader.line_num, str(error))
        else:
            if cells:
                yield line, cells


def _unreadable(path: Path, separator: str, first: int, last: int, error: str) -> tuple[int, str]:
    """The line and the message for an invalid record that spans lines ``first`` to ``last``. An
    unclosed quote hides the rows after it, so the message names those lines."""
    hidden = f"lines {first} to {last} were not read" if last > first else "its line was not read"
    if error != "unexpected end of data":
        return first, f"is not valid CSV: {error}" + (f"; {hidden}" if last > first else "")
    lines = (text for number, text, _ in _text_lines(path) if number >= first)
    # In non-strict mode the open cell ends at the end of the file.
    open_cell = next(csv.reader(lines, delimiter=separator))[-1]
    spanned = open_cell.count("\n") + (not open_cell.endswith("\n"))
    count = last - first + 1
    return last - spanned + 1, f"opens a quote that is never closed; {hidden} ({count} in all)"


def _decoded_lines(path: Path, undecoded: dict[int, str]) -> Iterator[str]:
    for number, line, error in _text_lines(path):
        if error:
            undecoded[number] = error
        yield line


# Parquet


def _open_parquet(path: Path) -> InputFile:
    with _parquet_file(path) as file:
        columns, total = column_names(file.schema_arrow.names), int(file.metadata.num_rows)
    twice = repeated(columns)
    if twice:
        raise InputFileError(f"{path}: repeated columns {twice}. Nothing was read.")
    return InputFile(str(path), lambda: _parquet_rows(path, columns), columns, total)


def _parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[InputRow]:
    number = 0
    with _parquet_file(path) as file:
        for batch in file.iter_batches(PARQUET_ROWS_AT_ONCE):
            for values in _with_microseconds(batch).to_pylist():
                number += 1
                yield InputRow(number, dict(zip(columns, values.values(), strict=True)))


def _parquet_file(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise InputFileError(
            f"{path}: reading Parquet needs pyarrow. Nothing was read.",
            hint="Install it with pip install 'lpf[parquet]', or use JSONL or CSV.",
        ) from error
    try:
        return pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise InputFileError(
            f"{path}: not a valid Parquet file: {error}. Nothing was read."
        ) from error


def _with_microseconds(batch: Any) -> Any:
    """Truncate times to microseconds, the precision of this package."""
    import pyarrow

    fields = [
        field.with_type(pyarrow.timestamp("us", field.type.tz))
        if pyarrow.types.is_timestamp(field.type)
        else field
        for field in batch.schema
    ]
    arrays = [
        column.cast(field.type, safe=False)
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(fields))


@runtime_checkable
class DataFrameLike(Protocol):
    """The methods of a pandas DataFrame that are used here; pandas need not be installed."""

    @property
    def columns(self) -> Iterable[Any]: ...

    def itertuples(self, index: bool, name: None) -> Iterator[tuple[Any, ...]]: ...


Rows = Iterable[Mapping[str, Any]] | DataFrameLike


def rows_in_memory(name: str, rows: Rows) -> InputFile:
    """``name`` is what errors call the rows, which are numbered from 1. NaN, NaT and NA count as
    empty. ConfigError for anything but rows; InputFileError if a DataFrame has a column twice."""
    columns = None
    if isinstance(rows, DataFrameLike):
        columns = column_names([str(column) for column in rows.columns])
        twice = repeated(columns)
        if twice:
            raise InputFileError(
                f"{name}: has several columns named {twice}. Nothing was read; rename them."
            )
        values: list[Any] = [
            dict(zip(columns, cells, strict=True))
            for cells in rows.itertuples(index=False, name=None)
        ]
    elif isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping):
        values = list(rows)
    else:
        raise ConfigError(
            f"must be a file's path, a list of dicts or a pandas DataFrame, got an object of the "
            f"type {type(rows).__name__}. Nothing was read.",
            field=name,
        )
    numbered = [_input_row(number, row) for number, row in enumerate(values, 1)]
    return InputFile(name, lambda: iter(numbered), columns, len(numbered), unit="row")


def _input_row(number: int, row: object) -> InputRow:
    if not isinstance(row, Mapping):
        return InputRow(
            number, {}, f"must be a dict, got an object of the type {type(row).__name__}"
        )
    return InputRow(number, {str(name): _plain(value) for name, value in row.items()})


def _plain(value: Any) -> Any:
    """Values of NumPy and pandas as Python's own; None for what stands for an empty cell."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if _is_missing(value):
        return None
    return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value


def _is_missing(value: Any) -> bool:
    """NaN and NaT are not equal to themselves; NA refuses to be compared."""
    try:
        return bool(value != value)
    except TypeError:
        return True
    except ValueError:  # an array
        return False
