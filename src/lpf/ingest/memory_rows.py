"""Rows in memory, a list of dicts or a pandas DataFrame, in the form that files are read in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lpf.errors import ConfigError, InputFileError
from lpf.ingest.input_files import InputFile, InputRow, column_names, repeated


@runtime_checkable
class DataFrameLike(Protocol):
    """The methods of a pandas DataFrame that are used here; pandas need not be installed."""

    @property
    def columns(self) -> Iterable[Any]: ...

    def itertuples(self, index: bool, name: None) -> Iterator[tuple[Any, ...]]: ...


Rows = Iterable[Mapping[str, Any]] | DataFrameLike


def rows_in_memory(name: str, rows: Rows) -> InputFile:
    """``name`` is used in errors; rows are numbered from 1. NaN, NaT and NA count as
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
    """Convert a value of NumPy or pandas to Python's own type; None for an empty cell."""
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
