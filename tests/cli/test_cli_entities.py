"""entities, rank and batch --all: all entities at once. Evidence edited and listed in pages."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import openpyxl
import pytest

import workspaces
from lpf.ledger.statements import RECORDS
from lpf.storage.database import Database
from lpf.workspace import Workspace


def test_entities_are_listed_with_counts_and_last_answers(lpf) -> None:
    (first, second) = lpf.json("entities")["entities"]
    assert (first["entity_id"], second["entity_id"]) == ("C0001", "C0002")
    assert (first["items"], second["items"], first["answers"]) == ({"level": 5}, {"level": 3}, {})
    asked = [lpf.json("query", "C0001", "level") for _ in range(2)][-1]
    lpf("facts", "set", "C0003", "outcome", "clean")
    first, second, third = lpf.json("entities")["entities"]
    answer = first["answers"]["level"]
    assert (answer["record_id"], answer["value"]) == (asked["record_id"], asked["top_value"])
    assert answer["confidence"] == pytest.approx(asked["confidence"])
    assert second["answers"] == {}
    assert (third["items"], third["facts"]) == ({}, {"outcome": 1})
    shown = lpf("entities").stdout
    for part in ("C0001", asked["record_id"], "outcome"):
        assert part in shown


def test_entities_are_paged_and_filtered(lpf) -> None:
    page = lpf.json("entities", "--limit", 1)
    assert [one["entity_id"] for one in page["entities"]] == ["C0001"]
    page = lpf.json("entities", "--limit", 1, "--after", page["next_after"])
    assert [one["entity_id"] for one in page["entities"]] == ["C0002"]
    assert page["next_after"] is None
    for like in ("0002", "c0002", "C002"):
        found = lpf.json("entities", "--like", like)["entities"]
        assert "C0002" in [one["entity_id"] for one in found]
    assert lpf.json("entities", "--like", "100%_")["entities"] == []
    assert "No entities" in lpf("entities", "--like", "zzzzzz").stdout


@pytest.mark.parametrize("command", [("entities",), ("rank", "level")])
def test_a_limit_beyond_a_million_is_refused(lpf, command: tuple[str, ...]) -> None:
    for limit in (1_000_001, 2**63, 10**30):
        assert lpf(*command, "--limit", limit, code=2).stdout == ""


def test_batch_asks_about_every_entity(lpf, tmp_path: Path) -> None:
    lpf("facts", "set", "C0003", "outcome", "clean")
    out = tmp_path / "answers.csv"
    # Level and outcome are related: an entity with evidence about one may have an answer to both.
    counts = lpf.json("batch", "--all", out)
    assert counts["answered"] + counts["without_answer"] == 6
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["entity_id"], row["predicate"]) for row in rows] == [
        (entity, predicate)
        for entity in ("C0001", "C0002", "C0003")
        for predicate in ("level", "outcome")
    ]
    counts = lpf.json("batch", "--all", "--predicate", "level", out)
    assert counts["answered"] + counts["without_answer"] == 3
    assert "'nope' is not in the schema" in lpf.error("batch", "--all", "--predicate", "nope", out)
    assert "expected OUT" in lpf.error("batch", "--all", "in.csv", out)
    assert "expected IN and OUT" in lpf.error("batch", out)
    assert "--all" in lpf.error("batch", out, out, "--predicate", "level")


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
def test_answers_are_written_as_a_table(lpf, tmp_path: Path, suffix: str) -> None:
    questions = tmp_path / "questions.xlsx"
    book = openpyxl.Workbook()
    for row in (["Customer", "Predicate"], ["C0001", "level"], ["C0002", "level"]):
        book.active.append(row)
    book.save(questions)
    out = tmp_path / f"answers.{suffix}"
    assert lpf.json("batch", questions, out, "--map", "Customer=entity_id")["answered"] == 2
    again = tmp_path / "again.jsonl"
    assert lpf.json("batch", out, again)["answered"] == 2  # a table of answers has the questions
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_failed_batch_leaves_no_table(lpf, tmp_path: Path) -> None:
    questions, out = tmp_path / "q.jsonl", tmp_path / "answers.xlsx"
    questions.write_text('{"entity_id": "C0001", "predicate": "level"}\nnonsense\n')
    lpf.error("batch", questions, out)
    assert not out.exists()
    lpf("batch", questions, out, "--skip-bad")
    sheet = openpyxl.load_workbook(out).active
    assert [cell.value for cell in sheet[1]][-1] == "error"
    assert sheet.max_row == 3
    assert "JSONL, CSV, Excel" in lpf.error("batch", questions, tmp_path / "a.xls")


def test_entities_are_ranked_by_the_probability_of_a_value(lpf, tmp_path: Path) -> None:
    answers = {
        name: lpf.json("query", name, "level")["distribution"] for name in ("C0001", "C0002")
    }
    best = max(answers, key=lambda name: answers[name]["low"])
    out = tmp_path / "ranked.xlsx"
    ranked = lpf.json("rank", "level", out, "--value", "low")
    assert ranked["asked"] == 2
    assert ranked["ranked"][0]["entity_id"] == best
    shares = [one["probability"] for one in ranked["ranked"]]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(answers[best]["low"], abs=1e-6)
    assert len(lpf.json("ledger", "show", "--last", 9)["records"]) == 4  # recorded, as in a batch
    sheet = openpyxl.load_workbook(out).active
    assert [sheet["A2"].value, sheet["B2"].value] == [1, best]
    shown = lpf("rank", "level", "--limit", 1).stdout
    assert "2 entities asked and recorded" in shown
    assert lpf.refused("rank", "level", "--value", "huge")["field"] == "--value"


@pytest.mark.parametrize("as_json", [True, False])
def test_the_limit_is_for_the_list_and_not_for_the_file(lpf, tmp_path: Path, as_json: bool) -> None:
    out = tmp_path / "ranked.csv"
    if as_json:
        assert len(lpf.json("rank", "level", out, "--limit", 1)["ranked"]) == 1
    else:
        assert "the first 1 are listed" in lpf("rank", "level", out, "--limit", 1).stdout
    with out.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [row["rank"] for row in rows] == ["1", "2"]
    assert {row["entity_id"] for row in rows} == {"C0001", "C0002"}


def test_an_item_is_edited_in_versions(lpf) -> None:
    before = lpf.json("query", "C0001", "level")
    edited = lpf.json(
        "evidence",
        "edit",
        "C0001_E001",
        "--text",
        "All late.",
        "--label",
        "high",
        "--credibility",
        ".5",
    )
    assert (edited["version"], edited["text_content"]) == (2, "All late.")
    shown = lpf.json("evidence", "show", "C0001_E001")
    (earlier,) = shown["earlier_versions"]
    assert (earlier["version"], "Filings were complete" in earlier["text_content"]) == (1, True)
    assert earlier["superseded_at"]
    assert "Filings were complete" in lpf("evidence", "show", "C0001_E001").stdout
    listed = lpf.json("evidence", "list", "--entity", "C0001")["evidence"]
    assert [one["supports_value"] for one in listed if one["evidence_id"] == "C0001_E001"] == [
        "high"
    ]
    assert "high" in lpf("evidence", "list", "--entity", "C0001").stdout
    after = lpf.json("query", "C0001", "level")
    assert after["distribution"] != before["distribution"]
    assert lpf("ledger", "verify").exit_code == 0
    lpf("ledger", "replay", before["record_id"])
    assert "already has these values" in lpf.error(
        "evidence", "edit", "C0001_E001", "--label", "high"
    )
    assert "is not a value" in lpf.error("evidence", "edit", "C0001_E001", "--label", "huge")
    assert "nothing to change" in lpf.error("evidence", "edit", "C0001_E001")
    cleared = lpf.json("evidence", "edit", "C0001_E001", "--label", "", "--at", "2026-01-25")
    assert (cleared["supports_value"], cleared["version"]) == (None, 3)


def test_an_edited_item_is_found_by_its_new_text(lpf) -> None:
    lpf("evidence", "search", "inquiry")  # builds the index
    lpf("evidence", "edit", "C0001_E001", "--text", "The zebra escaped from the zoo.")
    (hit,) = lpf.json("evidence", "search", "a zebra in a zoo", "--limit", 1)["hits"]
    assert hit["evidence_id"] == "C0001_E001"


def test_evidence_is_listed_in_pages(lpf) -> None:
    seen: list[str] = []
    after: list[str] = []
    while True:
        page = lpf.json("evidence", "list", "--limit", 3, *after)
        seen += [one["evidence_id"] for one in page["evidence"]]
        if page["next_after"] is None:
            break
        after = ["--after", page["next_after"]]
    assert len(seen) == len(set(seen)) == 8


def test_many_entities_are_ranked_in_batches(lpf) -> None:
    with Workspace.open(lpf.folder) as workspace:
        for number in range(30):
            workspaces.add(workspace, workspaces.evidence(f"D{number:04d}", 1))
        ranking = workspace.rank("level", "low", limit=7)
    assert (ranking.asked, len(ranking.results)) == (32, 7)
    assert json.dumps([result.to_dict() for result in ranking.results])


def test_the_newest_answers_are_shown_without_reading_the_records(
    lpf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        for entity in ("C0001", "C0002"):
            lpf("query", entity, "level")
    lpf.json("entities")  # lists the records
    read_rows, read = Database.rows, []

    def counted(database: Database, statement: object, arguments: tuple = ()) -> list:
        read.extend([arguments] if statement is RECORDS else [])
        return read_rows(database, statement, arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "rows", counted)
    first, second = lpf.json("entities")["entities"]
    answers = [one["answers"]["level"]["record_id"] for one in (first, second)]
    assert answers == ["INF00000005", "INF00000006"]
    assert read == []
