from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from figure_words import assert_readable, drawn
from made_answers import keep_made
from matplotlib.figure import Figure as DrawnFigure
from study_checks import assert_can_be_shown, line, table
from typer.testing import CliRunner

from lpf.cli.main import app
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.experiment import ExperimentRun
from lpf_paper.plan import full_plan, quick_plan
from lpf_paper.studies.domains import DomainsStudy
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.theorems import theorems_study
from lpf_paper.studies.theorems.statement import CheckedStatement
from lpf_paper.studies.theorems.theorems_study import (
    NAME,
    TheoremsStudy,
    result_path,
    study_result,
)
from lpf_paper.studies.theorems.trained import TrainedNetworks

__all__ = ["drawn"]  # the fixture

PLAN = quick_plan()
NAMES = [*(f"T{number}" for number in range(1, 8)), *(f"P{number}" for number in range(1, 6))]


def made_statement(name: str, verdict: Any, corrected: str = "") -> CheckedStatement:
    shown = Table(f"of_{name}", name, "", (Column("x", "x"),), (Row("a", "a", (Value(1.0),)),))
    figure = Figure(f"of_{name}", name, "", "lines", "x", "y", (Series("a", (1.0,), (2.0,)),))
    return CheckedStatement(
        name,
        f"{name}, a bound",
        "As stated.",
        corrected,
        "Seen.",
        "Often.",
        verdict,
        (shown,),
        (figure,),
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[TrainedNetworks]:
    """Statements that are not computed; every call is noted."""
    calls: list[TrainedNetworks] = []

    def checked(networks: TrainedNetworks) -> list[CheckedStatement]:
        calls.append(networks)
        return [
            made_statement("T1", "holds"),
            made_statement("T2", "holds with this correction", "Less."),
            made_statement("P1", "does not hold"),
        ]

    monkeypatch.setattr(theorems_study, "checked_statements", checked)
    return calls


def test_its_networks_are_those_of_other_studies() -> None:
    full = full_plan()
    shared = {cell.train_spec for cell in DomainsStudy("paper").cells(full)}
    own = {cell.train_spec for cell in TheoremsStudy().cells(full)}
    assert len(own & shared) == 1
    assert {spec.entities for spec in own - shared} == {90, 180, 360}


def test_what_was_computed_is_stored(tmp_path: Path, made: list[TrainedNetworks]) -> None:
    first = TheoremsStudy().result(PLAN, ResultReader(tmp_path))
    assert TheoremsStudy().result(PLAN, ResultReader(tmp_path)) == first
    assert len(made) == 1
    TheoremsStudy().result(full_plan(), ResultReader(tmp_path))
    assert len(made) == 2
    assert result_path(PLAN, tmp_path) != result_path(full_plan(), tmp_path)


def test_every_statement_has_a_row_and_a_sentence(
    tmp_path: Path, made: list[TrainedNetworks]
) -> None:
    shown = TheoremsStudy().result(PLAN, ResultReader(tmp_path))
    assert shown.findings == (
        "Of the paper's 3 theorems and propositions, 1 holds (T1); 1 holds with a correction (T2); "
        "1 does not hold (P1).",
        "T1, a bound: holds. Seen.",
        "T2, a bound: holds with this correction. Seen. Correction: Less.",
        "P1, a bound: does not hold. Seen.",
    )
    verdicts = table(shown, "theorems_verdicts")
    assert line(verdicts, "T2").cells == (
        "holds with this correction",
        "As stated.",
        "Less.",
        "Seen. Often.",
    )
    assert_can_be_shown(shown)


def test_no_verdict_is_left_out_of_the_summary() -> None:
    found = study_result([made_statement(name, "does not hold") for name in NAMES])
    assert found.findings[0] == (
        "Of the paper's 12 theorems and propositions, 0 hold (none); 0 hold with a correction "
        f"(none); 12 do not hold ({', '.join(NAMES)})."
    )


def test_the_command_is_the_study(tmp_path: Path, made: list[TrainedNetworks]) -> None:
    kept = tmp_path / "kept"
    keep_made(kept, TheoremsStudy().cells(PLAN))
    words = ["experiment", NAME, "--quick", "--keep", str(kept), "--workers", "1"]
    done = CliRunner().invoke(app, [*words, "--report", str(tmp_path / "report")])
    assert done.exit_code == 0, (done.output, done.exception)
    for sentence in TheoremsStudy().result(PLAN, ResultReader(kept)).findings:
        assert sentence in done.stdout
    assert (tmp_path / "report" / "index.html").is_file()
    words += ["--report", str(tmp_path / "again"), "--json"]
    document = json.loads(CliRunner().invoke(app, words).stdout)
    assert [study["name"] for study in document["studies"]] == [NAME]
    same = ["experiment", "paper", "--study", *words[1:]]
    assert json.loads(CliRunner().invoke(app, same).stdout)["studies"] == document["studies"]


@pytest.mark.slow
def test_the_quick_study_finds_what_holds(tmp_path: Path, drawn: list[DrawnFigure]) -> None:
    experiment = ExperimentRun(PLAN, tmp_path, "lpf experiment theorems --quick", only=(NAME,))()
    (shown,) = experiment.studies
    assert_can_be_shown(shown)
    assert len(drawn) == len(shown.figures) == 12
    for figure in drawn:
        assert_readable(figure)
    verdicts = table(shown, "theorems_verdicts")
    assert [row.name for row in verdicts.rows] == NAMES
    assert {row.name: row.cells[0] for row in verdicts.rows} == {
        **dict.fromkeys(("P1", "P5"), "holds"),
        **dict.fromkeys(("T1", "T2", "T3", "T5", "T7", "P2"), "holds with this correction"),
        **dict.fromkeys(("T4", "T6", "P3", "P4"), "does not hold"),
    }
    greek = [letter for row in verdicts.rows for cell in row.cells for letter in str(cell)]
    assert not [letter for letter in greek if "α" <= letter <= "ω"]
