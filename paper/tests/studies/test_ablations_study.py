from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_answers import Skill, keep_made, made

from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.specs import Cell, DomainData
from lpf_paper.exhibits import StudyResult, Value
from lpf_paper.plan import ExperimentPlan, full_plan, quick_plan
from lpf_paper.studies.ablations import (
    DEFAULT,
    SETUPS,
    UNEQUAL_SETUPS,
    AblationsStudy,
    Change,
    Setup,
    default_size,
    runs,
    variants,
)
from lpf_paper.studies.domains import DomainsStudy
from lpf_paper.studies.study import ResultReader

QUICK, FULL = quick_plan(), full_plan()


@pytest.mark.parametrize(("plan", "count"), [(QUICK, 4 * 10 + 4 + 4), (FULL, 4 * 12 * 3 + 12 + 4)])
def test_every_cell_is_asked_for_once(plan: ExperimentPlan, count: int) -> None:
    cells = AblationsStudy().cells(plan)
    assert len({cell.key for cell in cells}) == len(cells) == count


@pytest.mark.parametrize("plan", [QUICK, FULL], ids=["quick", "full"])
def test_training_data_and_default_are_those_of_the_domains_study(plan: ExperimentPlan) -> None:
    domains = {cell for one in ("paper", "hard") for cell in DomainsStudy(one).cells(plan)}
    train_specs = {cell.train_spec for cell in domains}
    for setup in SETUPS:
        found = runs(plan, setup)
        assert domains.issuperset(found[DEFAULT])
        assert train_specs.issuperset(cell.train_spec for cells in found.values() for cell in cells)


def test_only_unequal_shares_need_new_training() -> None:
    known = {cell.train_spec for one in ("paper", "hard") for cell in DomainsStudy(one).cells(FULL)}
    new = {cell.train_spec for cell in AblationsStudy().cells(FULL)} - known
    told = sorted(one.data.changes for one in new if isinstance(one.data, DomainData))
    milder, stronger = ("shares=0.2,0.25,0.55",), ("shares=0.05,0.15,0.8",)
    assert told == [stronger, milder, milder, milder]


def test_training_balances_only_the_stronger_shares() -> None:
    """By what training itself would do with so many items of each value."""
    from lpf.training import TrainingConfig
    from lpf.training.material import item_weights

    for setup in UNEQUAL_SETUPS:
        counts = [round(630 * share) for share in setup.shares]
        values = np.repeat(np.arange(3), counts)
        weights = item_weights({"level": values}, np.arange(len(values)), TrainingConfig())
        assert setup.balanced == (len(np.unique(weights)) > 1)
    assert [setup.balanced for setup in UNEQUAL_SETUPS] == [False, True]
    assert not any(setup.balanced for setup in SETUPS)


def test_ensembles_are_as_large_as_there_are_networks() -> None:
    assert (default_size(QUICK), default_size(FULL)) == (3, 5)
    assert _sizes(QUICK) == ["ensemble_1", "ensemble_2"]
    assert _sizes(FULL) == ["ensemble_1", "ensemble_2", "ensemble_3", "ensemble_7"]


def test_a_verdict_needs_an_interval_a_p_value_and_a_difference() -> None:
    worse = Change(0.02, 0.01, 0.03, 0.01)
    assert worse.verdict == "worse"
    assert Change(-0.02, -0.03, -0.01, 0.01).verdict == "better"
    assert replace(worse, p=0.2).verdict == "neither"
    assert replace(worse, low=-0.01).verdict == "neither"
    assert Change(1e-9, 1e-10, 1e-8, 0.001).verdict == "neither"


def test_everything_is_shown(tmp_path: Path) -> None:
    shown = _result(tmp_path, lambda _: Skill())
    assert len(shown.tables) == len(SETUPS) + len(UNEQUAL_SETUPS)
    for table, setup in zip(shown.tables, (*SETUPS, *UNEQUAL_SETUPS), strict=True):
        assert [row.name for row in table.rows] == [DEFAULT, *variants(QUICK, setup)]
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
        assert all(cell is not None for row in table.rows[1:] for cell in row.cells)
    names = [figure.name for figure in shown.figures]
    assert names == ["ablations_paper", "ablations_hard", "ablations_ensemble"]
    assert all(series.x and series.low for one in shown.figures for series in one.series)
    assert [series.x for series in shown.figures[-1].series] == [(1.0, 2.0, 3.0)] * len(SETUPS)
    assert StudyResult.from_dict(shown.to_dict()) == shown


