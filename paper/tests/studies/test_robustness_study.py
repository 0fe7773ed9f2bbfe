from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_answers import Skill, keep_made

from lpf.evaluation.specs import Cell
from lpf_paper.exhibits import StudyResult, Value
from lpf_paper.perturbations import KINDS, Perturbation
from lpf_paper.plan import ExperimentPlan, full_plan, quick_plan
from lpf_paper.studies.domains import DomainsStudy
from lpf_paper.studies.robustness import RobustnessStudy, levels_of
from lpf_paper.studies.study import ResultReader

QUICK = quick_plan()


@pytest.mark.parametrize("plan", [quick_plan(), full_plan()])
def test_every_kind_is_asked_and_what_is_untouched_once(plan: ExperimentPlan) -> None:
    cells = RobustnessStudy().cells(plan)
    assert len(cells) == len(set(cells))
    eval_specs = {cell.eval_spec for cell in cells}
    spoilt = sum(min(plan.levels, len(kind.levels)) for kind in KINDS.values())
    assert len(eval_specs) == 1 + spoilt
    assert len(cells) == len(eval_specs) * len(plan.robustness_methods) * len(plan.study_seeds)


@pytest.mark.parametrize("plan", [quick_plan(), full_plan()])
def test_nothing_is_learned_that_domains_have_not(plan: ExperimentPlan) -> None:
    train_specs = {cell.train_spec for cell in RobustnessStudy().cells(plan)}
    assert len(train_specs) == len(plan.study_seeds)
    assert train_specs <= {cell.train_spec for cell in DomainsStudy("paper").cells(plan)}


def test_levels_are_spread_and_the_highest_is_there() -> None:
    assert levels_of(full_plan(), "missing") == (0, 0.1, 0.3, 0.5, 0.7, 0.9)
    assert levels_of(QUICK, "missing") == (0, 0.1, 0.5, 0.9)
    assert levels_of(QUICK, "noise") == (0, 0.1, 0.5, 0.7)
    assert levels_of(QUICK, "adversarial") == (0, 1)
    assert levels_of(replace(QUICK, levels=1), "flipped") == (0, 0.5)


def _kind(cell: Cell) -> str | None:
    change = cell.eval_spec.change
    return change.kind if isinstance(change, Perturbation) else None


def weak_when_flipped(cell: Cell) -> Skill:
    """The robust ensemble is best, but not where items speak for another value."""
    ours = cell.method == "lpf_robust"
    if _kind(cell) == "flipped":
        return Skill(signal=0.5 if ours else 1.5)
    if _kind(cell) == "adversarial":
        return Skill(signal=2.0 if ours else 1.0)
    return Skill(signal=3.0 if ours else 2.0)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    folder = tmp_path_factory.mktemp("robustness")
    study = RobustnessStudy()
    keep_made(folder, study.cells(QUICK), weak_when_flipped, entities=150)
    return study.result(QUICK, ResultReader(folder))


def test_every_kind_has_its_tables_and_lines(shown: StudyResult) -> None:
    tables = {table.name: table for table in shown.tables}
    figures = {figure.name: figure for figure in shown.figures}
    for kind in KINDS:
        for measure in ("nll", "accuracy"):
            table = tables[f"{kind}_{measure}"]
            assert len(table.rows) == len(QUICK.robustness_methods)
            assert len(table.columns) == len(levels_of(QUICK, kind))
            assert all(_number(cell) >= 0 for row in table.rows for cell in row.cells)
        lines = figures[f"{kind}_nll"].series
        assert len(lines) == len(QUICK.robustness_methods)
        assert all(line.x == levels_of(QUICK, kind) for line in lines)
    assert len(tables) == len(shown.tables) == 1 + 2 * len(KINDS)


def test_surer_than_right_is_drawn_where_it_changes(shown: StudyResult) -> None:
    drawn = {figure.name for figure in shown.figures if figure.name.endswith("_gap")}
    assert drawn == {"flipped_gap", "adversarial_gap"}


def test_what_is_lost_is_the_difference_to_what_is_untouched(shown: StudyResult) -> None:
    lost = {row.name: row.cells for row in shown.tables[0].rows}
    kinds = list(KINDS)
    nll = {table.name: table for table in shown.tables}["flipped_nll"]
    for row in nll.rows:
        cell = lost[row.name][kinds.index("flipped")]
        assert _number(cell) == pytest.approx(_number(row.cells[-1]) - _number(row.cells[0]))
        assert isinstance(cell, Value)
        assert cell.low is not None
        assert cell.low < _number(cell)


def test_findings_say_who_wins_and_who_loses(shown: StudyResult) -> None:
    flipped, wins, attacked, sure = (
        _sentence(shown, begin)
        for begin in (
            "Items that speak for another value",
            "The robust ensemble has the lowest",
            "Accuracy with one planted item",
            "The robust ensemble is most overconfident",
        )
    )
    assert "LPF-SPN, robust ensemble most" in flipped
    spoilt = sum(len(levels_of(QUICK, kind)) - 1 for kind in KINDS)
    assert f"at {spoilt - 3} of {spoilt} levels" in wins
    assert "beaten at 3: flipped at 10%" in wins
    assert "missing" not in wins
    assert attacked.index("robust ensemble") < attacked.index("Classifier ensemble")
    assert "under flipped at 50%" in sure


def test_where_nobody_else_is_better_it_says_so(tmp_path: Path) -> None:
    study = RobustnessStudy()
    keep_made(
        tmp_path,
        study.cells(QUICK),
        lambda cell: Skill(signal=3.0 if cell.method == "lpf_robust" else 1.0),
    )
    result = study.result(QUICK, ResultReader(tmp_path))
    assert _sentence(result, "The robust ensemble has the lowest").endswith(
        "at none is another method better by more than chance."
    )


def test_a_crash_is_a_note_and_not_the_end(tmp_path: Path) -> None:
    study = RobustnessStudy()
    keep_made(
        tmp_path,
        study.cells(QUICK),
        lambda cell: Skill(
            error="EvidenceError: broke"
            if cell.method == "lpf_learned" and _kind(cell) == "noise"
            else None
        ),
    )
    result = study.result(QUICK, ResultReader(tmp_path))
    table = next(table for table in result.tables if table.name == "noise_nll")
    assert table.rows[-1].name == "lpf_learned"
    assert "EvidenceError: broke" in (table.rows[-1].note or "")
    assert table.rows[-1].cells[1:] == (None, None, None)
    figure = next(figure for figure in result.figures if figure.name == "noise_nll")
    line = next(line for line in figure.series if line.name.startswith("LPF-Learned"))
    assert line.y[0] is not None
    assert line.y[1:] == (None, None, None)


def _sentence(result: StudyResult, begin: str) -> str:
    found = [sentence for sentence in result.findings if sentence.startswith(begin)]
    assert len(found) == 1
    return found[0]


def _number(cell: object) -> float:
    assert isinstance(cell, Value)
    assert cell.value is not None
    return cell.value
