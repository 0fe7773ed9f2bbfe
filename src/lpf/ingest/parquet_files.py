"""Read Parquet files in small batches, with limits on what a file may expand to.

Texts are read as dictionaries: a value that a page repeats a million times stays one value, so a
file of a few hundred bytes cannot fill the memory. Pages are measured before they are unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from lpf.errors import InputFileError
from lpf.ingest.cell_values import DATE_FIELD
from lpf.ingest.input_rows import LONGEST_ROW, FileOptions, InputFile, InputRow, columns_of
from lpf.ingest.parquet_pages import page_sizes
from lpf.types import LONGEST_TEXT

ROWS_AT_ONCE = 1024
LARGEST_PAGE = 256 * 1024 * 1024  # bytes, unpacked
# From here on, fewer rows at once: each may be long.
LARGE_PAGE = 16 * 1024 * 1024
FEW_ROWS = 64
# Encodings that pyarrow can read as dictionaries.
DICTIONARY = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
# In this encoding a text repeats the beginning of the one before it, at no cost in the file.
PREFIXED, PREFIXED_ROWS = "DELTA_BYTE_ARRAY", 8
# Each row takes some bytes; far more rows than bytes are a file made to exhaust its reader.
ROWS_PER_BYTE = 10
FEWEST_ROWS = 1_000_000
_LONGEST_BYTES = 4 * LONGEST_TEXT  # in UTF-8
_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = date(1970, 1, 1)


def open_parquet(path: Path, options: FileOptions) -> InputFile:
    """InputFileError if the file is damaged, or would unpack to more than the limits allow."""
    with _named_errors(path), _parquet_file(path) as file:
        schema = file.schema_arrow
        columns = columns_of(str(path), schema.names, options.columns)
        rows_at_once = _rows_at_once(path, file.metadata)
        plain = [place for place, kind in enumerate(schema.types) if not _is_nested(kind)]
        nested = [columns[place] for place in range(len(columns)) if place not in plain]
        text_dates = any(
            columns[place] == DATE_FIELD and _is_text(schema.types[place]) for place in plain
        )
        total = int(file.metadata.num_rows)
    names = [columns[place] for place in plain]
    skipped = (f"without the nested columns {nested}",) if nested else ()
    return InputFile(
        str(path),
        lambda: _rows(path, plain, names, rows_at_once),
        columns,
        total,
        read_as=skipped,
        unit="row",
        text_dates=text_dates,
        may_break=True,
    )


def _rows(
    path: Path, places: Sequence[int], names: Sequence[str], rows_at_once: int
) -> Iterator[InputRow]:
    number = 0
    with _named_errors(path), _parquet_file(path) as file:
        wanted = [file.schema_arrow.names[place] for place in places]
        for batch in file.iter_batches(rows_at_once, columns=wanted):
            # One column at a time, and every value of a dictionary only once.
            columns = [_values(batch.column(place)) for place in range(batch.num_columns)]
            for cells in zip(*columns, strict=True):
                number += 1
                yield _row(number, names, cells)
            del columns


def _row(number: int, names: Sequence[str], cells: Sequence[Any]) -> InputRow:
    length = 0
    for name, cell in zip(names, cells, strict=True):
        if isinstance(cell, _TooLong):
            return InputRow(number, {}, f"{name}: has {cell.length:,} bytes; {_LIMIT}")
        length += len(cell) if isinstance(cell, str | bytes) else 0
    if length > LONGEST_ROW:
        return InputRow(number, {}, f"is longer than {LONGEST_ROW // 2**20} MiB and was not read")
    return InputRow(number, dict(zip(names, cells, strict=True)))


_LIMIT = f"at most {LONGEST_TEXT:,} characters are allowed"


class _TooLong:
    """Stands for a text or bytes that are not loaded."""

    __slots__ = ("length",)

    def __init__(self, length: int) -> None:
        self.length = length


def _values(column: Any) -> list[Any]:
    """The cells of a column as Python's own values."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        import pyarrow.compute

        used = pyarrow.compute.unique(column.indices).drop_null()
        known = dict(zip(used.to_pylist(), _values(column.dictionary.take(used)), strict=True))
        return [None if index is None else known[index] for index in column.indices.to_pylist()]
    if types.is_timestamp(kind):
        return [_moment(micros, kind.tz) for micros in _micros(column)]
    if types.is_date(kind):
        return [_day(days) for days in _days(column)]
    if _is_text(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return _texts(column)
    if types.is_decimal(kind):
        return [_number(value) for value in column.to_pylist()]
    return list(column.to_pylist())


def _texts(column: Any) -> list[Any]:
    import pyarrow.compute

    lengths = pyarrow.compute.binary_length(column).to_pylist()
    if max((length or 0 for length in lengths), default=0) <= _LONGEST_BYTES:
        return list(column.to_pylist())
    return [
        _TooLong(length) if (length or 0) > _LONGEST_BYTES else column[place].as_py()
        for place, length in enumerate(lengths)
    ]


def _micros(column: Any) -> list[int | None]:
    """Microseconds since 1970, the precision of this package; more is cut off."""
    import pyarrow

    units = {"s": 1_000_000, "ms": 1_000, "us": 1}
    raw = column.cast(pyarrow.int64()).to_pylist()
    unit = column.type.unit
    if unit == "ns":
        return [None if value is None else value // 1000 for value in raw]
    return [None if value is None else value * units[unit] for value in raw]


def _moment(micros: int | None, zone: str | None) -> object:
    """With a zone the stored time is in UTC, whatever the zone's name. A time that Python cannot
    hold becomes a text that says so, and its row is rejected."""
    if micros is None:
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} microseconds after 1970"
    return moment if zone is None else moment.replace(tzinfo=UTC)


def _days(column: Any) -> list[int | None]:
    import pyarrow

    if pyarrow.types.is_date32(column.type):
        return list(column.cast(pyarrow.int32()).to_pylist())
    raw = column.cast(pyarrow.int64()).to_pylist()
    return [None if value is None else value // 86_400_000 for value in raw]


def _day(days: int | None) -> object:
    if days is None:
        return None
    try:
        return _FIRST_DAY + timedelta(days=days)
    except OverflowError:
        return f"{days} days after 1970"


def _number(value: Decimal | None) -> object:
    """A whole number stays one: it may be an ID."""
    if value is None:
        return None
    return int(value) if value == value.to_integral_value() else float(value)


def _is_nested(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_nested(kind))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value))


