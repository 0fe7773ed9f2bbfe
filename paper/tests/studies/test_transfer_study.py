from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_answers import Skill, keep_made, made

from lpf.domains import domain_names
from lpf.errors import ConfigError
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.specs import Cell, DomainData
from lpf_paper.exhibits import StudyResult, Value
from lpf_paper.plan import ExperimentPlan, full_plan, quick_plan
from lpf_paper.studies.domains import DomainsStudy
from lpf_paper.studies.few_labels import METHODS as FEW_METHODS
from lpf_paper.studies.few_labels import few_cells, few_steps
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.transfer import (
    GOOD_FIRST,
    GOOD_LAST,
    METHODS,
    TransferStudy,
    opposite,
    reversed_values,
)

QUICK = quick_plan()


@pytest.mark.parametrize("plan", [quick_plan(), full_plan()])
def test_every_pair_is_asked_once(plan: ExperimentPlan) -> None:
    cells = TransferStudy().cells(plan)
    assert len(cells) == len(set(cells))
    few = few_cells(plan)
    assert len(few) == len(set(few)) == len(FEW_METHODS) * len(plan.few) * len(plan.study_seeds)
    pairs = [cell for cell in cells if cell.train_spec.entities is None and cell.method in METHODS]
    asked = {cell for cell in pairs if is_asked(plan, cell)}
    assert len(asked) == len(METHODS) * len(plan.transfer_domains) ** 2 * len(plan.study_seeds)
    assert set(cells) == {*asked, *few}


@pytest.mark.parametrize("plan", [quick_plan(), full_plan()])
def test_only_small_specs_are_new(plan: ExperimentPlan) -> None:
    train_specs = {cell.train_spec for cell in TransferStudy().cells(plan)}
    new = train_specs - {cell.train_spec for cell in DomainsStudy("paper").cells(plan)}
    assert {train_spec.entities for train_spec in new} == set(plan.few) - {630}
    assert len(new) == (len(plan.few) - 1) * len(plan.study_seeds)
    whole = [cells[-1][0].train_spec.entities for cells in few_steps(plan).runs.values()]
    assert set(whole) == {None}


def test_one_domain_is_too_few() -> None:
    with pytest.raises(ConfigError, match="two or more"):
        TransferStudy().cells(replace(QUICK, transfer_domains=("legal",)))


def test_every_domain_has_a_good_end_but_the_courts() -> None:
    assert not set(GOOD_FIRST) & set(GOOD_LAST)
    assert set(domain_names()) == {*GOOD_FIRST, *GOOD_LAST, "legal"}
    assert opposite(("compliance", "healthcare"))
    assert opposite(("healthcare", "compliance"))
    assert not opposite(("compliance", "materials"))
    assert not opposite(("legal", "healthcare"))


def test_reversed_values_change_ends() -> None:
    answered = made(TransferStudy().cells(QUICK)[0], Skill())
    turned = reversed_values(answered)
    np.testing.assert_array_equal(turned.answers[:, 0], answered.answers[:, 2])
    np.testing.assert_array_equal(turned.answers[:, 1], answered.answers[:, 1])
    np.testing.assert_array_equal(turned.labels, answered.labels)


def is_asked(plan: ExperimentPlan, cell: Cell) -> bool:
    return cell.eval_spec.entities == min(300, plan.ablation_entities)


def is_away(cell: Cell) -> bool:
    assert isinstance(cell.train_spec.data, DomainData)
    assert cell.eval_spec.data is not None
    return cell.train_spec.data.domain != cell.eval_spec.data.domain


def keep_turned(folder: Path, cells: list[Cell]) -> None:
    """Away from home, all that is carried over is what is good and what is bad; the robust ensemble
    carries most. Of few labels, the regression makes most."""
    few = set(few_cells(QUICK))
    keep_made(folder, cells, few_skill)
    for cell in cells:
        if cell not in few and is_away(cell):
            signal = {"lpf_robust": 2.5, "logistic_mean": 1.0}.get(cell.method, 0.0)
            ResultStore(folder).save(cell, reversed_values(made(cell, Skill(signal), 200)))


def few_skill(cell: Cell) -> Skill:
    few = cell.train_spec.entities is not None and cell.train_spec.entities < 100
    best = "logistic_mean" if few else "lpf_chosen"
    return Skill(3.0 if cell.method == best else 1.5)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    folder = tmp_path_factory.mktemp("transfer")
    study = TransferStudy()
    keep_turned(folder, study.cells(QUICK))
    return study.result(QUICK, ResultReader(folder))


