"""Parquet, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lpf.errors import InputFileError

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
