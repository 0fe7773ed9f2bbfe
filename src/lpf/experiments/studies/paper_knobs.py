"""The paper's knobs one at a time, in its own mode and, where they apply, in ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import (
    Column,
    Figure,
    Row,
    Series,
    Standing,
    StudyResult,
    Table,
    Value,
)
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.paper_cells import (
    KNOBS,
    MANY_ITEMS,
    Knob,
    members,
    paper_cell,
    printed_at,
)
from lpf.experiments.studies.paper_findings import findings
from lpf.experiments.studies.paper_sweeps import (
    Point,
    RobustLine,
    Sweep,
    make_sweep,
    paper_runs,
    robust_default,
    robust_runs,
    robust_ways,
)
from lpf.experiments.studies.tables import COLUMNS
from lpf.experiments.summaries import Spread, Summary

# Of the best network, with the paper's beside; then over networks, as answers come and tempered.
BEST = ("accuracy", "nll", "ece", "macro_f1", "brier_over_k", "mean_confidence")
OVER = ("accuracy", "nll", "ece")
TEMPERED = ("nll", "ece")
ROBUST_MEASURES = ("nll", "accuracy", "ece", "ece_null", "mean_confidence")
FIGURES = {"accuracy": "Accuracy", "ece": "ECE", "nll": "NLL"}


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
                *(_paper_table(plan, sweep) for sweep in sweeps),
                *(_robust_table(plan, sweep) for sweep in sweeps if sweep.knob.name != "alpha"),
            ),
            tuple(_figure(plan, sweep, measure) for sweep in sweeps for measure in FIGURES),
        )


def _paper_table(plan: Plan, sweep: Sweep) -> Table:
    knob, networks = sweep.knob, len(members(plan))
    columns = (
        *(COLUMNS[name] for name in BEST),
        *(_renamed(name, "over", f", {networks} networks") for name in OVER),
        *(_renamed(name, "tempered", f" after T, {networks} networks") for name in TEMPERED),
        _renamed("per_second", "over", ""),
    )
    rows = tuple(_paper_row(knob, point) for point in sweep.points)
    return Table(
        f"ablation_{knob.name}",
        f"Paper mode by {knob.title.lower()}",
        f"{_others(knob)} {_asked(plan, knob)} First the best network of the search, as the paper "
        f"has it, then mean and sd over {networks} of its {len(plan.main_seeds)} networks, from "
        "the best to the last. Measured as answers come, without a temperature, as the paper "
        "measures; only the columns 'after T' have one, fitted on 135 validation companies with "
        "five items each. The paper's numbers are of 135 companies.",
        columns,
        rows,
    )


def _paper_row(knob: Knob, point: Point) -> Row:
    row = knob.printed_row(point.value)
    best = tuple(_with_printed(knob, point.value, name, point.best) for name in BEST)
    over = tuple(_value(point.raw, name) for name in OVER)
    tempered = tuple(_value(point.tempered, name) for name in TEMPERED)
    note = "; ".join(point.raw.notes) or None
    cells = (*best, *over, *tempered, _value(point.raw, "per_second"))
    return Row(row, f"{knob.symbol} = {point.value:g}", cells, "rival", note)


def _with_printed(knob: Knob, value: float, measure: str, summary: Summary) -> Value | None:
    printed, spread = printed_at(knob, value, measure), summary.spreads.get(measure)
    paper = None if printed is None else printed.value
    doubt = None if printed is None else " ".join(printed.doubts) or None
    if spread is None:
        return None if paper is None else Value(None, paper=paper, doubt=doubt)
    return spread.value(paper, doubt)


def _robust_table(plan: Plan, sweep: Sweep) -> Table:
    knob = sweep.knob
    told = {
        "n_samples": "What is fitted is fitted at the mean; samples then take its place.",
        "temperature": "T takes the place of the fitted one; all else stays as it was fitted.",
        "top_k": "What is fitted is fitted on five items an entity.",
    }
    rows = [row for line in sweep.robust for row in _robust_rows(knob, line)]
    alone = sweep.robust[0].alone
    if alone is not None:
        rows.insert(0, _robust_row("default", f"Robust mode, {alone[0]}", alone[1]))
    return Table(
        f"robust_{knob.name}",
        f"Robust mode by {knob.title.lower()}",
        f"The same networks, one at a time, on the same companies: mean and sd over "
        f"{len(members(plan))}. {told[knob.name]} {_asked(plan, knob)}",
        tuple(COLUMNS[name] for name in ROBUST_MEASURES),
        tuple(rows),
    )


def _robust_rows(knob: Knob, line: RobustLine) -> list[Row]:
    return [
        _robust_row(f"{line.title} {value:g}", f"{line.title}, {knob.symbol} = {value:g}", summary)
        for value, summary in zip(line.values, line.summaries, strict=True)
    ]


def _robust_row(name: str, title: str, summary: Summary) -> Row:
    cells = tuple(_value(summary, measure) for measure in ROBUST_MEASURES)
    return Row(name, title, cells, "ours", "; ".join(summary.notes) or None)


def _figure(plan: Plan, sweep: Sweep, measure: str) -> Figure:
    knob, points = sweep.knob, sweep.points
    series = [
        _line("Paper mode, as it comes", knob.values, [one.raw for one in points], measure),
        _line("Paper mode, T fitted", knob.values, [one.tempered for one in points], measure),
    ]
    for line in sweep.robust:
        summaries = line.summaries
        if not summaries and line.alone is not None:
            summaries = (line.alone[1],) * len(knob.values)
        series.append(_line(line.title, knob.values, summaries, measure, "ours"))
    printed = _printed_line(knob, measure)
    return Figure(
        f"{knob.name}_{measure}",
        f"{FIGURES[measure]} by {knob.title.lower()}",
        f"{_others(knob)} {_asked(plan, knob)} Means over {len(members(plan))} networks with 95 % "
        "intervals over networks and companies.",
        "lines",
        f"{knob.title} {knob.symbol}" if knob.symbol != knob.name else knob.title,
        FIGURES[measure],
        (*series, printed) if printed.x else tuple(series),
        knob.log_x,
    )


def _line(
    title: str,
    values: Sequence[float],
    summaries: Sequence[Summary],
    measure: str,
    standing: Standing = "rival",
) -> Series:
    """Bounds are left out where not every point has them."""
    spreads = [summary.spreads.get(measure) for summary in summaries]
    bounds = [
        (one.low, one.high)
        for one in spreads
        if one is not None and one.low is not None and one.high is not None
    ]
    whole = len(bounds) == len(spreads)
    return Series(
        title,
        tuple(map(float, values)),
        tuple(_finite(one) for one in spreads),
        tuple(low for low, _ in bounds) if whole else (),
        tuple(high for _, high in bounds) if whole else (),
        standing,
    )


def _printed_line(knob: Knob, measure: str) -> Series:
    """What the paper's tables print over the same knob, at the values they have."""
    there = {
        value: found.value
        for value in knob.values
        if (found := printed_at(knob, value, measure)) is not None
    }
    return Series(
        "Printed in the paper",
        tuple(map(float, there)),
        tuple(there.values()),
        standing="reference",
    )


def _others(knob: Knob) -> str:
    rest = [f"{one.symbol} = {one.default:g}" for one in KNOBS.values() if one is not knob]
    return f"Compliance, all other knobs at the paper's default ({', '.join(rest)})."


def _asked(plan: Plan, knob: Knob) -> str:
    exam = paper_cell(plan, 0, {knob.name: knob.default}).exam
    items = f"{MANY_ITEMS} items each to choose from" if knob.name == "top_k" else "five items each"
    return f"{exam.entities:,} new companies with {items}."


def _renamed(measure: str, name: str, title: str) -> Column:
    column = COLUMNS[measure]
    return replace(column, name=f"{name}_{measure}", title=f"{column.title}{title}")


def _value(summary: Summary, measure: str) -> Value | None:
    spread = summary.spreads.get(measure)
    return None if spread is None else spread.value()


def _finite(spread: Spread | None) -> float | None:
    return None if spread is None or not math.isfinite(spread.mean) else spread.mean
