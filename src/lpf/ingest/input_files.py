"""Open a file of rows, whatever its format, or take rows in memory.

The first bytes decide for Parquet and Excel, whatever the file is called; the suffix decides
between JSONL and CSV, and if it is none that is known, the first character does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lpf.errors import ConfigError, InputFileError
from lpf.ingest.excel_files import open_excel
from lpf.ingest.input_rows import FileOptions, InputFile, InputRow, columns_of, renamed
from lpf.ingest.parquet_files import open_parquet
from lpf.ingest.text_files import open_csv, open_jsonl, open_text

__all__ = ["FileOptions", "InputFile", "InputRow", "Rows", "open_input", "rows_in_memory"]

OPENERS = {
    ".jsonl": open_jsonl,
    ".ndjson": open_jsonl,
    ".csv": open_csv,
    ".tsv": open_csv,
    ".parquet": open_parquet,
    ".xlsx": open_excel,
    ".xlsm": open_excel,
}
MAGIC = {b"PAR1": open_parquet, b"PK\x03\x04": open_excel}
OTHER_MAGIC = {
    b"\xd0\xcf\x11\xe0": (
        "an Excel file in the old format or with a password",
        "Save it as .xlsx without a password.",
    ),
    b"\x1f\x8b": ("compressed with gzip", "Unpack it first."),
}
FORMATS = "JSONL, CSV, Excel (.xlsx) or Parquet"


def open_input(path: str | Path, options: FileOptions | None = None) -> InputFile:
    """Open a file of rows. InputFileError if it cannot be read; ConfigError for an option that does
    not apply to its format."""
    path = Path(path)
    options = options or FileOptions()
    start = _start(path)
    for magic, (what, hint) in OTHER_MAGIC.items():
        if start.startswith(magic):
            raise InputFileError(f"{path}: is {what}. Nothing was read.", hint=hint)
    for magic, opener in MAGIC.items():
        if start.startswith(magic):
            return _opened(opener, path, options)
    opener = OPENERS.get(path.suffix.lower()) or _by_content(path, options)
    return _opened(opener, path, options)


def _opened(opener: Any, path: Path, options: FileOptions) -> InputFile:
    """ConfigError for an option that files of this format have no use for."""
    if opener is not open_excel:
        options.refuse(f"{path}, which is not an Excel file", "sheet")
    if opener in (open_excel, open_parquet):
        options.refuse(f"{path}, which is not a text file", "encoding")
    try:
        return opener(path, options)
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read: {error.strerror or error}.") from error


def open_lines(name: str, data: bytes, options: FileOptions | None = None) -> InputFile:
    """JSONL that is in memory, such as standard input. InputFileError as for a file."""
    if not data:
        raise InputFileError(f"{name}: the file is empty. Nothing was read.")
    options = options or FileOptions()
    options.refuse(name, "sheet")
    return open_jsonl(Path(name), options, data)


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read: {error.strerror}.") from error
    if not start:
        raise InputFileError(f"{path}: the file is empty. Nothing was read.")
    return start


def _by_content(path: Path, options: FileOptions) -> Any:
    """The format of a text file: JSONL if it begins with a brace, else CSV."""
    text = open_text(path, options.encoding, tabular=True)
    _, first, error = next((line for line in text.lines() if line[1].strip()), (1, "", ""))
    if error or "\0" in first:
        raise InputFileError(f"{path}: is not {FORMATS}. Nothing was read.")
    return open_jsonl if first.lstrip().startswith("{") else open_csv


@runtime_checkable
class DataFrameLike(Protocol):
    """The methods of a pandas DataFrame that are used here; pandas need not be installed."""

    @property
    def columns(self) -> Iterable[Any]: ...

    def itertuples(self, index: bool, name: None) -> Iterator[tuple[Any, ...]]: ...


Rows = Iterable[Mapping[str, Any]] | DataFrameLike


def rows_in_memory(name: str, rows: Rows, options: FileOptions | None = None) -> InputFile:
    """``name`` is what errors call the rows, which are numbered from 1. NaN, NaT and NA count as
    empty. ConfigError for anything but rows; InputFileError if a DataFrame has a column twice."""
    columns = None
    options = options or FileOptions()
    options.refuse("rows in memory", "encoding", "sheet")
    mapping = options.columns
    if isinstance(rows, DataFrameLike):
        columns = columns_of(name, [str(column) for column in rows.columns], mapping)
        mapping = {}
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
    numbered = [renamed(_input_row(number, row), mapping) for number, row in enumerate(values, 1)]
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
