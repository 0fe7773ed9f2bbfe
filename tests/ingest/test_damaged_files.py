"""Damaged and hostile files: a named error or rejected rows, never a traceback, never more memory
than a small machine has, and nothing half-written."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pyarrow
import pyarrow.parquet
import pytest

from ingest.damaged_files import damage, outcomes, write_valid
from ingest.parts import SCHEMA, HashReader, row, write_jsonl
from lpf.errors import InputFileError
from lpf.ingest import ingest
from lpf.ingest.input_files import open_input
from lpf.storage.evidence import EvidenceStore
from lpf.types import LONGEST_TEXT

SUFFIXES = [".parquet", ".xlsx", ".csv", ".jsonl"]


def check(folder: Path, count: int) -> None:
    results = outcomes(folder)
    assert len(results) == count
    check_no_bugs(results)


def check_no_bugs(results: dict[str, dict]) -> None:
    assert max(result["megabytes"] for result in results.values()) < 1024
    bugs = {name: result["bug"] for name, result in results.items() if result["bug"]}
    assert not bugs, "\n".join(f"{name}: {bug}" for name, bug in list(bugs.items())[:3])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_bytes_are_named_errors(tmp_path: Path, suffix: str) -> None:
    damage(write_valid(tmp_path / f"valid{suffix}"), tmp_path / "damaged", 25, seed=1)
    check(tmp_path / "damaged", 25)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", [2, 3])
def test_many_damaged_files_are_named_errors(tmp_path: Path, suffix: str, seed: int) -> None:
    damage(write_valid(tmp_path / f"valid{suffix}"), tmp_path / "damaged", 300, seed)
    check(tmp_path / "damaged", 300)


def repeated_text(path: Path, length: int, rows: int, **options: object) -> Path:
    """A text of ``length`` that a few bytes repeat in all rows."""
    text = pyarrow.DictionaryArray.from_arrays(
        pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), rows), ["x" * length]
    )
    names = {"entity_id": pyarrow.repeat("C1", rows), "predicate": pyarrow.repeat("level", rows)}
    columns = {**names, "text": text}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd", **options)
    return path


def shared_beginnings(path: Path, length: int, rows: int) -> None:
    """Texts that are stored as the beginning of the one before."""
    columns = {
        "entity_id": ["C1"] * rows,
        "predicate": ["level"] * rows,
        "text": ["x" * length] * rows,
    }
    encoding = {"entity_id": "PLAIN", "predicate": "PLAIN", "text": "DELTA_BYTE_ARRAY"}
    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path, use_dictionary=False, column_encoding=encoding)


def sheet_bomb(path: Path, cells: bytes, copies: int) -> Path:
    """A workbook with one sheet whose XML repeats ``cells``."""
    write_valid(path)
    with ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as new:
        for name, part in parts.items():
            if name != "xl/worksheets/sheet1.xml":
                new.writestr(name, part)
        with new.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as file:
            head, tail = parts["xl/worksheets/sheet1.xml"].split(b"</sheetData>")
            file.write(head)
            for _ in range(copies):
                file.write(cells)
            file.write(b"</sheetData>" + tail)
    return path


def test_files_that_expand_are_refused_within_little_memory(tmp_path: Path) -> None:
    folder = tmp_path / "bombs"
    folder.mkdir()
    assert repeated_text(folder / "1.parquet", 10_000_000, 1000).stat().st_size < 2000
    shared_beginnings(folder / "2.parquet", 5_000_000, 40)
    repeated_text(folder / "3.parquet", 1, 30_000_000)
    row_of_cells = b"<row r='13'>" + b"<c/>" * 1_000_000 + b"</row>"
    sheet_bomb(folder / "4.xlsx", row_of_cells, 1)
    sheet_bomb(folder / "5.xlsx", b"<row/>" * 100_000, 20)
    sheet_bomb(folder / "6.xlsx", b"<row r='999999999'><c><v>1</v></c></row>", 1)
    for name in ("7.jsonl", "8.csv"):
        with (folder / name).open("wb") as file:
            file.write(b"entity_id,predicate,text\n" if name.endswith("csv") else b"")
            file.truncate(500_000_000)  # one line of zeros
    with (folder / "9.csv").open("wb") as file:  # a quote that is never closed
        file.write(b'entity_id,predicate,text\nC1,level,"')
        for _ in range(40):
            file.write(b"x\n" * 500_000)
    results = outcomes(folder)
    check_no_bugs(results)
    assert [name for name, result in results.items() if result["error"]] == [
        "3.parquet",
        "4.xlsx",
        "5.xlsx",
        "6.xlsx",
    ]
    for name in ("1.parquet", "2.parquet", "7.jsonl", "8.csv", "9.csv"):
        added, updated, rejected = results[name]["counts"]
        assert (added, updated) == (0, 0)
        assert rejected


def test_a_page_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    """The metadata claims little; what a reader would allocate is in the page header."""
    path = repeated_text(tmp_path / "a.parquet", 280_000_000, 1, use_dictionary=False)
    size = path.stat().st_size
    metadata = pyarrow.parquet.read_metadata(path)
    text = metadata.row_group(0).column(2)
    claimed = text.total_uncompressed_size
    assert size < 100_000
    content = path.read_bytes()
    true_size, false_size = zigzag(claimed), zigzag(1000)
    place = content.rindex(true_size)
    false_size = false_size.ljust(len(true_size), b"\0")
    padded = bytes(byte | 128 for byte in false_size[:-1]) + false_size[-1:]
    path.write_bytes(content[:place] + padded + content[place + len(true_size) :])
    lying = pyarrow.parquet.read_metadata(path).row_group(0).column(2)
    assert lying.total_uncompressed_size == 1000
    with pytest.raises(InputFileError, match="unpacks a page"):
        open_input(path)


def zigzag(number: int) -> bytes:
    """As Thrift's compact protocol writes a number."""
    value, written = number << 1, bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def test_nothing_is_added_from_a_file_that_breaks_off(store: EvidenceStore, tmp_path: Path) -> None:
    path = write_valid(tmp_path / "a.parquet")
    last = pyarrow.parquet.read_metadata(path).row_group(2).column(3)
    content = bytearray(path.read_bytes())
    start = last.dictionary_page_offset + 40
    content[start : start + 8] = b"\xff" * 8
    path.write_bytes(content)
    with pytest.raises(InputFileError, match="not a valid Parquet file"):
        ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path / "bad", batch=2)
    assert store.count() == 0


