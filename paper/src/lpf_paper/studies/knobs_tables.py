"""The paper's four settings ("knobs"): cells, tables and figures of each over all its values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from lpf.evaluation import (
    Cell,
    DomainData,
    EvalSpec,
    Predictions,
    Setting,
    Settings,
    Spread,
    Summary,
    summarise,
)
from lpf_paper.exhibits import Column, Figure, Row, Series, Standing, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.printed import Printed, printed_table
from lpf_paper.studies.compliance_runs import DOMAIN, main_train_spec
from lpf_paper.studies.domains_tables import TEST_SEED
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.study_tables import COLUMNS, cell_value, renamed_column

PAPER, ROBUST = "lpf_paper", "lpf_robust_single"
MANY_ITEMS = 20  # the highest top_k: with fewer items it would change nothing
MANY_ASKED = 300  # they have four times as many texts
MOST_MEMBERS, QUICK_MEMBERS = 5, 3
_PRINTED_NAMES = {"brier_over_k": "brier"}


@dataclass(frozen=True)
class Knob:
    """``name`` is the setting's; the paper's table is ``ablation_`` and this name."""

    name: str
    title: str
    symbol: str
    values: tuple[int | float, ...]
    default: int | float
    log_x: bool = False

    def printed_row(self, value: float) -> str:
        """Name of a value's row in the paper's table."""
        return str(value) if isinstance(self.default, int) else f"{value:.1f}"


KNOBS: Mapping[str, Knob] = MappingProxyType(
    {
        knob.name: knob
        for knob in (
            Knob("n_samples", "Number of samples", "M", (4, 8, 16, 32, 64, 128), 16, log_x=True),
            Knob("temperature", "Temperature", "T", (0.5, 0.8, 1.0, 1.2, 1.5, 2.0), 1.0),
            Knob("alpha", "Weight of uncertainty", "α", (0.0, 0.1, 1.0, 2.0, 4.0, 5.0), 2.0),
            Knob("top_k", "Number of items", "top_k", (1, 3, 5, 10, 20), 5),
        )
    }
)


def members(plan: ExperimentPlan) -> tuple[int, ...]:
    """Ranks in the search, evenly spaced from the best to the last: the best ones alone would
    underestimate the noise between seeds."""
    last = len(plan.main_seeds) - 1
    wanted = QUICK_MEMBERS if plan.quick else MOST_MEMBERS
    places = {round(step * last / (wanted - 1)) for step in range(wanted)}
    return tuple(sorted(places))


def five_items(plan: ExperimentPlan) -> EvalSpec:
    return EvalSpec(DomainData(DOMAIN, seed=TEST_SEED), plan.ablation_entities)


def many_items(plan: ExperimentPlan, top_k: int) -> EvalSpec:
    data = DomainData(DOMAIN, seed=TEST_SEED, changes=(f"items={MANY_ITEMS}",))
    return EvalSpec(data, min(MANY_ASKED, plan.ablation_entities), top_k=top_k)


def paper_cell(plan: ExperimentPlan, member: int, turned: Mapping[str, int | float]) -> Cell:
    """Paper mode with knobs ``turned``, the others at the paper's default. If ``top_k`` is among
    them, entities have more items to choose from."""
    return _cell(plan, PAPER, member, turned)


def robust_cell(
    plan: ExperimentPlan, member: int, turned: Mapping[str, int | float], sampler: str | None = None
) -> Cell:
    """The same network in robust mode, which decodes at the mean if there is no sampler."""
    return _cell(plan, ROBUST, member, turned, sampler)


def printed_at(knob: Knob, value: float, measure: str) -> Printed | None:
    """The paper's number for compliance, from the main text or else the appendix."""
    row, name = knob.printed_row(value), _PRINTED_NAMES.get(measure, measure)
    tables = (f"ablation_{knob.name}", f"ablation_{knob.name}_{DOMAIN}")
    found = (printed_table(slug).value(row, name) for slug in tables)
    return next((one for one in found if one is not None), None)


def without_temperature(answered: Predictions) -> Predictions:
    """Predictions without a temperature, which is how the paper measures."""
    return replace(answered, tempered=answered.raw)