def test_findings_name_a_useless_integral(tmp_path: Path) -> None:
    shown = _result(tmp_path, lambda cell: Skill(1.0 if _told(cell, "sampler") else 3.0))
    assert "brings nothing: in none of 12 comparisons" in shown.findings[0]
    assert "in 12 it is worse" in shown.findings[0]


def test_an_integral_that_helps_is_named(tmp_path: Path) -> None:
    shown = _result(
        tmp_path, lambda cell: Skill(4.0 if ("sampler", "moments") in cell.settings else 1.5)
    )
    assert "lowers NLL beyond chance in 4 of 12 comparisons" in shown.findings[0]
    assert "Integral by moments" in shown.findings[0]
    assert "plain" not in shown.findings[0]


def test_useful_parts_are_distinguished_from_useless_ones(tmp_path: Path) -> None:
    shown = _result(tmp_path, lambda cell: Skill(1.0 if _told(cell, "rho") else 3.0))
    rho = next(one for one in shown.findings if one.startswith("ρ = 0"))
    assert "worse beyond chance on 4 and better on 0 of 4 tests" in rho
    epsilon = next(one for one in shown.findings if one.startswith("ε = 0"))
    assert "worse beyond chance on 0" in epsilon
    change = shown.tables[0].rows[6].cells[1]
    assert shown.tables[0].rows[6].name == "rho"
    assert isinstance(change, Value)
    assert change.value is not None
    assert change.low is not None
    assert change.value > change.low > 0


@pytest.mark.parametrize(("signal", "words"), [(1.0, "is worth it"), (5.0, "does harm")])
def test_dividing_by_the_prior_is_judged_where_it_can_matter(
    tmp_path: Path, signal: float, words: str
) -> None:
    shown = _result(tmp_path, lambda cell: Skill(signal if _told(cell, "divide_prior") else 2.5))
    milder = next(one for one in shown.findings if "0.2 : 0.25 : 0.55" in one)
    assert f"dividing the prior out {words}" in milder


def test_values_that_training_balances_leave_nothing_to_divide(tmp_path: Path) -> None:
    """Answers that differ by rounding alone are not called a difference, however certain it is."""
    study, store = AblationsStudy(), ResultStore(tmp_path)
    keep_made(tmp_path, study.cells(QUICK))
    found = runs(QUICK, UNEQUAL_SETUPS[1])
    default = made(found[DEFAULT][0], Skill())
    rounded = default.answers ** (1.0 + 1e-9)
    rounded /= rounded.sum(axis=1, keepdims=True)
    store.save(found["undivided"][0], replace(default, tempered=rounded, raw=rounded))
    store.save(found[DEFAULT][0], default)
    told = study.result(QUICK, ResultReader(tmp_path)).findings[-1]
    assert "draws all values equally often" in told
    assert "changes nothing" in told


def test_a_crash_is_a_row_and_no_finding(tmp_path: Path) -> None:
    shown = _result(
        tmp_path, lambda cell: Skill(error="it broke" if _told(cell, "fitted") else None)
    )
    row = next(row for row in shown.tables[0].rows if row.name == "unfitted")
    assert row.note is not None
    assert "it broke" in row.note
    assert "Nothing fitted: could not be compared." in shown.findings
    assert all("Nothing fitted" not in series.x for series in shown.figures[0].series)


def _sizes(plan: ExperimentPlan) -> list[str]:
    setup: Setup = SETUPS[0]
    return [name for name in variants(plan, setup) if name.startswith("ensemble")]


def _told(cell: Cell, name: str) -> bool:
    return name in dict(cell.settings)


def _result(folder: Path, skill: Callable[[Cell], Skill]) -> StudyResult:
    study = AblationsStudy()
    keep_made(folder, study.cells(QUICK), skill)
    return study.result(QUICK, ResultReader(folder))
