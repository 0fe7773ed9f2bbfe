"""A knob through all its values as tables: paper mode with the paper's numbers beside, and robust
mode."""

from __future__ import annotations

from lpf.experiments.exhibits import Column, Row, Table, Value
from lpf.experiments.judging.summaries import Summary
from lpf.experiments.plan import Plan
from lpf.experiments.studies.knobs.cells import Knob, members, printed_at
from lpf.experiments.studies.knobs.sweeps import Point, RobustLine, Sweep
from lpf.experiments.studies.knobs.words import others_at_default, who_is_asked
from lpf.experiments.studies.tables import COLUMNS, cell_value, renamed_column

# Of the best network, with the paper's beside; then over networks, as answers come and tempered.
BEST = ("accuracy", "nll", "ece", "macro_f1", "brier_over_k", "mean_confidence")
OVER = ("accuracy", "nll", "ece")
TEMPERED = ("nll", "ece")
ROBUST_MEASURES = ("nll", "accuracy", "ece", "ece_null", "mean_confidence")
WHAT_IS_FITTED = {
    "n_samples": "What is fitted is fitted at the mean; samples then take its place.",
    "temperature": "T takes the place of the fitted one; all else stays as it was fitted.",
    "top_k": "What is fitted is fitted on five items an entity.",
}


def paper_table(plan: Plan, sweep: Sweep) -> Table:
    knob, networks = sweep.knob, len(members(plan))
    return Table(
        f"ablation_{knob.name}",
        f"Paper mode by {knob.title.lower()}",
        f"{others_at_default(knob)} {who_is_asked(plan, knob)} First the best network of the "
        f"search, as the paper has it, then mean and sd over {networks} of its "
        f"{len(plan.main_seeds)} networks, from the best to the last. Measured as answers come, "
        "without a temperature, as the paper measures; only the columns 'after T' have one, fitted "
        "on 135 validation companies with five items each. The paper's numbers are of 135 "
        "companies.",
        _paper_columns(networks),
        tuple(_paper_row(knob, point) for point in sweep.points),
    )


def _paper_columns(networks: int) -> tuple[Column, ...]:
    return (
        *(COLUMNS[name] for name in BEST),
        *(renamed_column(name, "over", f", {networks} networks") for name in OVER),
        *(renamed_column(name, "tempered", f" after T, {networks} networks") for name in TEMPERED),
        renamed_column("per_second", "over", ""),
    )


def _paper_row(knob: Knob, point: Point) -> Row:
    row = knob.printed_row(point.value)
    best = tuple(_with_printed(knob, point.value, name, point.best) for name in BEST)
    over = tuple(cell_value(point.raw, name) for name in OVER)
    tempered = tuple(cell_value(point.tempered, name) for name in TEMPERED)
    note = "; ".join(point.raw.notes) or None
    cells = (*best, *over, *tempered, cell_value(point.raw, "per_second"))
    return Row(row, f"{knob.symbol} = {point.value:g}", cells, "rival", note)


def _with_printed(knob: Knob, value: float, measure: str, summary: Summary) -> Value | None:
    printed, spread = printed_at(knob, value, measure), summary.spreads.get(measure)
    paper = None if printed is None else printed.value
    doubt = None if printed is None else " ".join(printed.doubts) or None
    if spread is None:
        return None if paper is None else Value(None, paper=paper, doubt=doubt)
    return spread.value(paper, doubt)


def robust_table(plan: Plan, sweep: Sweep) -> Table:
    knob = sweep.knob
    rows = [row for line in sweep.robust for row in _robust_rows(knob, line)]
    alone = sweep.robust[0].alone
    if alone is not None:
        rows.insert(0, _robust_row("default", f"Robust mode, {alone[0]}", alone[1]))
    return Table(
        f"robust_{knob.name}",
        f"Robust mode by {knob.title.lower()}",
        f"The same networks, one at a time, on the same companies: mean and sd over "
        f"{len(members(plan))}. {WHAT_IS_FITTED[knob.name]} {who_is_asked(plan, knob)}",
        tuple(COLUMNS[name] for name in ROBUST_MEASURES),
        tuple(rows),
    )


def _robust_rows(knob: Knob, line: RobustLine) -> list[Row]:
    return [
        _robust_row(f"{line.title} {value:g}", f"{line.title}, {knob.symbol} = {value:g}", summary)
        for value, summary in zip(line.values, line.summaries, strict=True)
    ]


def _robust_row(name: str, title: str, summary: Summary) -> Row:
    cells = tuple(cell_value(summary, measure) for measure in ROBUST_MEASURES)
    return Row(name, title, cells, "ours", "; ".join(summary.notes) or None)
