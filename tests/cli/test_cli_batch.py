"""batch: a file of questions, a file of answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GOOD = [
    {"entity_id": "C0001", "predicate": "level"},
    {"entity_id": "C0002", "predicate": "level"},
    {"entity_id": "C0001", "predicate": "outcome"},
]
BAD = [GOOD[0], {"predicate": "level"}, {"entity_id": "C0002", "predicate": "colour"}, GOOD[1]]


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text(lines(*GOOD))
    return path


def test_answers_stand_in_the_order_of_the_questions(lpf, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    assert "3 answered" in lpf("batch", questions, out).stdout
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [{k: row[k] for k in ("entity_id", "predicate")} for row in rows] == GOOD
    alone = lpf.json("query", "C0002", "level")
    assert rows[1]["distribution"] == pytest.approx(alone["distribution"], abs=1e-6)
    assert rows[0]["audit_ptr"] == "INF00000001"


def test_from_standard_input_to_standard_output(lpf) -> None:
    done = lpf("batch", "-", "-", "--top-k", "1", stdin=lines(*GOOD))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(row["evidence"]) for row in rows] == [1, 1, 0]
    assert "3 answered" in done.stderr


def test_json_tells_what_was_done(lpf, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    told = lpf.json("batch", questions, out)
    assert told == {"answered": 3, "errors": 0, "file": str(out)}
    told = lpf.json("batch", questions, "-", code=2)
    assert "leave it out" in told["error"]["message"]


def test_one_bad_line_and_nothing_is_answered(lpf, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.jsonl", tmp_path / "answers.jsonl"
    bad.write_text(lines(*BAD) + "nonsense\n")
    told = lpf.error("batch", bad, out)
    for part in ("3 of 5 lines", "line 2: entity_id", "line 3:", "line 5: is not valid JSON"):
        assert part in told
    assert [path.name for path in tmp_path.iterdir() if "answers" in path.name] == []
    assert lpf.json("ledger", "show", "--last", 1)["records"] == []


def test_bad_lines_become_rows_where_asked_for(lpf, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.jsonl", tmp_path / "answers.jsonl"
    bad.write_text(lines(*BAD))
    assert "2 answered, 2 not" in lpf("batch", bad, out, "--skip-bad").stdout
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert ["error" in row for row in rows] == [False, True, True, False]
    assert rows[1]["error"] == {"line": 2, "message": "entity_id: is missing"}


def test_a_failure_leaves_the_old_answers(lpf, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    out.write_text("old")
    assert "applies in paper mode only" in lpf.error("batch", questions, out, "--alpha", "2")
    assert out.read_text() == "old"
    assert "its folder does not exist" in lpf.error("batch", questions, tmp_path / "no" / "where")
    assert "cannot be read" in lpf.error("batch", tmp_path / "missing.jsonl", out)