@pytest.mark.parametrize("zone", ["Nowhere/Atlantis", "+99:99", "Europe/Berlin"])
def test_odd_times_and_zones_of_parquet(store: EvidenceStore, tmp_path: Path, zone: str) -> None:
    """A time with a zone is stored in UTC, so the zone's name does not matter."""
    micros = [0, 2**62, -(2**62), 1_769_355_753_000_000]
    columns = {
        "entity_id": ["C1"] * 4,
        "predicate": ["level"] * 4,
        "text": list("abcd"),
        "timestamp": pyarrow.array(micros, pyarrow.timestamp("us", zone)),
    }
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    outcome = ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path)
    assert (outcome.added, outcome.rejected) == (2, 2)
    assert {problem.field for problem in outcome.problems} == {"timestamp"}
    days = pyarrow.array([2**30, -(2**30), 20_000, None], pyarrow.date32())
    pyarrow.parquet.write_table(pyarrow.table({**columns, "timestamp": days}), path)
    assert ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path).rejected == 2


def test_a_text_beyond_the_limit_is_rejected(store: EvidenceStore, tmp_path: Path) -> None:
    rows = [row(text_content="x" * (LONGEST_TEXT + 1)), row(text_content="x" * LONGEST_TEXT)]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    outcome = ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path)
    assert (outcome.added, outcome.rejected) == (1, 1)
    assert outcome.problems[0].field == "text_content"
