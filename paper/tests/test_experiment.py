"""The paper's experimental part from one call, on answers that are there already."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from made_answers import keep_made
from typer.testing import CliRunner

from lpf.cli.main import app
from lpf.errors import ConfigError
from lpf.evaluation.result_store import ResultStore
from lpf_paper.experiment import ExperimentRun, command_line
from lpf_paper.plan import full_plan, quick_plan
from lpf_paper.studies.domains import DomainsStudy
from lpf_paper.studies.study import ResultReader

PLAN, STUDY = quick_plan(), DomainsStudy("paper")
COMMAND = "lpf experiment paper --quick"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with plausible answers to all cells of one study."""
    keep_made(tmp_path / "kept", STUDY.cells(PLAN))
    return tmp_path / "kept"


def run(*words: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["experiment", "paper", *map(str, words)])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def test_stored_results_are_reported_and_nothing_is_run(kept: Path) -> None:
    before = sorted(kept.rglob("*"))
    progress: list[tuple[int, int, str]] = []
    found = ExperimentRun(
        PLAN,
        kept,
        COMMAND,
        workers=1,
        only=(STUDY.name,),
        progress=lambda *call: progress.append(call),
    )()
    cells = len(set(STUDY.cells(PLAN)))
    assert progress == [(cells, cells, "")]
    assert sorted(kept.rglob("*")) == before
    assert [study.name for study in found.studies] == [STUDY.name]
    assert found.summary == found.studies[0].findings[:1]
    assert found.run.command == COMMAND
    assert found.run.packages["numpy"] != "not installed"
    assert any("synthetic" in warning for warning in found.warnings)
    json.dumps(found.to_dict(), allow_nan=False)


def test_study_names_are_unique() -> None:
    for plan in (quick_plan(), full_plan()):
        studies = ExperimentRun(plan, Path(), COMMAND).studies()
        names = [study.name for study in studies]
        assert len(set(names)) == len(names)
        assert STUDY.name in names


def test_only_named_studies_are_run_in_reading_order() -> None:
    every = [study.name for study in ExperimentRun(PLAN, Path(), COMMAND).studies()]
    chosen = ExperimentRun(PLAN, Path(), COMMAND, only=(every[1], every[0])).studies()
    assert [study.name for study in chosen] == every[:2]


def test_an_unknown_study_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\['astrology'\].*Nothing was run"):
        ExperimentRun(PLAN, tmp_path, COMMAND, only=("astrology",))()
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_omits_the_folder_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/somewhere/bin/lpf", "experiment", "paper"])
    assert command_line() == "lpf experiment paper"


# lpf experiment paper


def test_the_command_writes_the_report(kept: Path, tmp_path: Path) -> None:
    words = ("--quick", "--study", STUDY.name, "--keep", kept, "--workers", 1)
    shown = run(*words, "--report", tmp_path / "report").stdout
    page = next((tmp_path / "report").glob("*.html"))
    assert f"Report: {page}" in shown.replace("\n", "")
    assert STUDY.result(PLAN, ResultReader(kept)).findings[0] in shown
    document = json.loads(run(*words, "--report", tmp_path / "again", "--json").stdout)
    assert [study["name"] for study in document["studies"]] == [STUDY.name]
    assert next((tmp_path / "again").glob("*.html")).is_file()


def test_list_shows_how_much_is_missing_and_runs_nothing(kept: Path, tmp_path: Path) -> None:
    cells = list(dict.fromkeys(STUDY.cells(PLAN)))
    ResultStore(kept).delete(cells[0])
    words = ("--quick", "--keep", kept, "--list", "--report", tmp_path / "report")
    rows = json.loads(run(*words, "--json").stdout)["studies"]
    (row,) = (row for row in rows if row["study"] == STUDY.name)
    assert row == {"study": STUDY.name, "cells": len(cells), "missing": 1}
    shown = run(*words).stdout
    assert all(row["study"] in shown for row in rows)
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert not (tmp_path / "report").exists()


def test_the_command_refuses_an_unknown_study(tmp_path: Path) -> None:
    words = ("--quick", "--study", "astrology", "--keep", tmp_path / "kept")
    told = run(*words, code=2).stderr
    assert "['astrology']" in told.replace("\n", " ")
    document = json.loads(run(*words, "--json", code=2).stdout)
    assert "Nothing was run" in document["error"]["message"]
