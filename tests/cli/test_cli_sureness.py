"""query and batch with --coverage and --max-risk, on a model that was trained here."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from labelled_workspaces import WordReader, lines, write_lines
from lpf import Predicate, Schema
from lpf.cli.exits import EXIT_NO_ANSWER
from lpf.cli.main import app
from lpf.training import TrainingConfig
from lpf.workspace import Workspace
from lpf.workspace.training_runs import TrainingPlan

LEVELS = ("low", "medium", "high")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Trained on 48 entities, in folds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
        made = tmp_path_factory.mktemp("sure") / "w"
        with Workspace.create(made, Schema((Predicate("level", LEVELS),))) as space:
            file = write_lines(made.parent / "labelled.jsonl", lines(48))
            plan = TrainingPlan(TrainingConfig(max_epochs=5, members=1), seeds=(1,))
            space.train(file, plan)
            space.ingest(file)
        yield made


def run(folder: Path, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, [*words, "--workspace", str(folder)])
    assert done.exit_code == code, done.output
    return done.stdout


def test_a_plain_question_says_how_far_it_may_be_relied_on(folder: Path) -> None:
    assert "held-out entities answered with about this confidence" in " ".join(
        run(folder, "query", "C0001").split()
    )


def test_a_set_and_a_decision_are_in_the_document(folder: Path) -> None:
    words = ("query", "C0001", "--coverage", "0.9", "--max-risk", "0.3", "--json")
    document = json.loads(run(folder, *words))
    assert document["prediction_set"]["coverage"] == 0.9
    assert document["top_value"] in document["prediction_set"]["values"]
    assert document["decision"]["answered"] is True
    assert document["track_record"]["entities"] == 48


def test_a_deferred_answer_ends_with_the_code_of_no_answer(folder: Path) -> None:
    shown = run(folder, "query", "C0001", "--max-risk", "0.001", code=EXIT_NO_ANSWER)
    assert "deferred" in shown.splitlines()[0]
    words = ("query", "C0001", "--max-risk", "0.001", "--json")
    document = json.loads(run(folder, *words, code=EXIT_NO_ANSWER))
    assert document["decision"]["reasons"] == ["risk_out_of_reach"]
    assert document["decision"]["smallest_risk"] > 0.001


def test_batches_have_the_set_and_the_deferral(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "answers.csv"
    words = ("--all", "--coverage", "0.9", "--max-risk", "0.001")
    run(folder, "batch", str(target), *words)
    with target.open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 48
    assert all(row["set"] and row["deferred"] for row in rows)


def test_a_record_shows_and_replays_its_decision(folder: Path) -> None:
    document = json.loads(run(folder, "query", "C0002", "--coverage", "0.8", "--json"))
    shown = run(folder, "ledger", "show", document["record_id"])
    assert "80 % set" in shown
    replayed = json.loads(run(folder, "ledger", "replay", document["record_id"], "--json"))
    assert replayed["agrees"] is True
    assert replayed["faults"] == []