def _cell(
    plan: ExperimentPlan,
    method: str,
    member: int,
    turned: Mapping[str, int | float],
    sampler: str | None = None,
) -> Cell:
    eval_spec = many_items(plan, int(turned["top_k"])) if "top_k" in turned else five_items(plan)
    # A knob at its default is not set, so that all sweeps share the cell of the default; robust
    # mode has other defaults.
    settings: dict[str, Setting] = {
        name: value
        for name, value in turned.items()
        if name != "top_k" and (method == ROBUST or value != KNOBS[name].default)
    }
    settings["member"] = member
    if sampler is not None:
        settings["sampler"] = sampler
    return Cell(main_train_spec(plan), eval_spec, method, _ordered(settings))


def _ordered(settings: Mapping[str, Setting]) -> Settings:
    return tuple(sorted(settings.items()))


SAMPLERS = ("plain", "orthogonal")
Turned = Mapping[str, int | float]


@dataclass(frozen=True)
class Point:
    """A value of a knob in paper mode: the best network and all networks without a temperature,
    and all networks at fitted temperatures."""

    value: int | float
    best: Summary
    raw: Summary
    tempered: Summary


@dataclass(frozen=True)
class RobustLine:
    """Robust mode with one sampler over the values of a knob. ``alone`` is robust mode with the
    knob not set: a description and its summary."""

    title: str
    values: tuple[int | float, ...]
    summaries: tuple[Summary, ...]
    alone: tuple[str, Summary] | None = None


@dataclass(frozen=True)
class Sweep:
    knob: Knob
    points: tuple[Point, ...]
    robust: tuple[RobustLine, ...]


def paper_runs(plan: ExperimentPlan, turned: Turned) -> list[Cell]:
    """One cell per network, the best first."""
    return [paper_cell(plan, member, turned) for member in members(plan)]


def robust_runs(plan: ExperimentPlan, knob: Knob, value: float, sampler: str | None) -> list[Cell]:
    return [robust_cell(plan, member, {knob.name: value}, sampler) for member in members(plan)]


def robust_default(plan: ExperimentPlan) -> list[Cell]:
    return [robust_cell(plan, member, {}) for member in members(plan)]


def robust_ways(knob: Knob) -> tuple[str | None, ...]:
    """The samplers with which robust mode is run for a knob: none for α, which it does not have;
    the number of samples needs a sampler."""
    if knob.name == "alpha":
        return ()
    return SAMPLERS if knob.name == "n_samples" else (None,)


def make_sweep(plan: ExperimentPlan, knob: Knob, results: ResultReader) -> Sweep:
    points = tuple(_point(plan, knob, value, results) for value in knob.values)
    lines = [_robust_line(plan, knob, sampler, results) for sampler in robust_ways(knob)]
    if knob.name == "alpha":
        lines.append(RobustLine("Robust mode, which has no α", (), (), _alone(plan, knob, results)))
    return Sweep(knob, points, tuple(lines))


def _point(plan: ExperimentPlan, knob: Knob, value: float, results: ResultReader) -> Point:
    runs = results.runs(paper_runs(plan, {knob.name: value}))
    raw = [without_temperature(run) for run in runs]
    return Point(value, summarise(raw[:1]), summarise(raw), summarise(runs))


def _robust_line(
    plan: ExperimentPlan, knob: Knob, sampler: str | None, results: ResultReader
) -> RobustLine:
    summaries = tuple(
        results.summary(robust_runs(plan, knob, value, sampler)) for value in knob.values
    )
    title = "Robust mode" if sampler is None else f"Robust mode, {sampler} samples"
    alone = None if knob.name == "top_k" else _alone(plan, knob, results)
    return RobustLine(title, knob.values, summaries, alone)


def _alone(plan: ExperimentPlan, knob: Knob, results: ResultReader) -> tuple[str, Summary]:
    words = {"n_samples": "no samples: at the mean", "temperature": "fitted", "alpha": "none"}
    return words[knob.name], results.summary(robust_default(plan))


def others_at_default(knob: Knob) -> str:
    rest = [f"{one.symbol} = {one.default:g}" for one in KNOBS.values() if one is not knob]
    return f"Compliance, all other knobs at the paper's default ({', '.join(rest)})."


