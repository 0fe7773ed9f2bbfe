"""batch: a file of questions, a file of answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import workspaces
from builders import model_config
from lpf.cli import batch as batch_answers
from lpf.cli.main import app
from lpf.errors import EvidenceError, StoreFullError
from lpf.workspace import Workspace

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


def test_answers_are_in_the_order_of_the_questions(lpf, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    assert "2 answered, 1 without an answer" in lpf("batch", questions, out).stdout
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [{k: row[k] for k in ("entity_id", "predicate")} for row in rows] == GOOD
    alone = lpf.json("query", "C0002", "level")
    assert rows[1]["distribution"] == pytest.approx(alone["distribution"], abs=1e-6)
    assert rows[0]["audit_ptr"] == "INF00000001"


def test_from_standard_input_to_standard_output(lpf) -> None:
    done = lpf("batch", "-", "-", "--top-k", "1", stdin=lines(*GOOD))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(row["evidence"]) for row in rows] == [1, 1, 0]
    assert "2 answered, 1 without an answer" in done.stderr


def test_json_reports_the_counts(lpf, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    output = lpf.json("batch", questions, out)
    assert output == {"answered": 2, "without_answer": 1, "errors": 0, "file": str(out)}
    output = lpf.json("batch", questions, "-", code=2)
    assert output["error"]["field"] == "--json"


def test_an_unknown_entity_is_a_row_without_an_answer(lpf, tmp_path: Path) -> None:
    asked, out = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    asked.write_text(lines({"entity_id": "C00O2", "predicate": "level"}, GOOD[0]))
    done = lpf("batch", asked, out)
    unknown, known = (json.loads(line) for line in out.read_text().splitlines())
    assert (unknown["source"], unknown["top_value"], unknown["confidence"]) == ("none", None, None)
    assert unknown["similar"] == ["C0002", "C0001"]
    assert known["similar"] is None
    assert known["top_value"] is not None
    assert "did you mean C0002 or C0001?" in done.stderr


def test_nothing_is_answered_if_a_line_is_bad(lpf, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.jsonl", tmp_path / "answers.jsonl"
    bad.write_text(lines(*BAD) + "nonsense\n")
    output = lpf.error("batch", bad, out)
    for part in ("3 of 5 lines", "line 2: entity_id", "line 3:", "line 5: is not valid JSON"):
        assert part in output
    assert [path.name for path in tmp_path.iterdir() if "answers" in path.name] == []
    assert lpf.json("ledger", "show", "--last", 1)["records"] == []


def test_bad_lines_become_error_rows_with_skip_bad(lpf, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.jsonl", tmp_path / "answers.jsonl"
    bad.write_text(lines(*BAD))
    assert "2 answered, 2 with an error" in lpf("batch", bad, out, "--skip-bad").stdout
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


@pytest.fixture
def hopeless(lpf, tmp_path: Path) -> Path:
    """Four questions. The third has evidence, and the model that is to read it no such head."""
    with Workspace.open(lpf.folder) as workspace:
        workspaces.add(workspace, workspaces.evidence("C0003", 1, predicate="outcome"))
        workspaces.give_model(workspace, predicates=model_config().predicates[:1])
    path = tmp_path / "questions.jsonl"
    path.write_text(lines(*GOOD[:2], {"entity_id": "C0003", "predicate": "outcome"}, GOOD[0]))
    return path


@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_a_failed_question_reports_progress(
    lpf, hopeless: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(batch_answers, "CHUNK", chunk)
    out = tmp_path / "answers.jsonl"
    output = lpf("batch", hopeless, out, code=2).stderr
    for part in ("line 3 ended the batch", "outcome", "2 answered before it", "their records stay"):
        assert part in output
    assert f"{out} was not written" in output
    assert "Nothing was answered" not in output
    assert not out.exists()
    assert len(lpf.json("ledger", "show", "--last", 9)["records"]) == 2


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
def test_a_failed_question_leaves_no_table(
    lpf, hopeless: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(batch_answers, "CHUNK", 1)
    out = tmp_path / f"answers.{suffix}"
    assert "line 3 ended the batch" in lpf("batch", hopeless, out, code=2).stderr
    assert [path.name for path in tmp_path.iterdir() if "answers" in path.name] == []


@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_a_failed_question_becomes_an_error_row_with_skip_bad(
    lpf, hopeless: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(batch_answers, "CHUNK", chunk)
    out = tmp_path / "answers.jsonl"
    output = lpf.json("batch", hopeless, out, "--skip-bad")
    assert output == {"answered": 3, "without_answer": 0, "errors": 1, "file": str(out)}
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row.get("entity_id") for row in rows] == ["C0001", "C0002", None, "C0001"]
    assert rows[2]["error"]["line"] == 3
    assert "outcome" in rows[2]["error"]["message"]
    assert len(lpf.json("ledger", "show", "--last", 9)["records"]) == 3


def test_answers_that_are_recorded_are_printed(lpf, hopeless: Path) -> None:
    done = lpf("batch", hopeless, "-", code=2)
    assert len(done.stdout.splitlines()) == 2
    assert "their answers were printed" in done.stderr


@pytest.mark.parametrize("together", [StoreFullError, EvidenceError])
def test_a_failing_store_ends_the_batch_even_with_skip_bad(
    lpf, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: type[Exception]
) -> None:
    """It would fail with every other line too, whether it fails at once or when asked singly."""

    def full(_: Workspace, asked: list[object], *__: object) -> None:
        raise together("not these.") if len(asked) > 1 else StoreFullError("no space is left.")

    monkeypatch.setattr(Workspace, "query_many", full)
    output = lpf("batch", questions, tmp_path / "answers.jsonl", "--skip-bad", code=2).stderr
    assert "line 1 ended the batch" in output
    assert "0 answered before it" in output


def test_nothing_is_printed_before_it_is_recorded(
    lpf, questions: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that wait for their records appear once the workspace is closed."""
    printed_by_then: list[str] = []
    close = Workspace.close

    def watched(workspace: Workspace) -> None:
        printed_by_then.append(capsys.readouterr().out)
        close(workspace)

    monkeypatch.setattr(Workspace, "close", watched)
    app(lpf.line("batch", questions, "-", "--async-audit"), standalone_mode=False)
    assert printed_by_then == [""]
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    "words", [("--sheet", "nope"), ("--map", "a=entity_id"), ("--encoding", "utf-16")]
)
def test_options_of_a_file_are_refused_without_one(lpf, tmp_path: Path, words: tuple) -> None:
    out = tmp_path / "out.csv"
    error = lpf.refused("batch", "--all", out, *words)
    assert (error["kind"], error["field"]) == ("ConfigError", words[0])
    assert not out.exists()


def test_a_sheet_of_a_text_file_is_refused(lpf, questions: Path, tmp_path: Path) -> None:
    error = lpf.refused("batch", questions, tmp_path / "out.jsonl", "--sheet", "a")
    assert (error["kind"], error["field"]) == ("ConfigError", "--sheet")
