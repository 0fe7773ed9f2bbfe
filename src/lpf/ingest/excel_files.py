"""Read a sheet of an Excel workbook.

Dates and numbers come as such; a formula gives the value that was stored when the file was saved.
Blank rows are skipped. The value of vertically merged cells counts for each of their rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from lpf.errors import InputFileError
from lpf.ingest.cell_values import DATE_FIELD
from lpf.ingest.input_rows import FIELDS, FileOptions, InputFile, InputRow, columns_of, field_names
from lpf.ingest.workbook_check import SheetFacts, check_workbook

ROWS_INSPECTED = 20  # to find the header below a title
# Fields whose cells keep their type; all others are texts, as they would be in a CSV file.
TYPED = frozenset({DATE_FIELD, "credibility", "confidence"})


@dataclass(frozen=True)
class ExcelSheet:
    """A sheet with the row of its header, from 1, and the place of each column, from 0."""

    path: Path
    name: str
    header: int
    places: tuple[int, ...]
    columns: tuple[str, ...]
    facts: SheetFacts


def open_excel(path: Path, options: FileOptions) -> InputFile:
    """InputFileError if the file is damaged or too large, or if several sheets have content and
    ``options.sheet`` does not choose one."""
    facts = check_workbook(path)
    with _workbook(path) as book:
        sheet, several = _chosen(path, book, options)
        header, cells = _header(sheet, options)
        named = [(place, text) for place, text in enumerate(map(_text, cells)) if text]
        if not named:
            raise InputFileError(f"{path}, sheet {sheet.title!r}: is empty. Nothing was read.")
        part = str(getattr(sheet, "_worksheet_path", "")).lstrip("/")
        columns = columns_of(
            f"{path}, sheet {sheet.title!r}, row {header}",
            [text for _, text in named],
            options.columns,
        )
        chosen = ExcelSheet(
            path,
            sheet.title,
            header,
            tuple(place for place, _ in named),
            columns,
            facts.get(part, SheetFacts()),
        )
    stated = [f"sheet {chosen.name!r}"] if several else []
    stated += [f"header in row {header}"] if header > 1 else []
    merged = [place for place in chosen.facts.merged if place[0] > header]
    stated += ["merged cells with their value in every row"] if merged else []
    return InputFile(
        str(path),
        lambda: _rows(chosen),
        columns,
        read_as=tuple(stated),
        unit="row",
        may_break=True,
    )


def _chosen(path: Path, book: Any, options: FileOptions) -> tuple[Any, bool]:
    """The sheet to read, and True if others have content too."""
    sheets = list(book.worksheets)
    filled = [sheet for sheet in sheets if sheet.sheet_state == "visible" and _has_content(sheet)]
    names = [sheet.title for sheet in sheets]
    if options.sheet is not None:
        for sheet in sheets:
            if sheet.title == options.sheet:
                return sheet, len(filled) > 1
        raise InputFileError(
            f"{path}: has no sheet {options.sheet!r}; its sheets are {names}. Nothing was read.",
            field="sheet",
        )
    if not filled:
        raise InputFileError(f"{path}: no sheet of {names} has content. Nothing was read.")
    if len(filled) > 1:
        raise InputFileError(
            f"{path}: several sheets have content: {[sheet.title for sheet in filled]}. Nothing "
            "was read.",
            field="sheet",
            hint="Choose one with --sheet.",
        )
    return filled[0], False


def _has_content(sheet: Any) -> bool:
    return any(any(cell.value is not None for cell in row) for row in islice(_cells(sheet), 1000))


def _header(sheet: Any, options: FileOptions) -> tuple[int, Sequence[Any]]:
    """The number and the cells of the first row with the name of a field, among the first rows; or
    else of the first row that is not blank."""
    known = FIELDS | set(options.columns.values())
    first: tuple[int, Sequence[Any]] | None = None
    for number, cells in enumerate(islice(_cells(sheet), ROWS_INSPECTED), 1):
        texts = [_text(cell) for cell in cells]
        if not any(texts):
            continue
        first = first or (number, cells)
        filled = sum(map(bool, texts))
        if filled > 1 and known & set(field_names(texts, options.columns)):
            return number, cells
    return first or (1, ())


def _rows(sheet: ExcelSheet) -> Iterator[InputRow]:
    merged, uncomputed = sheet.facts.merged, sheet.facts.uncomputed
    carried: dict[tuple[int, int], Any] = {}  # values of merged cells, by their first row
    tops = {(top, column) for (_, column), top in merged.items()}
    with _workbook(sheet.path) as book:
        for number, cells in enumerate(_cells(book[sheet.name]), 1):
            if number <= sheet.header:
                continue
            row = [cells[place] if place < len(cells) else None for place in sheet.places]
            if number in uncomputed:
                yield InputRow(
                    number,
                    {},
                    f"the cell {uncomputed[number]} has a formula without a stored value; open the "
                    "file in a spreadsheet program and save it",
                )
                continue
            wrong = [cell.coordinate for cell in row if cell is not None and cell.data_type == "e"]
            if wrong:
                yield InputRow(number, {}, f"the cell {wrong[0]} has an error value")
                continue
            values = {}
            for name, place, cell in zip(sheet.columns, sheet.places, row, strict=True):
                value = None if cell is None else cell.value
                spot = number, place + 1
                if spot in tops:
                    carried[spot] = value
                if value is None and spot in merged:
                    value = carried.get((merged[spot], place + 1))
                values[name] = value if name in TYPED else _as_text(value)
            if any(value is not None for value in values.values()):
                yield InputRow(number, values)


def _text(cell: Any) -> str:
    value = _as_text(cell.value)
    return "" if value is None else value.strip()


def _as_text(value: object) -> str | None:
    """As a spreadsheet program shows it: no time at midnight, no decimals of a whole number."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("T00:00:00")
    return value.isoformat() if isinstance(value, date) else str(value)


def _cells(sheet: Any) -> Iterator[Sequence[Any]]:
    """The rows of a sheet, from row 1."""
    sheet.reset_dimensions()  # the stated size may be wrong
    rows = iter(sheet.iter_rows())
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a date out of range becomes an error value
            row = next(rows, None)
        if row is None:
            return
        yield row


@contextmanager
def _workbook(path: Path) -> Iterator[Any]:
    """Whatever openpyxl raises about a damaged file has one name here: it does not document its
    errors, and raises every kind."""
    import openpyxl

    with path.open("rb") as file:  # given a path, openpyxl looks at the suffix
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about parts that are not read here
                book = openpyxl.load_workbook(
                    file, read_only=True, data_only=True, keep_links=False
                )
        except Exception as error:
            raise _damaged(path, error) from error
        try:
            yield book
        except InputFileError:
            raise
        except Exception as error:
            raise _damaged(path, error) from error
        finally:
            book.close()


def _damaged(path: Path, error: Exception) -> InputFileError:
    reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
    return InputFileError(f"{path}: not a valid Excel file: {reason}. Nothing more was read.")
