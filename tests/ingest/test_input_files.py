"""Reading rows from JSONL, CSV and Parquet files, with their line numbers."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.parts import SCHEMA, HashReader, row, write_csv, write_jsonl
from lpf.errors import InputFileError
from lpf.ingest import ingest
from lpf.ingest.evidence_drafts import DraftReader
from lpf.ingest.input_files import InputRow, open_input
from lpf.storage.evidence import EvidenceStore

HEADER = "entity_id,predicate,text\n"


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows_of(path: Path) -> list[InputRow]:
    return list(open_input(path).rows())


def test_jsonl_with_bom_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": "\xc3\xa9"}')
    assert rows_of(path) == [InputRow(1, {"a": 1}), InputRow(3, {"a": "é"})]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"a": ', "is not valid JSON"),
        (b'["a"]', "must be a JSON object"),
        (b'{"a": "\xff"}', "is not valid UTF-8 (invalid start byte at byte 8)"),
        (b"[" * 200_000, "is not valid JSON"),
    ],
)
def test_an_invalid_json_line_is_reported_with_its_line(
    tmp_path: Path, line: bytes, error: str
) -> None:
    path = written(tmp_path / "a.jsonl", b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    first, wrong, last = rows_of(path)
    assert (first.values, last.values, last.line) == ({"a": 1}, {"a": 2}, 3)
    assert wrong.line == 2
    assert error in wrong.error


def test_csv_lines_are_counted_through_quoted_line_ends(tmp_path: Path) -> None:
    text = HEADER + 'C1,level,"one\r\ntwo\nthree"\r\n\nC2,level,"say ""hi"""\nC3,,x\n'
    rows = rows_of(written(tmp_path / "a.csv", b"\xef\xbb\xbf" + text.encode()))
    assert [r.line for r in rows] == [2, 6, 7]
    assert [r.values["text"] for r in rows] == ["one\r\ntwo\nthree", 'say "hi"', "x"]
    assert rows[2].values["predicate"] is None


@pytest.mark.parametrize(
    ("record", "line", "error"),
    [
        (b"C1,level\n", 3, "has 2 cells, the first line has 3"),
        (b"C1,level,a,b\n", 3, "has 4 cells, the first line has 3"),
        (b'C1,level,"two\nlines \x81"\n', 4, "is not valid UTF-8"),
        (b'C1,level,"a"b\n', 3, "is not valid CSV"),
    ],
)
def test_an_invalid_csv_record_is_reported_with_its_line(
    tmp_path: Path, record: bytes, line: int, error: str
) -> None:
    content = HEADER.encode() + b"C0,level,before\n" + record + b"C9,level,after\n"
    before, wrong, after = rows_of(written(tmp_path / "a.csv", content))
    assert (before.values["text"], after.values["text"]) == ("before", "after")
    assert wrong.line == line
    assert error in wrong.error


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    ("opening", "line"), [('C1,level,"open\n', 3), ('C1,"le\nvel","open\n', 4), ('C1,a"b,"\n', 3)]
)
def test_an_unclosed_quote_is_reported_where_it_opens(
    tmp_path: Path, opening: str, line: int, end: str
) -> None:
    hidden = "".join(f"C{number},level,\u2028y\n" for number in range(40)).encode()
    content = (HEADER + "C0,level,x\n" + opening).encode() + b"C2,level,\xff\n" + hidden
    before, wrong = rows_of(written(tmp_path / "a.csv", content + b"C9,level,z" + end.encode()))
    last = 2 + opening.count("\n") + 42
    assert (before.error, wrong.line) == ("", line)
    assert wrong.error == (
        f"opens a quote that is never closed; lines 3 to {last} were not read ({last - 2} in all)"
    )


def test_lines_hidden_by_an_extra_quote_are_reported(tmp_path: Path) -> None:
    content = HEADER + 'C1,level,"open\nC2,level,y\nC3,level,"z"\nC4,level,w\n'
    wrong, after = rows_of(written(tmp_path / "a.csv", content))
    assert (wrong.line, after.values["text"]) == (2, "w")
    assert wrong.error.endswith("; lines 2 to 4 were not read")


