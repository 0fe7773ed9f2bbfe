"""All the paper's settings against each other: the grid that it says was searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import Figure, Series, StudyResult
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.grid.findings import grid_findings
from lpf.experiments.studies.grid.scores import Scored
from lpf.experiments.studies.grid.settings import at, grid, robust_at, settings, where
from lpf.experiments.studies.grid.tables import best_table, knobs_table


@dataclass(frozen=True)
class PaperGridStudy:
    name: str = "paper_grid"

    def cells(self, plan: Plan) -> list[Cell]:
        references = [robust_at(plan, int(top_k)) for top_k in grid(plan)["top_k"]]
        return [*(at(plan, setting) for setting in settings(plan)), *references]

    def result(self, plan: Plan, book: Book) -> StudyResult:
        answers = [(one, book.answered(at(plan, one))) for one in settings(plan)]
        scored = [Scored.of(one, run) for one, run in answers if run.error is None]
        shown = bool(scored)
        return StudyResult(
            self.name,
            f"{len(answers)} settings of paper mode",
            "How good can paper mode be made by its knobs alone, and how many of its settings are "
            "calibrated?",
            tuple(grid_findings(plan, scored, book)) if shown else ("Every setting crashed.",),
            (best_table(plan, scored, book), knobs_table(plan, scored)) if shown else (),
            tuple(_scatter(plan, scored, tempered) for tempered in (False, True)) if shown else (),
        )


def _scatter(plan: Plan, scored: Sequence[Scored], tempered: bool) -> Figure:
    """A series an α: what tells settings apart most."""
    series = [_points(alpha, scored, tempered) for alpha in grid(plan)["alpha"]]
    how = "each at its fitted temperature" if tempered else "as answers come"
    return Figure(
        "grid_tempered" if tempered else "grid",
        f"Accuracy and calibration of all settings, {how}",
        f"{where(plan, len(scored))} The best place is the top left.",
        "points",
        "ECE",
        "Accuracy",
        tuple(one for one in series if one.x),
    )


def _points(alpha: float, scored: Sequence[Scored], tempered: bool) -> Series:
    among = [one for one in scored if one.setting["alpha"] == alpha]
    found = [one.tempered if tempered else one.raw for one in among]
    return Series(
        f"α = {alpha:g}",
        tuple(one["ece"] for one in found),
        tuple(one["accuracy"] for one in found),
    )