def _rows_at_once(path: Path, metadata: Any) -> int:
    """How many rows fit in memory together. InputFileError for a file that claims more than it can
    hold, before any page is unpacked."""
    size = path.stat().st_size
    if metadata.num_rows > max(FEWEST_ROWS, ROWS_PER_BYTE * size):
        raise InputFileError(
            f"{path}: claims {metadata.num_rows:,} rows in {size:,} bytes. Nothing was read."
        )
    largest = max(page_sizes(path, metadata), default=0)
    prefixed = any(PREFIXED in chunk.encodings for chunk in _chunks(metadata))
    if largest > (LARGE_PAGE if prefixed else LARGEST_PAGE):
        raise InputFileError(
            f"{path}: unpacks a page to {largest:,} bytes. Nothing was read.",
            hint="Write it again with smaller pages.",
        )
    if prefixed:
        return PREFIXED_ROWS
    return FEW_ROWS if largest > LARGE_PAGE else ROWS_AT_ONCE


def _chunks(metadata: Any) -> Iterator[Any]:
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            yield metadata.row_group(group).column(place)


def _parquet_file(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise InputFileError(
            f"{path}: reading Parquet needs pyarrow. Nothing was read.",
            hint="Install it with pip install 'lpf[parquet]', or use JSONL, CSV or Excel.",
        ) from error
    metadata = pyarrow.parquet.read_metadata(path)
    schema = metadata.schema.to_arrow_schema()
    texts = {name for name, kind in zip(schema.names, schema.types, strict=True) if _is_text(kind)}
    others = {
        chunk.path_in_schema for chunk in _chunks(metadata) if set(chunk.encodings) - DICTIONARY
    }
    # pre_buffer would load whole row groups.
    return pyarrow.parquet.ParquetFile(
        path, read_dictionary=sorted(texts - others), pre_buffer=False
    )


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Whatever pyarrow raises about a damaged file has one name here. Its own errors have no common
    base besides Exception: some are ValueError or OSError, others neither."""
    try:
        yield
    except InputFileError:
        raise
    except Exception as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputFileError:
    reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
    return InputFileError(f"{path}: not a valid Parquet file: {reason}. Nothing more was read.")
