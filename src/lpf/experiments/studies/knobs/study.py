"""The paper's knobs one at a time, in its own mode and, where they apply, in ours."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import StudyResult
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.knobs.cells import KNOBS
from lpf.experiments.studies.knobs.figures import FIGURES, knob_figure
from lpf.experiments.studies.knobs.findings import findings
from lpf.experiments.studies.knobs.sweeps import (
    make_sweep,
    paper_runs,
    robust_default,
    robust_runs,
    robust_ways,
)
from lpf.experiments.studies.knobs.tables import paper_table, robust_table


@dataclass(frozen=True)
class PaperKnobsStudy:
    name: str = "paper_knobs"

    def cells(self, plan: Plan) -> list[Cell]:
        found = [
            cell
            for knob in KNOBS.values()
            for value in knob.values
            for cell in paper_runs(plan, {knob.name: value})
        ]
        for knob in KNOBS.values():
            for value in knob.values:
                for sampler in robust_ways(knob):
                    found += robust_runs(plan, knob, value, sampler)
        found += robust_default(plan)
        return list(dict.fromkeys(found))

    def result(self, plan: Plan, book: Book) -> StudyResult:
        sweeps = [make_sweep(plan, knob, book) for knob in KNOBS.values()]
        return StudyResult(
            self.name,
            "The paper's knobs, one at a time",
            "What do the number of samples, the temperature, α and top_k do to paper mode, and is "
            "it more than what another seed does?",
            tuple(findings(plan, sweeps, book)),
            (
                *(paper_table(plan, sweep) for sweep in sweeps),
                *(robust_table(plan, sweep) for sweep in sweeps if sweep.knob.name != "alpha"),
            ),
            tuple(knob_figure(plan, sweep, measure) for sweep in sweeps for measure in FIGURES),
        )
