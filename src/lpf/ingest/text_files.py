"""Read JSONL and CSV files line by line, in the encoding they are in.

No line is loaded that is longer than ``LONGEST_ROW``. UTF-8 is the rule; a byte order mark, or
bytes that cannot be UTF-8, show another encoding, which ``read_as`` of the file then states.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import AnyStr, BinaryIO

from lpf.errors import InputFileError
from lpf.ingest.input_rows import (
    FIELDS,
    LONGEST_ROW,
    FileOptions,
    InputFile,
    InputRow,
    columns_of,
    field_names,
    renamed,
)

UTF8 = "utf-8"
WINDOWS = "cp1252"
COMMA = ","
SEPARATORS = (COMMA, ";", "\t")
_BOM = b"\xef\xbb\xbf"
# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WITHOUT_MARK = (
    (re.compile(rb"[^\0]\0[^\0]\0"), "utf-16-le"),
    (re.compile(rb"\0[^\0]\0[^\0]"), "utf-16-be"),
)
_CHUNK = 1024 * 1024
_LONG = f"is longer than {LONGEST_ROW // 2**20} MiB and was not read"
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # the first line that Excel writes


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file, or bytes in memory, and its encoding."""

    path: Path
    encoding: str
    data: bytes | None = None

    def opened(self) -> BinaryIO:
        return self.path.open("rb") if self.data is None else io.BytesIO(self.data)

    def lines(self) -> Iterator[tuple[int, str, str]]:
        """Number, text and error of each line. The text of a line that cannot be decoded is needed
        too, because its quotes and separators count in CSV; that of a line too long is empty."""
        return self._by_bytes() if self._keeps_ascii else self._by_characters()

    @property
    def read_as(self) -> tuple[str, ...]:
        return () if self.encoding == UTF8 else (f"encoding {self.encoding}",)

    @property
    def _keeps_ascii(self) -> bool:
        return "\n".encode(self.encoding) == b"\n"

    def _by_bytes(self) -> Iterator[tuple[int, str, str]]:
        with self.opened() as file:
            number = 0
            while line := file.readline(LONGEST_ROW + 1):
                number += 1
                if number == 1 and self.encoding == UTF8:
                    line = line.removeprefix(_BOM)
                if len(line) > LONGEST_ROW and not _ends(file.readline, line, b"\n"):
                    yield number, "", _LONG
                    continue
                try:
                    yield number, line.decode(self.encoding), ""
                except UnicodeDecodeError as error:
                    name = "UTF-8" if self.encoding == UTF8 else self.encoding
                    reason = f"is not valid {name} ({error.reason} at byte {error.start + 1})"
                    yield number, line.decode(self.encoding, "backslashreplace"), reason

    def _by_characters(self) -> Iterator[tuple[int, str, str]]:
        with self.opened() as file:
            text = io.TextIOWrapper(file, encoding=self.encoding, errors="replace", newline="\n")
            number = 0
            while line := text.readline(LONGEST_ROW + 1):
                number += 1
                if len(line) > LONGEST_ROW and not _ends(text.readline, line, "\n"):
                    yield number, "", _LONG
                    continue
                bad = f"is not valid {self.encoding}" if "\ufffd" in line else ""
                yield number, line, bad


def _ends(readline: Callable[[int], AnyStr], line: AnyStr, end: AnyStr) -> bool:
    """Return True if the line is complete; otherwise skip the rest of it."""
    if line.endswith(end):
        return True
    while rest := readline(_CHUNK):
        if rest.endswith(end):
            break
    return False


def open_text(
    path: Path, given: str | None, *, tabular: bool, data: bytes | None = None
) -> TextFile:
    """The file with its encoding: ``given``, or what its first bytes show. A table may also be in
    the encoding of Windows: if no line is UTF-8 beyond ASCII and some line is not UTF-8."""
    if given is not None:
        return TextFile(path, given, data)
    with TextFile(path, UTF8, data).opened() as file:
        start = file.read(4)
    for mark, name in _MARKS:
        if start.startswith(mark):
            return TextFile(path, name, data)
    for pattern, name in _WITHOUT_MARK:
        if pattern.fullmatch(start):
            return TextFile(path, name, data)
    if data is not None:
        return TextFile(path, UTF8, data)
    return TextFile(path, WINDOWS if tabular and _is_windows(path) else UTF8)


def _is_windows(path: Path) -> bool:
    found = False
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if chunk.isascii():
                continue
            chunk += file.readline(LONGEST_ROW)
            for line in chunk.split(b"\n"):
                if line.isascii():
                    continue
                if _decodes(line, UTF8) or not _decodes(line, WINDOWS):
                    return False
                found = True
    return found


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


# JSONL


def open_jsonl(path: Path, options: FileOptions, data: bytes | None = None) -> InputFile:
    text = open_text(path, options.encoding, tabular=False, data=data)
    return InputFile(str(path), lambda: _json_rows(text, options.columns), read_as=text.read_as)


def _json_rows(file: TextFile, mapping: Mapping[str, str]) -> Iterator[InputRow]:
    for number, line, error in file.lines():
        text = line.strip()
        if error:
            yield InputRow(number, {}, error)
        elif text:
            yield renamed(_json_row(number, text), mapping)


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
    """The encoding, the separator and the column names of a CSV file. ``first`` is the number of
    records before the first row."""

    file: TextFile
    separator: str
    columns: tuple[str, ...]
    first: int = 1

    @property
    def read_as(self) -> tuple[str, ...]:
        """The separator, if it is not a comma, and the encoding, if it is not UTF-8."""
        shown = "tab" if self.separator == "\t" else repr(self.separator)
        other = () if self.separator == COMMA else (f"separator {shown}",)
        return (*other, *self.file.read_as)


