"""The paper's knobs one at a time, in its own mode and, where they apply, in ours."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import StudyResult
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.paper_cells import KNOBS
from lpf.experiments.studies.paper_findings import findings
from lpf.experiments.studies.paper_knob_figures import FIGURES, knob_figure
from lpf.experiments.studies.paper_knob_tables import paper_table, robust_table
from lpf.experiments.studies.paper_sweeps import (
    make_sweep,
    paper_runs,
    robust_default,
    robust_runs,
    robust_ways,
)


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
