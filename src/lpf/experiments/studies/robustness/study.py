"""Evidence that gets worse while nobody is trained for it: who notices, and who stays sure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import Column, Figure, Row, StudyResult, Table, Value
from lpf.experiments.lessons.perturbations import KINDS
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.robustness.cells import data_sets, steps_of
from lpf.experiments.studies.robustness.findings import KIND_TITLES, Lost, robustness_findings
from lpf.experiments.studies.steps import (
    Steps,
    gap_figure,
    lost_nll,
    overconfidence,
    step_figure,
    step_table,
)

TELLING = 0.05  # the change of a method's overconfidence from which on it is worth a figure


@dataclass(frozen=True)
class RobustnessStudy:
    name: str = "robustness"

    def cells(self, plan: Plan) -> list[Cell]:
        """What is untouched is one exam for all kinds."""
        found = (
            cell
            for kind in KINDS
            for places in steps_of(plan, kind).runs.values()
            for cells in places
            for cell in cells
        )
        return list(dict.fromkeys(found))

    def result(self, plan: Plan, book: Book) -> StudyResult:
        all_steps = {kind: steps_of(plan, kind) for kind in KINDS}
        lost = {
            kind: {method: lost_nll(steps, method, book) for method in steps.runs}
            for kind, steps in all_steps.items()
        }
        tables, figures = [_lost_table(plan, all_steps, lost)], []
        for kind, steps in all_steps.items():
            tables += _tables(plan, kind, steps, book)
            figures += _figures(plan, kind, steps, book)
        return StudyResult(
            self.name,
            "Evidence that gets worse",
            "Who loses least when items are missing, wrong, meaningless, copied or planted, and "
            "who remains as sure as before?",
            tuple(robustness_findings(all_steps, lost, book)),
            tuple(tables),
            tuple(figures),
        )


def _how(plan: Plan) -> str:
    return (
        f"{plan.ablation_asked:,} new companies, mean over {data_sets(plan)} of 630 training "
        "entities. Only what is asked about is spoilt: everything was fitted on evidence as it "
        "comes, temperatures by the number of items where it differs from that at fitting."
    )


def _caption(plan: Plan, kind: str) -> str:
    told = f"{KINDS[kind].about} {_how(plan)}"
    if kind != "copies":
        return told
    return f"{told} Robust mode looks for texts that are nearly alike; the others here do not."


def _tables(plan: Plan, kind: str, steps: Steps, book: Book) -> list[Table]:
    caption = _caption(plan, kind)
    return [
        step_table(f"{kind}_nll", f"{KIND_TITLES[kind]}: NLL", caption, steps, "nll", book),
        step_table(
            f"{kind}_accuracy", f"{KIND_TITLES[kind]}: accuracy", caption, steps, "accuracy", book
        ),
    ]


def _lost_table(plan: Plan, all_steps: Mapping[str, Steps], lost: Mapping[str, Lost]) -> Table:
    columns = tuple(
        Column(kind, f"{kind}, {steps.words[-1]}", "number", "lower", 4)
        for kind, steps in all_steps.items()
    )
    rows = []
    for method in plan.sturdy_methods:
        found = [by_method[method] for by_method in lost.values()]
        cells = tuple(
            None if one is None else Value(one.mean, None, one.low, one.high) for one in found
        )
        rows.append(Row(method, title_of(method), cells, standing_of(method)))
    return Table(
        "lost",
        "NLL lost at the highest level of each kind",
        "NLL there less that on the same entities untouched, paired, with 95 % intervals over data "
        f"sets and entities. A method that was bad before has little to lose. {_how(plan)}",
        columns,
        tuple(rows),
    )


def _figures(plan: Plan, kind: str, steps: Steps, book: Book) -> list[Figure]:
    x_title = "How many" if KINDS[kind].counts else "Share"
    caption = _caption(plan, kind)
    figures = [
        step_figure(f"{kind}_nll", KIND_TITLES[kind], caption, x_title, steps, "nll", book),
    ]
    if _telling(steps, book):
        figures.append(
            gap_figure(
                f"{kind}_gap",
                f"{KIND_TITLES[kind]}: surer than right",
                f"At 0 a method is as sure as it is right. {caption}",
                x_title,
                steps,
                book,
            )
        )
    return figures


def _telling(steps: Steps, book: Book) -> bool:
    """Whether somebody becomes surer than right, or less sure, in a way that can be seen."""
    gaps = [
        [overconfidence(steps, method, place, book) for place in range(len(steps.x))]
        for method in steps.runs
    ]
    return bool((np.abs(np.array(gaps) - np.array(gaps)[:, :1]) > TELLING).any())