def open_csv(path: Path, options: FileOptions) -> InputFile:
    form = _csv_form(path, options)
    return InputFile(str(path), lambda: _csv_rows(form), form.columns, read_as=form.read_as)


def _csv_form(path: Path, options: FileOptions) -> CsvForm:
    """Read separator and columns from the header. InputFileError if the header is invalid."""
    file = open_text(path, options.encoding, tabular=True)
    _, start, error = next(file.lines(), (1, "", ""))
    if error:
        raise InputFileError(
            f"{path}, line 1: {error}. Nothing was read.",
            hint="If the file is not UTF-8, name its --encoding.",
        )
    stated = _SEPARATOR_LINE.fullmatch(start)
    skipped = 1 if stated else 0
    separator = stated[1] if stated else _separator(file, options.columns)
    line, header = _record(file, separator, skipped)
    if isinstance(header, str):
        raise InputFileError(f"{path}, line {line}: {header}. Nothing was read.")
    if not any(name.strip() for name in header):
        raise InputFileError(f"{path}, line {line}: has no column names. Nothing was read.")
    columns = columns_of(f"{path}, line {line}", header, options.columns)
    return CsvForm(file, separator, columns, skipped + 1)


def _csv_rows(form: CsvForm) -> Iterator[InputRow]:
    """Rows after the header."""
    undecoded: dict[int, str] = {}
    records = _records(form.file, form.separator, undecoded)
    for _ in range(form.first):
        next(records)
    undecoded.clear()
    width = len(form.columns)
    for line, cells in records:
        if isinstance(cells, str):
            yield InputRow(line, {}, cells)
        elif undecoded:
            first_undecoded = min(undecoded)
            yield InputRow(first_undecoded, {}, undecoded[first_undecoded])
        elif len(cells) != width:
            yield InputRow(line, {}, f"has {len(cells)} cells, the first line has {width}")
        elif any(cells):
            named_cells = zip(form.columns, cells, strict=True)
            yield InputRow(line, {name: cell or None for name, cell in named_cells})
        undecoded.clear()


def _separator(file: TextFile, mapping: Mapping[str, str]) -> str:
    """The comma, unless exactly one other separator finds known fields in the header and the comma
    finds none."""
    finds = [separator for separator in SEPARATORS if _has_fields(file, separator, mapping)]
    return finds[0] if finds[:1] == [COMMA] or len(finds) == 1 else COMMA


def _has_fields(file: TextFile, separator: str, mapping: Mapping[str, str]) -> bool:
    _, header = _record(file, separator, 0)
    known = FIELDS | set(mapping.values())
    return not isinstance(header, str) and any(
        name in known for name in field_names(header, mapping)
    )


def _record(file: TextFile, separator: str, skipped: int) -> tuple[int, Sequence[str] | str]:
    records = _records(file, separator, {})
    for _ in range(skipped):
        next(records, None)
    return next(records, (skipped + 1, []))


class _Feed:
    """Decoded lines for a CSV reader. Ends early if one record is longer than ``LONGEST_ROW``."""

    def __init__(self, file: TextFile, undecoded: dict[int, str]) -> None:
        self._file = file
        self._undecoded = undecoded
        self.length = 0  # of the record so far; the caller sets it to 0 after each
        self.is_cut = False

    def __iter__(self) -> Iterator[str]:
        for number, line, error in self._file.lines():
            self.length += len(line)
            if self.length > LONGEST_ROW and self.length > len(line):
                self.is_cut = True
                return
            if error:
                self._undecoded[number] = error
            yield line


def _records(
    file: TextFile, separator: str, undecoded: dict[int, str]
) -> Iterator[tuple[int, list[str] | str]]:
    """The line where each record starts, and its cells or an error message. Errors of lines that
    cannot be decoded are added to ``undecoded`` by line number."""
    csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST_ROW))
    feed = _Feed(file, undecoded)
    reader = csv.reader(feed, delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        feed.length = 0
        try:
            cells = next(reader)
        except StopIteration:
            if feed.is_cut:
                yield line, _cut(line)
            return
        except csv.Error as error:
            if feed.is_cut:
                yield line, _cut(line)
                return
            yield _unreadable(file, separator, line, reader.line_num, str(error))
        else:
            if cells or undecoded:  # a line that is too long has no cells
                yield line, cells


def _cut(line: int) -> str:
    return (
        f"starts a row that {_LONG}; a quote may not be closed; nothing from line {line} on was "
        "read"
    )


def _unreadable(
    file: TextFile, separator: str, first: int, last: int, error: str
) -> tuple[int, str]:
    """The line and the message for an invalid record that spans lines ``first`` to ``last``. An
    unclosed quote hides the rows after it, so the message names those lines."""
    hidden = f"lines {first} to {last} were not read" if last > first else "its line was not read"
    if error != "unexpected end of data":
        return first, f"is not valid CSV: {error}" + (f"; {hidden}" if last > first else "")
    lines = (text for number, text, _ in file.lines() if number >= first)
    # In non-strict mode the open cell ends at the end of the file.
    open_cell = next(csv.reader(lines, delimiter=separator))[-1]
    spanned = open_cell.count("\n") + (not open_cell.endswith("\n"))
    count = last - first + 1
    return last - spanned + 1, f"opens a quote that is never closed; {hidden} ({count} in all)"
