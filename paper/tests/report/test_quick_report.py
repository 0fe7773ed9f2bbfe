"""The quick experiment, run as a user runs it: every panel filled, every word readable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from figure_words import assert_readable, drawn
from matplotlib.figure import Figure
from page_outline import Outline

from lpf_paper.document import Experiment
from lpf_paper.exhibits import Table, Value
from lpf_paper.experiment import ExperimentRun
from lpf_paper.plan import quick_plan
from lpf_paper.report.experiment_report import write_experiment_report

__all__ = ["drawn"]  # the fixture


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    folder = tmp_path_factory.mktemp("experiment")
    return ExperimentRun(quick_plan(), folder, "lpf experiment paper --quick")()


def is_filled(table: Table) -> bool:
    cells = [cell for row in table.rows for cell in row.cells]
    return any(cell.value is not None if isinstance(cell, Value) else cell for cell in cells)


@pytest.mark.slow
def test_no_panel_is_empty(experiment: Experiment) -> None:
    assert len(experiment.studies) == 11
    for study in experiment.studies:
        assert study.findings, study.name
        assert study.tables, study.name
        assert all(is_filled(table) for table in study.tables), study.name


@pytest.mark.slow
def test_no_method_crashed(experiment: Experiment) -> None:
    """A crash would be a row with a note; in this run there must be none."""
    notes = {
        (study.name, table.name, row.name): row.note
        for study in experiment.studies
        for table in study.tables
        for row in table.rows
        if row.note is not None and "no answers" in row.note
    }
    assert not notes


@pytest.mark.slow
def test_words_can_be_read_and_files_are_there(
    experiment: Experiment, drawn: list[Figure], tmp_path: Path
) -> None:
    page = write_experiment_report(experiment, tmp_path)
    assert len(drawn) == sum(len(study.figures) for study in experiment.studies)
    for figure in drawn:
        assert_readable(figure)
    outline = Outline(page.read_text(encoding="utf-8"))
    assert outline.tags.count("table") >= sum(len(study.tables) for study in experiment.studies)
    assert Experiment.from_dict(json.loads((tmp_path / "experiment.json").read_text())) == (
        Experiment.from_dict(json.loads(json.dumps(experiment.to_dict())))
    )
