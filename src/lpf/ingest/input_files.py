"""Rows of a JSONL, CSV or Parquet file, one after another, each with its place in the file.

Names of columns. Those that mean a field are known however they are written.

A row with its place in a file, and the lines of a text file that rows are made of.

CSV: a header, then rows, separated by commas, semicolons or tabs.

Parquet, where pyarrow is installed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lpf.errors import InputFileError
from lpf.types import Evidence

TEXT_NAMES = ("text", "text_content")
EVIDENCE_COLUMNS = frozenset(Evidence.__slots__) - {"embedding_id"} | {*TEXT_NAMES}
FACT_COLUMNS = frozenset({"entity_id", "predicate", "value", "timestamp", "confidence", "source"})
FIELDS = EVIDENCE_COLUMNS | FACT_COLUMNS
LEAST_ALIKE = 0.75


def plain_names(header: Sequence[str]) -> tuple[str, ...]:
    """Without blanks around them, and those of fields as this package writes them."""
    return tuple(_plain(name.strip()) for name in header)


def fields_in(header: Sequence[str]) -> int:
    """How many of the columns are fields."""
    return sum(name in FIELDS for name in plain_names(header))


def doubled(columns: Sequence[str]) -> list[str]:
    """Names that stand more than once."""
    return sorted({name for name in columns if columns.count(name) > 1})


def meant(ignored: Iterable[str], fields: Collection[str]) -> dict[str, str]:
    """Of the names of columns that are not used, those near one of ``fields``, and which."""
    found = {name: get_close_matches(_as_field(name), fields, 1, LEAST_ALIKE) for name in ignored}
    return {name: near[0] for name, near in found.items() if near}


def _as_field(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _plain(name: str) -> str:
    return name.lower() if name.lower() in FIELDS else name


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


LONGEST_CELL = 64 * 1024 * 1024
COMMA = ","
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How a file is to be read: what separates its cells, and the names of its columns."""

    separator: str
    columns: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What its owner may not expect."""
        other = OTHER_SEPARATORS.get(self.separator)
        return (f"read as separated by {other}",) if other else ()


def csv_form(path: Path) -> CsvForm:
    """The form its header tells. InputFileError where the header cannot be used."""
    _, _, error = next(text_lines(path))
    if error:
        raise InputFileError(f"{path}, line 1: {error}. Nothing was read.")
    separator = _separator(path)
    line, header = _first_record(path, separator)
    if isinstance(header, str):
        raise InputFileError(f"{path}, line {line}: {header}. Nothing was read.")
    columns = plain_names(header)
    if not any(columns):
        raise InputFileError(f"{path}, line 1: has no names of columns. Nothing was read.")
    twice = doubled(columns)
    if twice:
        raise InputFileError(f"{path}, line 1: columns {twice} stand twice. Nothing was read.")
    return CsvForm(separator, columns)


def csv_rows(path: Path, form: CsvForm) -> Iterator[InputRow]:
    undecoded: dict[int, str] = {}
    records = _records(path, form.separator, undecoded)
    next(records)
    width = len(form.columns)
    for line, cells in records:
        if isinstance(cells, str):
            yield InputRow(line, {}, cells)
        elif undecoded:
            odd_line = min(undecoded)
            yield InputRow(odd_line, {}, undecoded[odd_line])
        elif len(cells) != width:
            yield InputRow(line, {}, f"has {len(cells)} cells, the first line has {width}")
        else:
            filled = zip(form.columns, cells, strict=True)
            yield InputRow(line, {name: cell or None for name, cell in filled})
        undecoded.clear()


def _separator(path: Path) -> str:
    """Another than the comma only where it alone finds fields in the header."""
    if _finds_fields(path, COMMA):
        return COMMA
    finding = [separator for separator in OTHER_SEPARATORS if _finds_fields(path, separator)]
    return finding[0] if len(finding) == 1 else COMMA


def _finds_fields(path: Path, separator: str) -> bool:
    _, header = _first_record(path, separator)
    return not isinstance(header, str) and fields_in(header) > 0


def _first_record(path: Path, separator: str) -> tuple[int, list[str] | str]:
    return next(_records(path, separator, {}), (1, []))


def _records(
    path: Path, separator: str, undecoded: dict[int, str]
) -> Iterator[tuple[int, list[str] | str]]:
    """Line a record starts in, and its cells or why there are none; lines that are not UTF-8 are
    noted in ``undecoded``."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    reader = csv.reader(_noting(path, undecoded), delimiter=separator, strict=True)
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
    """Where a record that spans the lines ``first`` to ``last`` is wrong, and how. A quote too
    many hides the rows after it, so it is told which lines those are."""
    hidden = f"lines {first} to {last} were not read" if last > first else "its line was not read"
    if error != "unexpected end of data":
        return first, f"is not valid CSV: {error}" + (f"; {hidden}" if last > first else "")
    lines = (text for number, text, _ in text_lines(path) if number >= first)
    # Less strict, it ends the cell where the file ends.
    open_cell = next(csv.reader(lines, delimiter=separator))[-1]
    spanned = open_cell.count("\n") + (not open_cell.endswith("\n"))
    count = last - first + 1
    return last - spanned + 1, f"opens a quote that is never closed; {hidden} ({count} in all)"


def _noting(path: Path, undecoded: dict[int, str]) -> Iterator[str]:
    for number, line, error in text_lines(path):
        if error:
            undecoded[number] = error
        yield line


ROWS_AT_ONCE = 1024


def parquet_columns(path: Path) -> tuple[tuple[str, ...], int]:
    """Names of the columns and number of rows."""
    with _opened(path) as file:
        return tuple(file.schema_arrow.names), int(file.metadata.num_rows)


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Rows as plain Python values, read in small groups."""
    with _opened(path) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE):
            yield from _with_microseconds(batch).to_pylist()


def _opened(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise InputFileError(
            f"{path}: reading Parquet needs pyarrow. Nothing was read; pip install 'lpf[parquet]', "
            "or give JSONL or CSV."
        ) from error
    try:
        return pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise InputFileError(f"{path}: is not sound Parquet: {error}. Nothing was read.") from error


def _with_microseconds(batch: Any) -> Any:
    """Times end at microseconds everywhere in this package: finer ones are cut."""
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


__all__ = ["InputFile", "InputRow", "open_input"]

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
    unit: str = "line"  # what the place of a row is called: "line", or "row" for rows in memory

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
