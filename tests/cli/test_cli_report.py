"""report: a file of questions, a page about the answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

QUESTIONS = ("C0001,level", "C0002,level", "nobody,level")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.csv"
    path.write_text("\n".join(["entity_id,predicate", *QUESTIONS]) + "\n", encoding="utf-8")
    return path


def test_a_page_about_the_questions_of_a_file(lpf, questions: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = lpf("report", questions, "--html", page, "--title", "My levels")
    assert "2 answered, 1 without an answer" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert "<h1>My levels</h1>" in text
    assert text.count('<svg class="waterfall"') == 2
    assert len(lpf.json("ledger", "show", "--last", 10)["records"]) == 3


def test_a_page_about_all_entities(lpf, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    counts = lpf.json("report", "--all", "--predicate", "level", "--html", page)
    assert counts == {"answered": 2, "without_answer": 0, "errors": 0, "file": str(page)}
    assert page.exists()


def test_bad_lines_are_refused_or_left_out(lpf, tmp_path: Path) -> None:
    bad, page = tmp_path / "bad.jsonl", tmp_path / "report.html"
    rows = [{"entity_id": "C0001", "predicate": "level"}, {"predicate": "level"}]
    bad.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert "1 of 2 lines" in lpf.error("report", bad, "--html", page)
    assert not page.exists()
    assert lpf.json("report", bad, "--html", page, "--skip-bad")["errors"] == 1


def test_wrong_calls_answer_nothing(lpf, questions: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for words in (
        ("report", "--html", page),
        ("report", questions, "--all", "--html", page),
        ("report", questions, "--predicate", "level", "--html", page),
        ("report", questions, "--html", tmp_path / "no" / "report.html"),
        ("report", "--all", "--sheet", "a", "--html", page),
    ):
        lpf.refused(*words)
    assert not page.exists()
    assert lpf.json("ledger", "show", "--last", 1)["records"] == []
