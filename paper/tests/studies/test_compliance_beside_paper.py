"""What the paper prints of compliance beyond its main table: seeds summed up, confusions, and a
method that gives everybody the same answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import stdev

import numpy as np
import pytest
from answered_runs import a_crash, a_run
from study_checks import line, value

from lpf.evaluation.predictions import Predictions
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.specs import EvalSpec
from lpf_paper.exhibits import Row, Table, Value
from lpf_paper.plan import full_plan
from lpf_paper.printed import printed_table
from lpf_paper.studies.compliance_confusions import confusion_table
from lpf_paper.studies.compliance_runs import main_runs
from lpf_paper.studies.compliance_seeds import seed_stats_table
from lpf_paper.studies.compliance_tables import is_collapsed, with_collapse_note
from lpf_paper.studies.study import ResultReader, Runs

BROKEN = "edl_individual_broken"
PLAN = replace(
    full_plan(),
    main_seeds=(1, 2, 3),
    main_repetitions=(1, 2, 3),
    methods=("lpf_robust", "lpf_paper_best", "edl_aggregated", BROKEN),
)
LABELS = [0, 0, 1, 1, 1, 2, 2, 2, 2, 2]


def giving(answers: list[int], sure: float = 0.8, **changes: object) -> Predictions:
    rows = np.where(np.eye(3)[answers] == 1.0, sure, (1.0 - sure) / 2)
    return a_run(rows, LABELS, **changes)


RIGHT, ONE_WRONG = giving(LABELS), giving([1, *LABELS[1:]])
TWO_WRONG = giving([1, 2, *LABELS[2:]])


def kept(folder: Path, answers: Mapping[str, list[Predictions]]) -> tuple[Runs, ResultReader]:
    """Runs of these methods, each with its answers; all others answer rightly."""
    runs = main_runs(PLAN, EvalSpec())
    for method, cells in runs.items():
        found = answers.get(method, [RIGHT] * len(cells))
        for cell, answered in zip(cells, found, strict=True):
            ResultStore(folder).save(cell, answered)
    return runs, ResultReader(folder)


def test_seeds_are_summed_up_as_by_hand(tmp_path: Path) -> None:
    runs, results = kept(tmp_path, {"lpf_paper_best": [ONE_WRONG, RIGHT, TWO_WRONG]})
    stats = seed_stats_table(runs, results)
    found = {column.name: value(stats, "accuracy", column.name).value for column in stats.columns}
    sd = stdev([0.9, 1.0, 0.8])
    by_hand = {"mean": 0.9, "sd": sd, "best": 1.0, "worst": 0.8, "half_width": 1.96 * sd / sqrt(3)}
    assert found == pytest.approx(by_hand)
    assert "3 seeds of the search" in stats.caption


def test_the_best_seed_is_the_lowest_where_low_is_good(tmp_path: Path) -> None:
    runs, results = kept(tmp_path, {"lpf_paper_best": [ONE_WRONG, RIGHT, TWO_WRONG]})
    stats = seed_stats_table(runs, results)
    assert value(stats, "nll", "best").value == pytest.approx(-np.log(0.8))
    worst = 0.8 * -np.log(0.8) + 0.2 * -np.log(0.1)
    assert value(stats, "nll", "worst").value == pytest.approx(worst)


def test_the_papers_statistics_stand_beside_with_their_doubts(tmp_path: Path) -> None:
    stats = seed_stats_table(*kept(tmp_path, {}))
    brier = value(stats, "brier_over_k", "mean")
    assert brier.paper == 0.003
    assert "1,800 test cases" in (brier.doubt or "")
    for measure, mean in (("accuracy", 0.997), ("ece", 0.01), ("nll", 0.023), ("macro_f1", 0.996)):
        assert value(stats, measure, "mean").paper == mean
    assert value(stats, "ece", "half_width").paper == 0.002
    assert value(stats, "ece", "worst").paper is None
    assert value(stats, "raw_ece", "mean").paper is None
    printed = {"brier" if row.name == "brier_over_k" else row.name for row in stats.rows}
    assert set(printed_table("seed_stats").rows) < printed


def test_crashed_seeds_are_left_out_and_noted(tmp_path: Path) -> None:
    crash = a_crash(LABELS)
    runs, results = kept(tmp_path / "some", {"lpf_paper_best": [crash, RIGHT, ONE_WRONG]})
    stats = seed_stats_table(runs, results)
    assert value(stats, "accuracy", "worst").value == pytest.approx(0.9)
    assert "1 of 3 runs have no answers: TrainingError: it broke." in stats.caption
    runs, results = kept(tmp_path / "all", {"lpf_paper_best": [crash] * 3})
    alone = seed_stats_table(runs, results)
    assert (value(alone, "nll", "mean").value, value(alone, "nll", "mean").paper) == (None, 0.023)
    assert line(alone, "raw_nll").cells == (None,) * 5


def test_a_loss_that_is_infinite_is_no_number(tmp_path: Path) -> None:
    ruled_out = giving([1, *LABELS[1:]], sure=1.0)
    stats = seed_stats_table(*kept(tmp_path, {"lpf_paper_best": [ruled_out, RIGHT, RIGHT]}))
    assert value(stats, "nll", "mean").value is None
    assert value(stats, "nll", "best").value == pytest.approx(-np.log(0.8))
    assert "nll is infinite in 1 of 3 runs" in stats.caption


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    runs, results = kept(tmp_path, {})
    first = {method: cells[:1] for method, cells in runs.items()}
    stats = seed_stats_table(first, results)
    assert value(stats, "accuracy", "sd").value is None
    assert value(stats, "accuracy", "best").value == 1.0
    assert line(stats, "raw_ece").cells[1] is None


def test_confusions_are_means_over_runs_beside_the_papers(tmp_path: Path) -> None:
    runs, results = kept(tmp_path, {"lpf_paper_best": [ONE_WRONG, RIGHT, TWO_WRONG]})
    shown = confusion_table(runs, results)
    mean = value(shown, "lpf_paper_best_low", "low")
    assert (mean.value, mean.sd, mean.paper) == (pytest.approx(1.0), pytest.approx(1.0), 26)
    assert "The F1 scores of the ablations" in (mean.doubt or "")
    assert value(shown, "lpf_paper_best_low", "medium").value == pytest.approx(2 / 3)
    assert value(shown, "lpf_paper_best_medium", "high").paper == 2
    assert value(shown, "lpf_paper_best_high", "high").value == 5.0
    assert value(shown, "edl_aggregated_medium", "low").paper == 74
    assert value(shown, "lpf_robust_high", "high") == Value(5.0)


def test_every_matrix_of_the_paper_is_there_run_or_not(tmp_path: Path) -> None:
    shown = confusion_table(*kept(tmp_path, {}))
    methods = list(dict.fromkeys(row.name.rsplit("_", 1)[0] for row in shown.rows))
    assert methods == [
        "lpf_robust",
        "lpf_paper_best",
        "lpf_learned_published",
        "vae_only",
        "transformer",
        "edl_aggregated",
    ]
    assert len(shown.rows) == 3 * len(methods)
    assert value(shown, "transformer_low", "high") == replace(
        value(shown, "transformer_low", "high"), value=None, paper=2
    )
    assert line(shown, "transformer_low").note == "not run here"
    assert line(shown, "lpf_paper_best_low").note is None


def test_values_in_another_order_are_put_in_the_papers(tmp_path: Path) -> None:
    turned = giving([0, *LABELS[1:]], values=("high", "medium", "low"))
    shown = confusion_table(*kept(tmp_path, {"lpf_robust": [turned]}))
    assert value(shown, "lpf_robust_low", "low").value == 5.0
    assert value(shown, "lpf_robust_high", "high").value == 2.0


def test_a_crash_leaves_the_papers_matrix(tmp_path: Path) -> None:
    crashed = [a_crash(LABELS)] * 3
    shown = confusion_table(*kept(tmp_path, {"lpf_paper_best": crashed}))
    cell = value(shown, "lpf_paper_best_low", "low")
    assert (cell.value, cell.paper) == (None, 26)
    assert "3 of 3 runs have no answers" in (line(shown, "lpf_paper_best_low").note or "")


def constant(runs: int, unlike: int = 0) -> list[Predictions]:
    return [giving([0] * len(LABELS), sure=0.34)] * (runs - unlike) + [RIGHT] * unlike


def table_of(*notes: str | None) -> Table:
    rows = (Row("vae_only", "Other", ()), *(Row(BROKEN, "Broken", (), note=one) for one in notes))
    return Table("any", "Any", "", (), rows)


@pytest.mark.parametrize(("unlike", "told"), [(0, "in 3 of 3 runs"), (1, "in 2 of 3 runs")])
def test_collapses_are_counted(tmp_path: Path, unlike: int, told: str) -> None:
    runs, results = kept(tmp_path, {BROKEN: constant(3, unlike)})
    shown = with_collapse_note(table_of(None, "slow"), runs, results)
    assert shown.rows[0].note is None
    assert (shown.rows[1].note or "").startswith(told)
    assert (shown.rows[2].note or "").startswith(f"slow; {told}")


def test_of_no_answers_nothing_is_counted(tmp_path: Path) -> None:
    runs, results = kept(tmp_path, {BROKEN: [a_crash(LABELS)] * 3})
    assert with_collapse_note(table_of("broke"), runs, results) == table_of("broke")
    without = {method: cells for method, cells in runs.items() if method != BROKEN}
    assert with_collapse_note(table_of("broke"), without, results) == table_of("broke")


@pytest.mark.parametrize(("others", "collapsed"), [(0, True), (2, True), (3, False)])
def test_nearly_all_means_99_of_100(others: int, collapsed: bool) -> None:
    answers = np.array([1] * (200 - others) + [2] * others)
    assert is_collapsed(a_run(np.eye(3)[answers], [0] * 200)) is collapsed
