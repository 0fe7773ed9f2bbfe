"""CSV: a header, then rows, separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lpf.errors import InputFileError
from lpf.ingest.columns import doubled, fields_in, plain_names
from lpf.ingest.rows import InputRow, text_lines

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
