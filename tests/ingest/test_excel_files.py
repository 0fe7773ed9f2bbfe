"""Reading sheets of Excel workbooks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from openpyxl import Workbook as ExcelWorkbook

from ingest.parts import ONE_PREDICATE, HashReader
from lpf.errors import InputFileError
from lpf.ingest import FileOptions, IngestOutcome, ingest
from lpf.ingest.input_files import open_input
from lpf.storage.evidence import EvidenceStore

HEADER = ["Entity ID", "Text", "Credibility", "Timestamp", "Source", "Supports value"]


def saved(path: Path, *rows: list) -> Path:
    book = ExcelWorkbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def take(path: Path, store: EvidenceStore, **options: object) -> IngestOutcome:
    given = FileOptions(**options)  # type: ignore[arg-type]
    rejects = path.parent / "bad"
    return ingest(path, store, ONE_PREDICATE, HashReader(), rejects_folder=rejects, options=given)


def test_dates_numbers_and_percentages_are_read_as_such(
    store: EvidenceStore, tmp_path: Path
) -> None:
    book = ExcelWorkbook()
    sheet = book.active
    sheet.append(HEADER)
    sheet.append([1001, "a", 0.8, datetime(2026, 5, 13, 14, 30), 2026, "High"])
    sheet["C2"].number_format = "0%"
    sheet.append(["C2", 42, "80 %", "13/05/2026", None, None])
    book.save(tmp_path / "a.xlsx")
    outcome = take(tmp_path / "a.xlsx", store)
    assert (outcome.added, outcome.rejected) == (2, 0)
    first, second = (item.evidence for item in store.page())
    assert (first.entity_id, first.credibility, first.source) == ("1001", 0.8, "2026")
    assert first.timestamp == datetime(2026, 5, 13, 14, 30, tzinfo=UTC)
    assert first.supports_value == "high"
    assert (second.text_content, second.credibility) == ("42", 0.8)
    assert second.timestamp == datetime(2026, 5, 13, tzinfo=UTC)


def test_titles_blank_rows_and_merged_cells(store: EvidenceStore, tmp_path: Path) -> None:
    book = ExcelWorkbook()
    sheet = book.active
    for row in (["Reviews 2026"], [], HEADER[:2], ["C1", "a"], [None, "b"], [], ["C2", "c"]):
        sheet.append(row)
    sheet.merge_cells("A4:A5")
    sheet.merge_cells("A1:C1")
    book.save(tmp_path / "a.xlsx")
    outcome = take(tmp_path / "a.xlsx", store)
    assert (outcome.added, outcome.rejected) == (3, 0)
    found = [(item.evidence.entity_id, item.evidence.text_content) for item in store.page()]
    assert found == [("C1", "a"), ("C1", "b"), ("C2", "c")]
    assert "header in row 3" in outcome.read_as
    assert any("merged" in stated for stated in outcome.read_as)


def test_problems_name_the_row_of_the_sheet(store: EvidenceStore, tmp_path: Path) -> None:
    path = saved(tmp_path / "a.xlsx", HEADER[:3], ["C1", "a", 0.5], [], ["C2", "b", 7])
    (problem,) = take(path, store).problems
    assert (problem.line, problem.unit, problem.field) == (4, "row", "credibility")


def test_several_sheets_need_a_choice(store: EvidenceStore, tmp_path: Path) -> None:
    book = ExcelWorkbook()
    book.active.title = "2025"
    book.create_sheet("empty")
    for name in ("2025", "2026"):
        sheet = book["2025"] if name == "2025" else book.create_sheet(name)
        sheet.append(HEADER[:2])
        sheet.append(["C1", f"of {name}"])
    path = tmp_path / "a.xlsx"
    book.save(path)
    with pytest.raises(InputFileError) as caught:
        take(path, store)
    assert caught.value.field == "sheet"
    assert "['2025', '2026']" in str(caught.value)
    with pytest.raises(InputFileError, match="2026"):
        take(path, store, sheet="2027")
    assert take(path, store, sheet="2026").added == 1
    assert store.page()[0].evidence.text_content == "of 2026"


def test_formulas_need_a_stored_value_and_errors_are_rejected(
    store: EvidenceStore, tmp_path: Path
) -> None:
    """openpyxl writes formulas without values, as files do that no program has computed."""
    rows = [["C1", '=CONCATENATE("a","b")'], ["C2", "#N/A"], ["C3", "fine"]]
    book = ExcelWorkbook()
    for row in (HEADER[:2], *rows):
        book.active.append(row)
    book.active["B3"].data_type = "e"
    book.save(tmp_path / "a.xlsx")
    outcome = take(tmp_path / "a.xlsx", store)
    assert (outcome.added, outcome.rejected) == (1, 2)
    assert ["B2" in outcome.problems[0].error, "B3" in outcome.problems[1].error] == [True, True]


def test_the_content_decides_whatever_the_file_is_called(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.csv", HEADER[:2], ["C1", "a"])
    assert open_input(path).columns == ("entity_id", "text")
    with pytest.raises(InputFileError, match="has content"):
        open_input(saved(tmp_path / "b.xlsx"))