def test_a_header_with_an_unclosed_quote_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="line 1: opens a quote that is never closed"):
        open_input(written(tmp_path / "a.csv", 'entity_id,"text\nC1,x\n'))


def test_a_long_cell_is_accepted(tmp_path: Path) -> None:
    (only,) = rows_of(written(tmp_path / "a.csv", HEADER + "C1,level," + "x" * 500_000))
    assert len(str(only.values["text"])) == 500_000


def test_parquet_gives_plain_values_and_truncates_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {
        "entity_id": pyarrow.array([1, 2]),
        "text": pyarrow.array(["a", None]),
        "timestamp": pyarrow.array(
            [1_769_355_753_123_456_789, None], pyarrow.timestamp("ns", "UTC")
        ),
        "day": pyarrow.array([date(2026, 1, 25), None]),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    file = open_input(path)
    assert (file.columns, file.total) == (("entity_id", "text", "timestamp", "day"), 2)
    first, second = file.rows()
    moment = datetime(2026, 1, 25, 15, 42, 33, 123456, tzinfo=UTC)
    assert (first.line, first.values["timestamp"]) == (1, moment)
    assert (second.line, second.values["text"]) == (2, None)


def test_parquet_rows_are_ingested(store: EvidenceStore, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = [row(text_content=f"t{n}", day=date(2026, 1, n + 1), credibility=0.5) for n in range(5)]
    rows[1]["credibility"] = 7.0
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    outcome = ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path)
    assert (outcome.added, outcome.rejected, outcome.ignored_columns) == (4, 1, ("day",))
    assert '"day": "2026-01-02"' in outcome.rejects_file.read_text()


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "a.parquet", "PAR1")
    with pytest.raises(InputFileError, match="not a valid Parquet file"):
        open_input(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputFileError, match=r"pip install 'lpf\[parquet\]'"):
        open_input(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "", "is empty"),
        ("a.csv", "", "is empty"),
        ("a.xlsx", "x", "not a valid Excel file"),
        ("a.xlsx", b"PK\x03\x04 and no more", "not a valid Excel file"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1", "old format or with a password"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00", "compressed with gzip"),
        ("a.bin", b"\x01\0\0\0\x02 a", "is not JSONL, CSV"),
        ("a.csv", "\n\n", "has no column names"),
        ("a.csv", "a,b,a\n", r"repeated columns \['a'\]"),
        ("a.csv", b"a,\x81\n", "line 1: is not valid UTF-8"),
        ("a.csv", "Source,source \n", r"repeated columns \['source'\]"),
    ],
)
def test_an_invalid_file_is_rejected(
    tmp_path: Path, name: str, content: bytes | str, message: str
) -> None:
    with pytest.raises(InputFileError, match=message) as caught:
        open_input(written(tmp_path / name, content))
    assert str(caught.value).startswith(str(tmp_path / name))


def test_a_missing_file_and_a_folder_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"absent\.csv: cannot be read: No such file"):
        open_input(tmp_path / "absent.csv")
    with pytest.raises(InputFileError, match="cannot be read"):
        open_input(tmp_path)


def test_missing_evidence_columns_are_named(store: EvidenceStore, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "entity,predicate\n" + "C1,level\n" * 50)
    with pytest.raises(InputFileError, match=r"\['entity_id', 'text'\] are missing") as caught:
        ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("separator", "read_as"),
    [(",", ()), (";", ("separator ';'",)), ("\t", ("separator tab",))],
)
def test_the_separator_is_detected_from_the_header(
    store: EvidenceStore, tmp_path: Path, separator: str, read_as: tuple[str, ...]
) -> None:
    lines = [["entity_id", '"predicate"', "text"], ["C1", "level", '"a, b; c\td"'], ["C2", "level"]]
    content = "".join(separator.join(cells) + "\n" for cells in lines)
    path = written(tmp_path / "a.csv", content)
    outcome = ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path)
    assert (outcome.added, outcome.rejected, outcome.read_as) == (1, 1, read_as)
    assert store.get("C1_E001").evidence.text_content == "a, b; c\td"
    assert outcome.problems[0].error == "has 2 cells, the first line has 3"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("entity_id", ("entity_id",)),
        ("entity_id,a;source;text", ("entity_id", "a;source;text")),
        ("source;a\tb;c\ttext", ("source;a\tb;c\ttext",)),
        ("a;b", ("a;b",)),
    ],
)
def test_the_separator_is_a_comma_unless_only_another_finds_fields(
    tmp_path: Path, header: str, columns: tuple[str, ...]
) -> None:
    file = open_input(written(tmp_path / "a.csv", header + "\n"))
    assert (file.columns, file.read_as) == (columns, ())