def test_tables_and_figures_are_there(shown: StudyResult) -> None:
    assert [table.name for table in shown.tables] == ["transfer", "few_nll", "few_accuracy"]
    assert all(table.rows and table.columns for table in shown.tables)
    assert [figure.name for figure in shown.figures] == [
        "transfer_by_order",
        "transfer_by_meaning",
        "few_nll",
        "few_accuracy",
    ]
    assert all(line.y for figure in shown.figures for line in figure.series)
    assert "lowest to lowest" in shown.figures[0].caption


def test_a_matrix_by_order_and_one_by_meaning(shown: StudyResult) -> None:
    order, meaning = (
        np.array([row.y for row in figure.series], np.float64) for figure in shown.figures[:2]
    )
    np.testing.assert_array_equal(np.diag(order), np.diag(meaning))
    assert (order[~np.eye(2, dtype=bool)] < 0.5).all()
    assert (meaning[~np.eye(2, dtype=bool)] > 0.8).all()


def test_means_on_and_off_the_diagonal(shown: StudyResult) -> None:
    rows = {row.name: row.cells for row in shown.tables[0].rows}
    matrix = np.array([row.y for row in shown.figures[0].series], np.float64)
    home, away, by_meaning = (_number(cell) for cell in rows["lpf_robust"][:3])
    assert home == pytest.approx(np.diag(matrix).mean())
    assert away == pytest.approx(matrix[~np.eye(2, dtype=bool)].mean())
    assert by_meaning > away
    assert 1 / 3 < _number(rows["most_frequent"][0]) < 0.6
    assert shown.tables[0].rows[-1].standing == "reference"


def test_findings_of_transfer(shown: StudyResult) -> None:
    home, turned, best, pair = shown.findings[:4]
    assert "in another domain" in home
    assert turned.startswith("In 2 of 2 pairs")
    assert "first: LPF-SPN, robust ensemble" in best
    counts = re.search(r"Of (\d+) answers .* in (\d+), the second alone in (\d+)\.$", best)
    assert counts is not None
    answers, first, second = map(int, counts.groups())
    rows = {row.name: row.cells for row in shown.tables[0].rows}
    ahead = _number(rows["lpf_robust"][2]) - _number(rows["logistic_mean"][2])
    assert answers == 400
    assert (first - second) / answers == pytest.approx(ahead)
    assert best.index("Logistic regression") < best.index("Classifier ensemble")
    assert "from compliance to healthcare" in pair or "from healthcare to compliance" in pair


def test_findings_of_few_labels_name_the_winner_of_each_end(shown: StudyResult) -> None:
    few, many, between = shown.findings[4:]
    assert few.startswith("With 45 training entities Logistic regression")
    assert "lower NLL than LPF" in few
    assert many.startswith("With 630 training entities LPF has the lowest NLL")
    assert between == "From 180 on LPF is not beaten by more than chance."


def test_a_difference_that_may_be_chance_is_called_so(tmp_path: Path) -> None:
    study = TransferStudy()
    keep_made(tmp_path, study.cells(QUICK), entities=12)
    findings = study.result(QUICK, ResultReader(tmp_path)).findings
    assert all(sentence.endswith("which may be chance.") for sentence in findings[-3:-1])
    assert findings[-1].startswith("At no number of training entities")


def test_to_be_beaten_with_all_entities_is_told(tmp_path: Path) -> None:
    study = TransferStudy()
    keep_made(
        tmp_path,
        study.cells(QUICK),
        lambda cell: Skill(3.0 if cell.method == "deep_sets" else 1.0),
    )
    last = study.result(QUICK, ResultReader(tmp_path)).findings[-1]
    assert last == "LPF is beaten by more than chance with the most entities, too."


def test_crashes_leave_gaps(tmp_path: Path) -> None:
    study = TransferStudy()
    keep_made(
        tmp_path,
        study.cells(QUICK),
        lambda cell: Skill(error="MemoryError" if cell.method == "logistic_mean" else None),
    )
    result = study.result(QUICK, ResultReader(tmp_path))
    rows = {row.name: row.cells for row in result.tables[0].rows}
    assert rows["logistic_mean"][0] == Value(None)
    assert _number(rows["lpf_robust"][0]) > 0.5
    assert not any("Logistic" in sentence for sentence in result.findings)


def _number(cell: object) -> float:
    assert isinstance(cell, Value)
    assert cell.value is not None
    return cell.value