def described_test(plan: ExperimentPlan, knob: Knob) -> str:
    eval_spec = paper_cell(plan, 0, {knob.name: knob.default}).eval_spec
    items = f"{MANY_ITEMS} items each to choose from" if knob.name == "top_k" else "five items each"
    return f"{eval_spec.entities:,} new companies with {items}."


# Measures of the best network, compared with the paper's; then over networks, without and with T.
BEST = ("accuracy", "nll", "ece", "macro_f1", "brier_over_k", "mean_confidence")
OVER = ("accuracy", "nll", "ece")
TEMPERED = ("nll", "ece")
ROBUST_MEASURES = ("nll", "accuracy", "ece", "ece_null", "mean_confidence")
WHAT_IS_FITTED = {
    "n_samples": "Parameters are fitted with decoding at the mean, which samples then replace.",
    "temperature": "T replaces the fitted temperature; all other parameters stay as fitted.",
    "top_k": "Parameters are fitted on five items per entity.",
}


def paper_table(plan: ExperimentPlan, sweep: Sweep) -> Table:
    knob, networks = sweep.knob, len(members(plan))
    return Table(
        f"ablation_{knob.name}",
        f"Paper mode by {knob.title.lower()}",
        f"{others_at_default(knob)} {described_test(plan, knob)} First the best network of the "
        f"search, as in the paper, then mean and sd over {networks} of its "
        f"{len(plan.main_seeds)} networks, from the best to the last. Measured without a fitted "
        "temperature, as in the paper; only the columns 'after T' have one, fitted on 135 "
        "validation companies with five items each. The paper's numbers are for 135 companies.",
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
    return Value.of(spread, paper, doubt)


def robust_table(plan: ExperimentPlan, sweep: Sweep) -> Table:
    knob = sweep.knob
    rows = [row for line in sweep.robust for row in _robust_rows(knob, line)]
    alone = sweep.robust[0].alone
    if alone is not None:
        rows.insert(0, _robust_row("default", f"Robust mode, {alone[0]}", alone[1]))
    return Table(
        f"robust_{knob.name}",
        f"Robust mode by {knob.title.lower()}",
        f"The same networks, one at a time, on the same companies: mean and sd over "
        f"{len(members(plan))}. {WHAT_IS_FITTED[knob.name]} {described_test(plan, knob)}",
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


FIGURES = {"accuracy": "Accuracy", "ece": "ECE", "nll": "NLL"}


def knob_figure(plan: ExperimentPlan, sweep: Sweep, measure: str) -> Figure:
    knob = sweep.knob
    return Figure(
        f"{knob.name}_{measure}",
        f"{FIGURES[measure]} by {knob.title.lower()}",
        f"{others_at_default(knob)} {described_test(plan, knob)} Means over {len(members(plan))} "
        "networks with 95 % intervals over networks and companies.",
        "lines",
        f"{knob.title} {knob.symbol}" if knob.symbol != knob.name else knob.title,
        FIGURES[measure],
        _lines(sweep, measure),
        knob.log_x,
    )


def _lines(sweep: Sweep, measure: str) -> tuple[Series, ...]:
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
    return (*series, printed) if printed.x else tuple(series)


def _line(
    title: str,
    values: Sequence[float],
    summaries: Sequence[Summary],
    measure: str,
    standing: Standing = "rival",
) -> Series:
    """Bounds are left out if a point has none."""
    spreads = [summary.spreads.get(measure) for summary in summaries]
    bounds = [
        (one.low, one.high)
        for one in spreads
        if one is not None and one.low is not None and one.high is not None
    ]
    has_bounds = len(bounds) == len(spreads)
    return Series(
        title,
        tuple(map(float, values)),
        tuple(_finite(one) for one in spreads),
        tuple(low for low, _ in bounds) if has_bounds else (),
        tuple(high for _, high in bounds) if has_bounds else (),
        standing,
    )


def _printed_line(knob: Knob, measure: str) -> Series:
    """The paper's numbers over the same knob."""
    numbers = {
        value: printed.value
        for value in knob.values
        if (printed := printed_at(knob, value, measure)) is not None
    }
    return Series(
        "Printed in the paper",
        tuple(map(float, numbers)),
        tuple(numbers.values()),
        standing="reference",
    )


def _finite(spread: Spread | None) -> float | None:
    return None if spread is None or not math.isfinite(spread.mean) else spread.mean
