"""ingest, facts, evidence: adding to the store and showing what it has."""

from __future__ import annotations

import json
from pathlib import Path

import openpyxl
import pytest

from lpf.workspace import Workspace

CSV = """evidence_id,entity_id,predicate,text,credibility,colour
N1,C0003,level,Filings were on time,0.9,red
N2,C0003,level,Two [late] filings,0.8,
N3,C0003,level,A text,7,
N4,C0003,taste,A text,0.5,
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "evidence.csv"
    path.write_text(CSV)
    return path


def test_ingest_reports_counts_and_rejected_rows(lpf, table: Path) -> None:
    shown = lpf("ingest", table).stdout
    for part in ("line 4: credibility", "line 5: predicate", "rejects", "colour"):
        assert part in shown
    (output,) = lpf.json("ingest", table)["files"]
    assert {name: output[name] for name in ("read", "added", "unchanged", "rejected")} == {
        "read": 4,
        "added": 0,
        "unchanged": 2,
        "rejected": 2,
    }
    assert output["problems"][0]["field"] == "credibility"
    assert Path(output["rejects_file"]).exists()
    assert lpf.json("query", "C0003", "level")["evidence_chain"] == ["N1", "N2"]


def test_a_mistyped_column_is_reported_with_a_suggestion(lpf, tmp_path: Path) -> None:
    path = tmp_path / "evidence.csv"
    path.write_text("entity_id,predicate,text,support_value,colour\nC3,level,A text,low,red\n")
    output = "columns not used: colour, support_value (did you mean supports_value?)\n"
    assert output in lpf("ingest", path).stdout
    (document,) = lpf.json("ingest", path)["files"]
    assert document["ignored_columns"] == ["colour", "support_value"]
    assert document["did_you_mean"] == {"support_value": "supports_value"}


def test_a_data_set_is_ingested(lpf, tmp_path: Path) -> None:
    path = tmp_path / "claims.jsonl"
    line = '{"entity_id": "K1", "label": "low", "evidence": [{"evidence_id": 1, "text": "a"}]}\n'
    path.write_text(line)
    assert lpf.refused("ingest", path)["field"] == "predicate"
    assert "data set" in lpf("ingest", path, "--predicate", "level").stdout
    (item,) = lpf.json("evidence", "list", "--entity", "K1")["evidence"]
    assert (item["evidence_id"], item["supports_value"]) == ("1", "low")
    path.write_text(line.replace('"a"', '"corrected"'))
    (output,) = lpf.json("ingest", path, "--predicate", "level")["files"]
    assert (output["updated"], output["added"]) == (1, 0)
    assert output["notes"][-1].endswith("new version: 1")
    path.write_text(line.replace('"a"', '"corrected again"'))
    assert "new version: 1" in lpf("ingest", path, "--predicate", "level").stdout


def test_strict_adds_nothing_from_a_file_with_errors(lpf, table: Path) -> None:
    assert "2 of 4 rows are invalid" in lpf.error("ingest", table, "--strict")
    assert lpf.json("evidence", "list", "--entity", "C0003")["evidence"] == []


def test_an_unreadable_file_does_not_stop_the_others(lpf, table: Path, tmp_path: Path) -> None:
    missing, broken = tmp_path / "missing.csv", tmp_path / "evidence.doc"
    broken.write_text("x")
    done = lpf("ingest", missing, broken, table, code=2)
    assert "evidence.csv" in done.stdout
    assert "missing.csv" in done.stderr
    assert "evidence.doc" in done.stderr
    output = lpf.json("ingest", missing, table, code=2)
    assert "missing.csv" in output["error"]["message"]
    assert output["files"][0]["error"] == output["error"]
    assert output["files"][1]["unchanged"] == 2


def test_a_file_without_usable_rows_exits_with_1(lpf, table: Path) -> None:
    lines = CSV.splitlines()
    table.write_text("\n".join([lines[0], *lines[3:]]) + "\n")
    assert "line 2: credibility" in lpf("ingest", table, code=1).stdout
    (output,) = lpf.json("ingest", table, code=1)["files"]
    assert (output["added"], output["unchanged"], output["rejected"]) == (0, 0, 2)


def test_facts_from_a_file_are_added_once(lpf, tmp_path: Path) -> None:
    file = tmp_path / "facts.csv"
    file.write_text(
        "entity_id,predicate,value,timestamp\n"
        "C0001,outcome,clean,2026-01-01\nC0002,outcome,qualified,2026-01-01\n"
    )
    assert lpf.json("facts", "add", file)["added"] == 2
    assert lpf.json("facts", "add", file)["unchanged"] == 2
    assert "2 read, 0 added, 2 unchanged" in lpf("facts", "add", file).stdout
    file.write_text("entity_id,predicate,value,timestamp\nC0001,outcome,grey,2026-01-01\n")
    assert "facts.csv, line 2)" in lpf.error("facts", "add", file)


def test_a_fact_is_set_corrected_and_withdrawn(lpf) -> None:
    (fact,) = lpf.json("facts", "set", "C0001", "outcome", "clean", "--at", "2026-01-01")["facts"]
    assert fact["timestamp"] == "2026-01-01T00:00:00.000000Z"
    again = lpf("facts", "set", "C0001", "outcome", "clean", "--at", "2026-01-01")
    assert "has this fact already" in again.stdout
    (better,) = lpf.json("facts", "correct", fact["fact_id"], "--value", "qualified")["facts"]
    assert "superseded" in lpf.error("facts", "correct", fact["fact_id"], "--value", "clean")
    lpf("facts", "withdraw", better["fact_id"])
    assert "No facts found" in lpf("facts", "list", "--entity", "C0001").stdout
    history = lpf.json("facts", "history", "C0001", "outcome")["facts"]
    assert [one["superseded_by"] for one in history] == [better["fact_id"], None]
    shown = lpf("facts", "history", "C0001").stdout
    assert "withdrawn" in shown
    assert f"see {better['fact_id']}" in shown


def test_a_circuit_is_learned_from_facts(lpf) -> None:
    assert "there are none to learn from" in lpf.error("facts", "learn")
    lpf("facts", "set", "C0001", "outcome", "clean")
    assert lpf.json("facts", "learn")["entities"] == 1
    assert "1 entity" in lpf("facts", "learn").stdout


def test_learning_reports_entities_per_relation_and_warns_of_few(lpf, tmp_path: Path) -> None:
    rows = [
        {"entity_id": f"L{number}", "predicate": predicate, "text": f"Note {number}.",
         "evidence_id": f"L{number}_{predicate}", "supports_value": value}
        for number in range(12)
        for predicate, value in (("level", "high"), ("outcome", "clean"))
        if number < 9 or predicate == "level"
    ]  # fmt: skip
    file = tmp_path / "labelled.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    lpf("ingest", file)
    learned = lpf.json("facts", "learn")
    (relation,) = learned["information"]
    assert (learned["entities"], relation["entities"], relation["cells"]) == (12, 9, 6)
    assert relation["has_few"]
    assert len(learned["warnings"]) == 1
    done = lpf("facts", "learn")
    assert "9 entities with both" in done.stdout
    assert done.stderr.startswith("warning: level and outcome: ")


def test_evidence_is_listed_and_shown(lpf) -> None:
    assert len(lpf.json("evidence", "list", "--limit", 3)["evidence"]) == 3
    assert "first 3" in lpf("evidence", "list", "--limit", 3).stderr
    assert "C0002_E003" in lpf("evidence", "list", "--entity", "C0002").stdout
    assert "No items found" in lpf("evidence", "list", "--predicate", "outcome").stdout
    shown = lpf("evidence", "show", "C0001_E001").stdout
    assert "Filings were complete" in shown
    assert len(lpf.json("evidence", "show", "C0001_E001")["commitment"]) == 64
    assert lpf.json("evidence", "show", "C0001_E001")["timestamp"].endswith("Z")
    assert "is not in the store" in lpf.error("evidence", "show", "nothing")


def test_an_unknown_predicate_is_an_error_and_not_an_empty_list(lpf) -> None:
    for words in (("list",), ("search", "late filings")):
        output = lpf.error("evidence", *words, "--predicate", "nope")
        assert "'nope' is not in the schema" in output
    assert "blank" in lpf.error("evidence", "search", " ")


def test_evidence_is_found_by_its_meaning(lpf) -> None:
    hits = lpf.json("evidence", "search", "an inquiry by the authorities", "--limit", 2)["hits"]
    assert {hit["evidence_id"] for hit in hits} == {"C0001_E004", "C0002_E001"}
    assert hits[0]["similarity"] >= hits[1]["similarity"]
    assert "regulator" in lpf("evidence", "search", "inquiry", "--entity", "C0002").stdout


def test_erasing_needs_confirmation_and_is_permanent(lpf) -> None:
    assert "with --yes" in lpf.error("evidence", "erase", "C0001_E001")
    shown = lpf("evidence", "erase", "C0001_E001", "C0002_E001", "--yes").stdout
    assert "Erased: C0001_E001, C0002_E001." in shown
    assert "was erased at" in lpf.error("evidence", "show", "C0001_E001")
    assert lpf.json("evidence", "erase", "C0001_E002", "--yes")["erased"] == ["C0001_E002"]
    assert "C0001_E001" not in lpf.json("query", "C0001", "level")["evidence_chain"]


def test_an_interrupted_erasure_can_be_repeated(lpf) -> None:
    with Workspace.open(lpf.folder) as workspace:
        workspace.evidence.erase("C0001_E001")
    assert "with --yes" in lpf.error("evidence", "erase", "C0001_E001")


def test_future_dates_and_other_separators_are_reported(lpf, tmp_path: Path) -> None:
    path = tmp_path / "later.csv"
    path.write_text("entity_id;predicate;text;timestamp\nC0009;level;It will be fine.;2099-01-01\n")
    shown = lpf("ingest", path).stdout
    assert "1 dated in the future" in shown
    assert "read as: separator ';'" in shown
    (document,) = lpf.json("ingest", path)["files"]
    assert document["read_as"] == ["separator ';'"]


def test_options_say_how_to_read_a_file(lpf, tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("Kunde;Text;Datum\nC7;Zoë was late;03/04/2026\n", encoding="cp1250")
    words = ["ingest", path, "--predicate", "level", "--map", "Kunde=entity_id"]
    words += ["--map", "Datum=timestamp"]
    assert "--date-format" in lpf.error(*words)
    lpf(*words, "--date-format", "MM/DD/YYYY", "--encoding", "cp1250")
    (item,) = lpf.json("evidence", "list", "--entity", "C7")["evidence"]
    assert item["timestamp"].startswith("2026-03-04")
    for option, value in (("--map", "Kunde"), ("--date-format", "day"), ("--encoding", "nope")):
        assert lpf.refused("ingest", path, option, value)["field"] == option


def test_facts_of_a_file_that_names_no_predicate(lpf, tmp_path: Path) -> None:
    table = tmp_path / "decisions.csv"
    table.write_text("entity_id,value,timestamp\nC0001,clean,2026-01-01\n")
    assert lpf.refused("facts", "add", table)["message"]
    assert lpf.json("facts", "add", table, "--predicate", "outcome")["added"] == 1
    (fact,) = lpf.json("facts", "list")["facts"]
    assert (fact["predicate"], fact["value"]) == ("outcome", "clean")


def test_options_that_the_format_does_not_have_are_refused(lpf, tmp_path: Path) -> None:
    text, book = tmp_path / "a.csv", tmp_path / "a.xlsx"
    text.write_text("entity_id,predicate,text\nK7,level,a\n")
    workbook = openpyxl.Workbook()
    for row in (["entity_id", "predicate", "text"], ["K8", "level", "a"]):
        workbook.active.append(row)
    workbook.save(book)
    for name, option in ((text, "--sheet=Sheet"), (book, "--encoding=utf-8")):
        error = lpf.refused("ingest", name, option)
        assert (error["kind"], error["field"]) == ("ConfigError", option.partition("=")[0])
    both = lpf.json("ingest", text, book, "--sheet", "Sheet", code=2)["files"]
    assert ("error" in both[0], both[1]["added"]) == (True, 1)
    assert lpf.json("evidence", "list", "--entity", "K7")["evidence"] == []


def test_a_mistyped_new_entity_is_pointed_out(lpf, tmp_path: Path) -> None:
    lpf("facts", "set", "S90", "outcome", "clean")
    done = lpf("facts", "set", "S9O", "outcome", "clean")
    assert "did you mean S90?" in done.stderr
    assert lpf.json("facts", "set", "S91", "outcome", "clean")["notes"] == []
    file = tmp_path / "facts.csv"
    file.write_text("entity_id,predicate,value,timestamp\ns90,outcome,clean,2026-01-01\n")
    (note,) = lpf.json("facts", "add", file)["notes"]
    assert "s90" in note
    assert lpf.json("facts", "add", file)["notes"] == []
    evidence = tmp_path / "evidence.csv"
    evidence.write_text("entity_id,predicate,text\nS-90,outcome,Nothing was found.\n")
    assert any("did you mean" in one for one in lpf.json("ingest", evidence)["files"][0]["notes"])