def test_an_unclosed_quote_is_reported_with_other_separators(tmp_path: Path) -> None:
    content = 'entity_id;text\nC1;x\nC2;"open\nC3;y\n'
    _, wrong = rows_of(written(tmp_path / "a.csv", content))
    assert (wrong.line, "opens a quote that is never closed" in wrong.error) == (3, True)


def test_case_and_whitespace_of_a_header_do_not_matter(
    store: EvidenceStore, tmp_path: Path
) -> None:
    header = ["Entity_ID ", " PREDICATE", "Text", " Day"]
    path = written(tmp_path / "a.csv", ",".join(header) + "\nC1,level,a,b\n")
    other = tmp_path / "a.parquet"
    values = dict(zip(header, ["C2", "level", "a", "b"], strict=True))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([values]), other)
    for each in (path, other):
        outcome = ingest(each, store, SCHEMA, HashReader(), rejects_folder=tmp_path)
        assert (outcome.added, outcome.ignored_columns) == (1, ("Day",))


def test_parquet_columns_for_the_same_field_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"text": "a", "Text": "b"}]), path)
    with pytest.raises(InputFileError, match=r"a\.parquet: repeated columns \['text'\]"):
        open_input(path)


def test_a_file_with_only_a_header_has_no_rows(store: EvidenceStore, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", HEADER)
    assert ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path).read == 0


def test_a_time_without_a_zone_is_in_utc(store: EvidenceStore, tmp_path: Path) -> None:
    times = ["2026-01-25T15:42:33", "2026-01-25", "2026-01-25T15:42:33.5Z", ""]
    path = write_csv(
        tmp_path / "a.csv", [row(evidence_id=f"E{n}", timestamp=t) for n, t in enumerate(times)]
    )
    ingest(path, store, SCHEMA, HashReader(), rejects_folder=tmp_path)
    found = [item.evidence.timestamp for item in store.page()]
    assert found == [
        datetime(2026, 1, 25, 15, 42, 33, tzinfo=UTC),
        datetime(2026, 1, 25, tzinfo=UTC),
        datetime(2026, 1, 25, 15, 42, 33, 500_000, tzinfo=UTC),
        None,
    ]


# Texts that can be stored: no lone surrogates, no NUL, not only whitespace.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
filled = texts.filter(lambda text: bool(text.strip()))
names = filled.map(str.strip)
items = st.fixed_dictionaries(
    {
        "evidence_id": names,
        "entity_id": names,
        "predicate": st.just("level"),
        "text_content": filled,
        "credibility": st.none() | st.floats(0.0, 1.0),
        "timestamp": st.none() | st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC)),
        "claim": st.none() | filled,
        "source": st.none() | names,
    }
)


@pytest.mark.parametrize("write", [write_jsonl, write_csv])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(items, min_size=1, max_size=5))
def test_written_items_are_read_back(tmp_path: Path, write: object, rows: list[dict]) -> None:
    plain = [
        {name: v.isoformat() if isinstance(v, datetime) else v for name, v in each.items()}
        for each in rows
    ]
    ending = "jsonl" if write is write_jsonl else "csv"
    path = write(tmp_path / f"round.{ending}", plain)  # type: ignore[operator]
    reader = DraftReader(SCHEMA)
    drafts = [reader.draft(found) for found in open_input(path).rows()]
    for draft, given_row in zip(drafts, rows, strict=True):
        assert {name: getattr(draft.evidence, name) for name in given_row} == given_row
