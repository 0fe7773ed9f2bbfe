"""Measure an Excel workbook before it is decoded.

A workbook is a zip of XML files. A few kilobytes can unpack to gigabytes, or to a row with
millions of cells, so every part is scanned in small pieces first, and refused beyond the limits of
Excel itself. The scan also finds what openpyxl does not show when it streams: merged cells, and
formulas without a stored value.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from lpf.errors import InputFileError
from lpf.ingest.input_rows import LONGEST_ROW

LARGEST_PART = 1024 * 1024 * 1024  # unpacked
LARGEST_OTHER = 128 * 1024 * 1024  # for parts that are not sheets: they are loaded as a whole
MOST_PARTS = 10_000
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of Excel
MOST_STRINGS = 4_000_000
MOST_ELEMENTS = 4_000_000  # in a part that is not a sheet and not the table of strings
MOST_MERGES = 100_000
DEEPEST = 64
_PIECE = 64 * 1024
_CELL = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


@dataclass
class SheetFacts:
    """``merged`` maps (row, column) of a cell to the row of the merged cell above that has its
    value; ``uncomputed`` maps rows to a cell with a formula and no value. All count from 1."""

    merged: dict[tuple[int, int], int] = field(default_factory=dict)
    uncomputed: dict[int, str] = field(default_factory=dict)


def check_workbook(path: Path) -> dict[str, SheetFacts]:
    """What each part of the workbook holds, by its name in the zip. InputFileError if the file is
    not a workbook, or would unpack to more than the limits allow."""
    try:
        with ZipFile(path) as archive:
            parts = archive.infolist()
            if len(parts) > MOST_PARTS:
                _refuse(path, f"has {len(parts):,} parts")
            return {part.filename: _scan(path, archive, part) for part in parts}
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        if isinstance(error, InputFileError):
            raise
        raise _damaged(path, error) from error
    except zlib.error as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputFileError:
    reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
    return InputFileError(f"{path}: not a valid Excel file: {reason}. Nothing was read.")


def _refuse(path: Path, problem: str) -> NoReturn:
    raise InputFileError(
        f"{path}: {problem}, more than a workbook may have. Nothing was read.",
        hint="Save the sheet as CSV if the file is really that large.",
    )


def _scan(path: Path, archive: ZipFile, part: Any) -> SheetFacts:
    # zipfile never reads more of a part than it declares, so the declared size is a limit.
    if part.file_size > LARGEST_PART:
        _refuse(path, f"{part.filename} unpacks to {part.file_size:,} bytes")
    scanner = _PartScanner(path, part.filename)
    with archive.open(part) as file:
        while piece := file.read(_PIECE):
            if not scanner.feed(piece):
                break
    if not scanner.is_sheet and part.file_size > LARGEST_OTHER and scanner.is_xml:
        _refuse(path, f"{part.filename} unpacks to {part.file_size:,} bytes")
    return scanner.facts


class _PartScanner:
    """Scans one part. A part that is not XML, such as a picture, ends the scan at once; a parser
    of XML would stop there too."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self.facts = SheetFacts()
        self.is_sheet = False
        self.is_xml = False
        self._fed = self._depth = self._elements = self._strings = 0
        self._cells = self._length = self._row = 0
        self._cell = ""
        self._formula = self._value = self._in_value = False
        parser = self._parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, piece: bytes) -> bool:
        """Return False if the rest cannot be XML."""
        try:
            self._parser.Parse(piece, False)
        except expat.ExpatError:
            return False
        self._fed += len(piece)
        if self._fed - max(self._parser.CurrentByteIndex, 0) > LONGEST_ROW:
            _refuse(self._path, f"{self._name} has a tag of more than {LONGEST_ROW:,} bytes")
        return True

    def _doctype(self, *_: object) -> None:
        _refuse(self._path, f"{self._name} declares entities")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.is_xml = True
        self._depth += 1
        self._elements += 1
        tag = name.rpartition(":")[2]
        if self._depth > DEEPEST:
            _refuse(self._path, f"{self._name} is nested more than {DEEPEST} levels deep")
        if tag == "sheetData":
            self.is_sheet = True
        elif tag == "row" and self.is_sheet:
            self._begin_row(attributes.get("r"))
        elif tag == "c" and self.is_sheet:
            # The stored value of a formula may be an empty text; then the type says so.
            self._begin_cell(attributes.get("r", ""), attributes.get("t") == "str")
        elif tag in ("v", "is"):
            self._in_value = True
        elif tag == "f":
            self._formula = True
        elif tag == "mergeCell":
            self._merge(attributes.get("ref", ""))
        elif tag == "si":
            self._begin_string()
        if not self.is_sheet and self._elements > MOST_ELEMENTS + 8 * self._strings:
            _refuse(self._path, f"{self._name} has {self._elements:,} elements")

    def _begin_string(self) -> None:
        self._strings += 1
        self._length = 0
        if self._strings > MOST_STRINGS:
            _refuse(self._path, f"{self._name} has {self._strings:,} texts")

    def _begin_row(self, number: str | None) -> None:
        self._row = int(number) if number and number.isdecimal() else self._row + 1
        self._cells = self._length = 0
        if self._row > MOST_ROWS:
            _refuse(self._path, f"{self._name} has a row {self._row:,}")

    def _begin_cell(self, reference: str, is_text: bool) -> None:
        self._cell, self._formula, self._value = reference, False, is_text
        self._cells += 1
        match = _CELL.fullmatch(reference) if reference else None
        column = column_number(match[1]) if match else self._cells
        if (reference and not match) or max(column, self._cells) > MOST_COLUMNS:
            _refuse(self._path, f"{self._name} has a cell {reference[:20]!r} in row {self._row:,}")

    def _text(self, text: str) -> None:
        self._length += len(text)
        self._value = self._value or self._in_value
        if self._length > LONGEST_ROW:
            _refuse(self._path, f"{self._name} has a text of more than {LONGEST_ROW:,} characters")

    def _end(self, name: str) -> None:
        self._depth -= 1
        tag = name.rpartition(":")[2]
        self._in_value = self._in_value and tag not in ("v", "is")
        if tag == "c" and self._formula and not self._value:
            self.facts.uncomputed.setdefault(self._row, self._cell)
        elif tag not in ("c", "v", "f", "t", "is", "r"):
            self._length = 0

    def _merge(self, reference: str) -> None:
        first, _, last = reference.partition(":")
        corners = _CELL.fullmatch(first), _CELL.fullmatch(last or first)
        if corners[0] is None or corners[1] is None:
            _refuse(self._path, f"{self._name} merges the cells {reference[:20]!r}")
        top, bottom = int(corners[0][2]), int(corners[1][2])
        column = column_number(corners[0][1])
        if len(self.facts.merged) + bottom - top > MOST_MERGES:
            _refuse(self._path, f"{self._name} merges more than {MOST_MERGES:,} cells")
        for row in range(top + 1, bottom + 1):
            self.facts.merged[row, column] = top


def column_number(letters: str) -> int:
    """``A`` is 1, ``AA`` is 27."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
