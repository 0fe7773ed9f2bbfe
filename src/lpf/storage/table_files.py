"""Write tables row by row as CSV, Excel or Parquet, into a file that is already open.

Rows are never held in memory as a whole, nor copied to a temporary folder. Texts stay texts: in
Excel a cell that begins with = + - or @ is not a formula. A CSV file has no types, so there texts
are written unchanged, and a spreadsheet program may take one for a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import IO, Any, Protocol
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

from lpf.errors import ConfigError, MissingPackageError
from lpf.types import ColumnKind

Columns = Mapping[str, ColumnKind]
Cells = Sequence[object]

ROWS_AT_ONCE = 1000
MOST_EXCEL_ROWS = 1_048_576
LONGEST_EXCEL_TEXT = 32_767
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_DAY_ZERO = datetime(1899, 12, 30)


class TableWriter(Protocol):
    """Takes rows in the order of the columns. The file is complete after ``close``."""

    def write(self, cells: Cells) -> None: ...

    def close(self) -> None: ...


def table_writer(suffix: str, file: IO[bytes], columns: Columns) -> TableWriter | None:
    """The writer for files with this suffix; None if it is not that of a table."""
    if suffix == ".csv":
        return CsvWriter(file, columns)
    if suffix == ".xlsx":
        return ExcelWriter(file, columns)
    return ParquetWriter(file, columns) if suffix == ".parquet" else None


class CsvWriter:
    """UTF-8 with commas; times as ISO 8601 in UTC."""

    def __init__(self, file: IO[bytes], columns: Columns) -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(columns)

    def write(self, cells: Cells) -> None:
        self._writer.writerow([_csv_cell(cell) for cell in cells])

    def close(self) -> None:
        self._text.flush()
        self._text.detach()


def _csv_cell(cell: object) -> object:
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return repr(cell) if isinstance(cell, float) else cell


_STYLES = {"text": 0, "number": 0, "count": 0, "share": 1, "time": 2, "heading": 3}
_PARTS = {
    "[Content_Types].xml": (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/vnd.openxmlformats-officedocument.'
        'spreadsheetml.sheet.main+xml"/>'
        '<Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-'
        'officedocument.spreadsheetml.styles+xml"/>'
        '<Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.'
        'openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>'
    ),
    "_rels/.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r='
        '"http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
        '<sheet name="answers" sheetId="1" r:id="rId1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/worksheet" Target="worksheets/sheet1.xml"/>'
        '<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/styles" Target="styles.xml"/></Relationships>'
    ),
    "xl/styles.xml": (
        '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/>'
        "</numFmts>"
        '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
        '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/>'
        "</cellStyleXfs>"
        '<cellXfs count="4"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
        '<xf numFmtId="10" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
        '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
        '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/></cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
        "</styleSheet>"
    ),
}
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEET_START = (
    f'{_XML}<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    '<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" '
    'activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>'
)
_SHEET_END = "</sheetData></worksheet>"


class ExcelWriter:
    """One sheet. Shares are shown as percentages, times are in UTC."""

    def __init__(self, file: IO[bytes], columns: Columns) -> None:
        self._kinds = tuple(columns.values())
        self._archive = ZipFile(file, "w", ZIP_DEFLATED)
        for name, content in _PARTS.items():
            self._archive.writestr(name, _XML + content)
        self._sheet = self._archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True)
        self._sheet.write(_SHEET_START.encode())
        self._numbers = count(1)
        self._append(tuple(columns), ("heading",) * len(columns))

    def write(self, cells: Cells) -> None:
        self._append(cells, self._kinds)

    def close(self) -> None:
        self._sheet.write(_SHEET_END.encode())
        self._sheet.close()
        self._archive.close()

    def _append(self, cells: Cells, kinds: Sequence[str]) -> None:
        number = next(self._numbers)
        if number > MOST_EXCEL_ROWS:
            raise ConfigError(
                f"an Excel sheet has at most {MOST_EXCEL_ROWS:,} rows. Nothing was written.",
                hint="Write CSV, Parquet or JSONL.",
            )
        content = "".join(
            _excel_cell(cell, _STYLES[kind]) for cell, kind in zip(cells, kinds, strict=True)
        )
        self._sheet.write(f'<row r="{number}">{content}</row>'.encode())


def _excel_cell(cell: object, style: int) -> str:
    if cell is None or cell != cell:  # NaN
        return "<c/>"
    if isinstance(cell, datetime):
        elapsed = cell.astimezone(UTC).replace(tzinfo=None) - _DAY_ZERO
        return f'<c s="{style}"><v>{elapsed.total_seconds() / 86_400!r}</v></c>'
    if isinstance(cell, int | float):
        return f'<c s="{style}"><v>{cell!r}</v></c>'
    text = escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", str(cell)[:LONGEST_EXCEL_TEXT]))
    return f'<c s="{style}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


class ParquetWriter:
    """Times are in UTC, to the microsecond. MissingPackageError without pyarrow."""

    def __init__(self, file: IO[bytes], columns: Columns) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ModuleNotFoundError as error:
            raise MissingPackageError(
                "writing Parquet needs pyarrow. Nothing was done.",
                hint="Install it: pip install 'lpf[parquet]', or write CSV, Excel or JSONL.",
            ) from error
        kinds: dict[str, Any] = {
            "text": pyarrow.string(),
            "share": pyarrow.float64(),
            "number": pyarrow.float64(),
            "count": pyarrow.int64(),
            "time": pyarrow.timestamp("us", "UTC"),
        }
        self._pyarrow = pyarrow
        self._schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
        self._writer = pyarrow.parquet.ParquetWriter(file, self._schema)
        self._rows: list[Cells] = []

    def write(self, cells: Cells) -> None:
        self._rows.append(cells)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [
                self._pyarrow.array(cells, field.type)
                for cells, field in zip(columns, self._schema, strict=True)
            ]
            self._writer.write_batch(
                self._pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)
            )
            self._rows = []
