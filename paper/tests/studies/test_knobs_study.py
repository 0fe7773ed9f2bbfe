from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_answers import Skill, keep_made

from lpf.evaluation.specs import Cell
from lpf_paper.exhibits import StudyResult, Value
from lpf_paper.plan import ExperimentPlan, full_plan, quick_plan
from lpf_paper.studies.compliance_runs import main_train_spec
from lpf_paper.studies.knobs import PaperKnobsStudy
from lpf_paper.studies.knobs_tables import (
    KNOBS,
    PAPER,
    members,
    paper_cell,
    paper_runs,
    printed_at,
    robust_default,
)
from lpf_paper.studies.study import ResultReader

QUICK = quick_plan()


@pytest.mark.parametrize("plan", [quick_plan(), full_plan()], ids=["quick", "full"])
def test_cells_use_the_main_training_data_and_are_unique(plan: ExperimentPlan) -> None:
    cells = PaperKnobsStudy().cells(plan)
    assert len({cell.key for cell in cells}) == len(cells)
    assert {cell.train_spec for cell in cells} == {main_train_spec(plan)}
    # 23 values of four knobs, three of which share their middle; robust mode without α, twice
    # over the number of samples, and as it is.
    assert len(cells) == len(members(plan)) * ((23 - 2) + (2 * 6 + 6 + 5) + 1)


def test_networks_are_spread_over_the_search() -> None:
    assert members(full_plan()) == (0, 4, 7, 10, 14)
    assert members(QUICK) == (0, 2, 4)
    assert members(replace(QUICK, main_seeds=(7,))) == (0,)


def test_a_knob_at_its_default_is_left_alone() -> None:
    middle = paper_cell(QUICK, 0, {"n_samples": 16})
    assert middle == paper_cell(QUICK, 0, {"alpha": 2.0})
    assert middle.settings == (("member", 0),)
    turned = paper_cell(QUICK, 2, {"temperature": 0.8, "n_samples": 4, "top_k": 3})
    assert turned.settings == (("member", 2), ("n_samples", 4), ("temperature", 0.8))
    assert turned.eval_spec.top_k == 3
    assert turned.eval_spec.data is not None
    assert turned.eval_spec.data.changes == ("items=20",)


def test_printed_numbers_stand_beside_their_values() -> None:
    found = printed_at(KNOBS["alpha"], 5.0, "ece")
    assert found is not None
    assert found.value == 0.611
    appendix = printed_at(KNOBS["n_samples"], 4, "brier_over_k")
    assert appendix is not None
    assert appendix.value == 0.0243
    assert printed_at(KNOBS["temperature"], 2.0, "nll") is None


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """Paper mode is right as often at any M, and badly calibrated but at α = 0.1."""

    def skill(cell: Cell) -> Skill:
        if cell.method != PAPER:
            return Skill(3.0)
        return Skill(2.0, 1.0 if ("alpha", 0.1) in cell.settings else 0.2)

    return _result(tmp_path_factory.mktemp("knobs"), skill)


def test_every_knob_has_its_table_and_figures(shown: StudyResult) -> None:
    assert [table.name for table in shown.tables] == [
        *(f"ablation_{name}" for name in KNOBS),
        "robust_n_samples",
        "robust_temperature",
        "robust_top_k",
    ]
    for table, knob in zip(shown.tables, KNOBS.values(), strict=False):
        assert len(table.rows) == len(knob.values)
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
        assert all(cell is not None for row in table.rows for cell in row.cells)
    assert len(shown.figures) == 3 * len(KNOBS)
    assert all(len(series.x) == len(series.y) > 0 for one in shown.figures for series in one.series)
    assert {figure.name for figure in shown.figures if figure.log_x} == {
        "n_samples_accuracy",
        "n_samples_ece",
        "n_samples_nll",
    }
    assert StudyResult.from_dict(shown.to_dict()) == shown


def test_tables_judge_answers_as_they_come_and_have_the_paper_beside(shown: StudyResult) -> None:
    table = next(one for one in shown.tables if one.name == "ablation_alpha")
    names = [column.name for column in table.columns]
    rows = {row.name: dict(zip(names, row.cells, strict=True)) for row in table.rows}
    default = rows["2.0"]
    assert _number(default["over_nll"]) > _number(default["tempered_nll"]) + 0.1
    assert _number(rows["0.1"]["over_nll"]) == pytest.approx(_number(rows["0.1"]["tempered_nll"]))
    beside = default["ece"]
    assert isinstance(beside, Value)
    assert beside.paper == 0.179
    over = default["over_ece"]
    assert isinstance(over, Value)
    assert over.sd is not None


def test_findings_name_the_best_value_and_the_winner(shown: StudyResult) -> None:
    alpha = next(one for one in shown.findings if one.startswith("Weight of uncertainty"))
    assert "lowest at α = 0.1" in alpha
    assert "(printed: 0.963 to 0.985 and 0.015 to 0.611)" in alpha
    came = next(one for one in shown.findings if "as it comes" in one)
    assert "α = 0.1, chosen in hindsight" in came
    assert "robust mode wins" in came


def test_where_paper_mode_is_better_the_findings_say_so(tmp_path: Path) -> None:
    def skill(cell: Cell) -> Skill:
        return Skill(4.0 if ("temperature", 0.5) in cell.settings else 1.0)

    found = _result(tmp_path, skill).findings
    told = [one for one in found if "chosen in hindsight" in one]
    assert len(told) == 2
    assert all("T = 0.5, chosen" in one and "paper mode wins" in one for one in told)


def test_a_crash_is_a_row(tmp_path: Path) -> None:
    def skill(cell: Cell) -> Skill:
        return Skill(error="it broke" if ("alpha", 5.0) in cell.settings else None)

    shown = _result(tmp_path, skill)
    rows = next(one for one in shown.tables if one.name == "ablation_alpha").rows
    assert [row.name for row in rows if row.note and "it broke" in row.note] == ["5.0"]
    figure = next(one for one in shown.figures if one.name == "alpha_nll")
    assert figure.series[0].y[-1] is None
    assert any(one.startswith("Weight of uncertainty (α from 0 to 4)") for one in shown.findings)


def test_without_any_answer_nothing_is_claimed(tmp_path: Path) -> None:
    assert _result(tmp_path, lambda _: Skill(error="it broke")).findings == ()


def test_runs_begin_with_the_best_network() -> None:
    assert paper_runs(QUICK, {"alpha": 1.0})[0].settings == (("alpha", 1.0), ("member", 0))
    assert [cell.settings for cell in robust_default(QUICK)] == [
        (("member", place),) for place in members(QUICK)
    ]


def _result(folder: Path, skill: Callable[[Cell], Skill]) -> StudyResult:
    study = PaperKnobsStudy()
    keep_made(folder, study.cells(QUICK), skill)
    return study.result(QUICK, ResultReader(folder))


def _number(cell: object) -> float:
    assert isinstance(cell, Value)
    assert cell.value is not None
    return cell.value
