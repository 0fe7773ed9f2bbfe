from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_answers import Skill, keep_made

from lpf.evaluation.specs import Cell
from lpf_paper.exhibits import StudyResult, Value
from lpf_paper.plan import full_plan, quick_plan
from lpf_paper.studies.compliance_runs import main_train_spec
from lpf_paper.studies.grid import DEFAULT, HEADLINE, PaperGridStudy, at, settings
from lpf_paper.studies.knobs import PaperKnobsStudy
from lpf_paper.studies.knobs_tables import PAPER
from lpf_paper.studies.study import ResultReader

QUICK, FULL = quick_plan(), full_plan()


def test_the_full_grid_has_the_papers_320_settings() -> None:
    cells = PaperGridStudy().cells(FULL)
    assert len(settings(FULL)) == 320
    assert len({cell.key for cell in cells}) == len(cells) == 320 + 5
    assert {cell.train_spec for cell in cells} == {main_train_spec(FULL)}


def test_a_corner_has_both_published_settings() -> None:
    cells = PaperGridStudy().cells(QUICK)
    assert len({cell.key for cell in cells}) == len(cells) == 24 + 3
    for plan in (QUICK, FULL):
        assert DEFAULT in settings(plan)
        assert HEADLINE in settings(plan)


def test_cells_are_shared_with_the_knobs() -> None:
    knobs = set(PaperKnobsStudy().cells(QUICK))
    assert at(QUICK, DEFAULT) in knobs
    references = [cell for cell in PaperGridStudy().cells(QUICK) if cell.method != PAPER]
    assert knobs.issuperset(references)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """The larger α, the less sure paper mode is; more items are better for everybody."""

    def skill(cell: Cell) -> Skill:
        assert cell.eval_spec.top_k is not None
        signal = 2.0 + 0.1 * cell.eval_spec.top_k
        if cell.method != PAPER:
            return Skill(signal + 2.0)
        return Skill(signal, 1.0 if ("alpha", 0.1) in cell.settings else 0.1)

    return _result(tmp_path_factory.mktemp("grid"), skill)


def test_tables_and_figures_hold_every_setting(shown: StudyResult) -> None:
    best, knobs = shown.tables
    assert all(
        len(row.cells) == len(table.columns) for table in (best, knobs) for row in table.rows
    )
    assert [row.name for row in knobs.rows][:2] == ["M = 4", "M = 16"]
    counts = [row.cells[0] for row in knobs.rows]
    assert [one.value for one in counts if isinstance(one, Value)] == [12] * 6 + [8] * 3
    assert [figure.name for figure in shown.figures] == ["grid", "grid_tempered"]
    for figure in shown.figures:
        assert sum(len(series.x) for series in figure.series) == 24
    assert StudyResult.from_dict(shown.to_dict()) == shown


def test_the_best_is_picked_for_every_number_of_items(shown: StudyResult) -> None:
    rows = {row.name: row for row in shown.tables[0].rows}
    for top_k in (1, 5, 20):
        alpha, items = rows[f"Lowest NLL, top_k = {top_k}"].cells[2:4]
        assert isinstance(alpha, Value)
        assert isinstance(items, Value)
        assert (alpha.value, items.value) == (0.1, top_k)
    assert {"The paper's default", "The paper's headline", "Robust mode, top_k = 5"} <= set(rows)


def test_findings_count_the_miscalibrated_and_name_the_knob(shown: StudyResult) -> None:
    calibrated, movers, ranks, came, tempered, printed = shown.findings
    alphas = next(series for series in shown.figures[0].series if series.name == "α = 0.1")
    bad = 12 + sum(float(error) > 0.1 for error in alphas.x)  # all of α = 2 are
    assert f"Of 24 settings {bad} have an ECE above 0.1 without a fitted temperature" in calibrated
    assert "for ECE α" in movers
    assert "for accuracy top_k" in movers
    assert "The paper's default" in ranks
    assert "for 3 and worse for 0 of 3 numbers of items" in came
    assert "at fitted temperatures" in tempered
    assert "320 settings" in printed


def test_where_robust_mode_loses_the_findings_say_so(tmp_path: Path) -> None:
    shown = _result(tmp_path, lambda cell: Skill(4.0 if cell.method == PAPER else 1.0))
    told = [one for one in shown.findings if one.startswith("Robust mode")]
    assert len(told) == 2
    assert all("for 0 and worse for 3 of 3" in one for one in told)


def test_settings_that_crash_are_counted(tmp_path: Path) -> None:
    def skill(cell: Cell) -> Skill:
        return Skill(error="it broke" if ("n_samples", 4) in cell.settings else None)

    shown = _result(tmp_path, skill)
    assert all("12 of 24 settings crashed" in table.caption for table in shown.tables)
    assert "Of 12 settings" in shown.findings[0]


def test_nothing_is_shown_of_a_grid_that_crashed(tmp_path: Path) -> None:
    shown = _result(tmp_path, lambda _: Skill(error="it broke"))
    assert (shown.tables, shown.figures) == ((), ())
    assert shown.findings == ("Every setting crashed.",)


def _result(folder: Path, skill: Callable[[Cell], Skill]) -> StudyResult:
    study = PaperGridStudy()
    keep_made(folder, study.cells(QUICK), skill)
    return study.result(QUICK, ResultReader(folder))
