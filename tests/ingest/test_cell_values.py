"""Cells as people write them, and what is stated about how they were read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.parts import ONE_PREDICATE, HashReader
from lpf.errors import ConfigError, InputFileError
from lpf.ingest import FileOptions, IngestOutcome, ingest, read_facts
from lpf.storage.evidence import EvidenceStore

HEADER = "entity_id;text;credibility;timestamp;supports_value"


def take(
    store: EvidenceStore, path: Path, content: str, encoding: str = "utf-8", **options: object
) -> IngestOutcome:
    path.write_bytes(content.encode(encoding))
    given = FileOptions(**options)  # type: ignore[arg-type]
    rejects = path.parent / "bad"
    return ingest(path, store, ONE_PREDICATE, HashReader(), rejects_folder=rejects, options=given)


def dates(store: EvidenceStore) -> list[datetime | None]:
    return [item.evidence.timestamp for item in store.page()]


def test_a_table_as_a_spreadsheet_program_exports_it(store: EvidenceStore, tmp_path: Path) -> None:
    content = f"{HEADER}\nC1;Größe;0,8;03/04/2026;High\nC2;b;80 %;13/05/2026;LOW\n"
    outcome = take(store, tmp_path / "a.csv", content, "cp1252")
    assert (outcome.added, outcome.rejected) == (2, 0)
    assert dates(store) == [datetime(2026, 4, 3, tzinfo=UTC), datetime(2026, 5, 13, tzinfo=UTC)]
    items = [item.evidence for item in store.page()]
    assert [item.credibility for item in items] == [0.8, 0.8]
    assert [item.supports_value for item in items] == ["high", "low"]
    assert items[0].text_content == "Größe"
    stated = ", ".join(outcome.read_as)
    for part in (
        "separator ';'",
        "encoding cp1252",
        "dates day first (13/05/2026 at line 3)",
        "decimal comma ('0,8' at line 2)",
        "('80 %' at line 3)",
        "('High' as 'high' at line 2)",
    ):
        assert part in stated


def test_a_file_in_the_expected_form_states_nothing(store: EvidenceStore, tmp_path: Path) -> None:
    outcome = take(store, tmp_path / "a.csv", "entity_id,text,timestamp\nC1,a,2026-05-13\n")
    assert outcome.read_as == ()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("05/13/2026", datetime(2026, 5, 13)),
        ("13.05.2026", datetime(2026, 5, 13)),
        ("03.04.2026", datetime(2026, 4, 3)),
        ("13-05-2026 14:30", datetime(2026, 5, 13, 14, 30)),
        ("05/13/2026 2:30:05 PM", datetime(2026, 5, 13, 14, 30, 5)),
        ("05/13/2026 12:00 AM", datetime(2026, 5, 13)),
        ("2026/5/3", datetime(2026, 5, 3)),
    ],
)
def test_forms_of_dates(store: EvidenceStore, tmp_path: Path, text: str, moment: datetime) -> None:
    take(store, tmp_path / "a.csv", f"entity_id,text,timestamp\nC1,a,{text}\n")
    assert dates(store) == [moment.replace(tzinfo=UTC)]


@pytest.mark.parametrize(
    "column", [["03/04/2026"], ["03/04/2026", "2026-05-13"], ["13/05/2026", "05/13/2026"]]
)
def test_an_ambiguous_order_is_refused_before_anything_is_added(
    store: EvidenceStore, tmp_path: Path, column: list[str]
) -> None:
    rows = "".join(f"C{number},t,{text}\n" for number, text in enumerate(column))
    content = "entity_id,text,timestamp\n" + rows
    with pytest.raises(InputFileError) as caught:
        take(store, tmp_path / "a.csv", content)
    assert caught.value.field == "timestamp"
    assert "--date-format" in caught.value.hint
    assert store.count() == 0


@pytest.mark.parametrize(
    ("form", "moment"),
    [
        ("DD/MM/YYYY", datetime(2026, 4, 3)),
        ("%m/%d/%Y", datetime(2026, 3, 4)),
        ("MM/DD/YYYY", datetime(2026, 3, 4)),
    ],
)
def test_a_given_form_settles_the_order(
    store: EvidenceStore, tmp_path: Path, form: str, moment: datetime
) -> None:
    content = "entity_id,text,timestamp\nC1,a,03/04/2026\nC2,b,soon\n"
    outcome = take(store, tmp_path / "a.csv", content, date_format=form)
    assert dates(store) == [moment.replace(tzinfo=UTC)]
    assert outcome.problems[0].field == "timestamp"


@pytest.mark.parametrize("form", ["", "day first", "%Q", "YYYY", "%d/%m"])
def test_a_form_without_day_month_and_year_is_refused(
    store: EvidenceStore, tmp_path: Path, form: str
) -> None:
    with pytest.raises(ConfigError):
        take(store, tmp_path / "a.csv", "entity_id,text,timestamp\nC1,a,b\n", date_format=form)


@pytest.mark.parametrize("text", ["80", "180 %", "-1 %", "1,5", "0,8,1", "% 80", "a %", "8 0 %"])
def test_shares_that_are_none_are_rejected(store: EvidenceStore, tmp_path: Path, text: str) -> None:
    outcome = take(store, tmp_path / "a.csv", f"entity_id;text;credibility\nC1;a;{text}\n")
    assert (outcome.rejected, outcome.problems[0].field) == (1, "credibility")


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"]
)
@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a"])
def test_encodings_are_recognised(
    store: EvidenceStore, tmp_path: Path, encoding: str, name: str
) -> None:
    outcome = take(store, tmp_path / name, "entity_id,text\nC1,Größe\nC2,été\n", encoding)
    assert [item.evidence.text_content for item in store.page()] == ["Größe", "été"]
    assert bool(outcome.read_as) == (encoding != "utf-8-sig")


def test_one_broken_line_of_a_utf8_file_does_not_change_the_encoding(
    store: EvidenceStore, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("entity_id,text\nC1,Größe\nC2,".encode() + b"\xff\n")
    outcome = ingest(path, store, ONE_PREDICATE, HashReader(), rejects_folder=tmp_path / "bad")
    assert (outcome.added, outcome.rejected, outcome.read_as) == (1, 1, ())


def test_a_given_encoding_is_used(store: EvidenceStore, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("entity_id,text\nC1,Łódź\n", encoding="cp1250")
    options = FileOptions(encoding="cp1250")
    ingest(path, store, ONE_PREDICATE, HashReader(), rejects_folder=tmp_path, options=options)
    assert store.page()[0].evidence.text_content == "Łódź"
    for wrong in ("klingon", "rot13", "base64"):
        with pytest.raises(ConfigError) as caught:
            FileOptions(encoding=wrong)
        assert caught.value.field == "encoding"


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_columns_are_mapped_to_fields(store: EvidenceStore, tmp_path: Path, ending: str) -> None:
    lines = {
        "csv": "Kunde;Bemerkung;Text\nC1;late again;x\n",
        "jsonl": '{"Kunde": "C1", "Bemerkung": "late again", "Text": "x"}\n',
    }
    columns = {"kunde": "entity_id", "Bemerkung": "text", "Text": "source"}
    outcome = take(store, tmp_path / f"a.{ending}", lines[ending], columns=columns)
    (item,) = store.page()
    assert (outcome.added, item.evidence.entity_id, item.evidence.source) == (1, "C1", "x")
    assert item.evidence.text_content == "late again"


def test_a_mapping_that_does_not_fit_is_refused(store: EvidenceStore, tmp_path: Path) -> None:
    content = "entity_id,text,note\nC1,a,b\n"
    with pytest.raises(ConfigError, match="not a field"):
        FileOptions(columns={"note": "colour"})
    with pytest.raises(InputFileError, match=r"no columns \['remark'\]"):
        take(store, tmp_path / "a.csv", content, columns={"remark": "source"})
    with pytest.raises(InputFileError, match=r"repeated columns \['text'\]"):
        take(store, tmp_path / "a.csv", content, columns={"note": "text"})


def test_the_first_line_may_state_the_separator(store: EvidenceStore, tmp_path: Path) -> None:
    assert take(store, tmp_path / "a.csv", "sep=;\r\nentity_id;text\r\nC1;a\r\n").added == 1


def test_all_errors_of_a_facts_file_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(
        "entity_id,predicate,value,timestamp,confidence\n"
        "C1,Level,HIGH,13/05/2026,90 %\n,level,huge,soon,7\nC2,mood,low,2026-01-01,\n"
    )
    with pytest.raises(InputFileError) as caught:
        list(read_facts(path, schema=ONE_PREDICATE))
    message = str(caught.value)
    for part in ("entity_id: is missing", "value: 'huge'", "timestamp: ", "confidence: ", "'mood'"):
        assert part in message
    assert "line 3)" in message
    assert "line 4)" in message
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    (fact,) = read_facts(path, schema=ONE_PREDICATE)
    assert (fact.predicate, fact.value, fact.confidence) == ("level", "high", 0.9)
