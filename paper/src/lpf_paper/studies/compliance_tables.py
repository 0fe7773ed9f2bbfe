"""Tables of compliance: all methods on both eval_specs, and the ensemble on parts of the large one.

How often the method that reproduces a collapse did collapse.

Who is run how often on compliance: by seed of the search, by repetition, or once.

Who is taken for what on the paper's test, beside the matrices that the paper prints.

The search for networks on compliance, seed by seed: what training printed of each.

LPF-SPN over the seeds of the search, in the numbers that the paper sums its seeds up in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite, sqrt

import numpy as np

from lpf.evaluation.measures import SubsetScores, by_credibility, by_label, confusion_of, measures
from lpf.evaluation.method_names import standing_of, title_of
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.specs import Cell, DomainData, EvalSpec, TrainSpec
from lpf.evaluation.summaries import Spread
from lpf.training.history import SeedHistory, spread
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Figure, Row, Series, Standing, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.printed import PrintedTable, printed_slugs, printed_table
from lpf_paper.studies.domains_tables import TEST_SEED
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_figures import answers_of
from lpf_paper.studies.study_tables import (
    COLUMNS,
    NOT_RUN,
    comparison_table,
    counted,
    method_table,
    plain_value,
    printed_value,
    with_printed_rows,
)

COLLAPSED = "edl_individual_broken"
NEARLY_ALL = 0.99


def with_collapse_note(table: Table, runs: Runs, results: ResultReader) -> Table:
    """The note of its row says in how many runs; the table as it is where no run has answers."""
    there = [one for one in results.runs(runs.get(COLLAPSED, ())) if one.error is None]
    if not there:
        return table
    told = _told(sum(map(is_collapsed, there)), len(there))
    rows = tuple(
        replace(row, note="; ".join(filter(None, (row.note, told))))
        if row.name == COLLAPSED
        else row
        for row in table.rows
    )
    return replace(table, rows=rows)


def is_collapsed(answered: Predictions) -> bool:
    """Whether one value is answered to nearly everybody, whatever its probability."""
    counts = np.bincount(answered.answers.argmax(axis=1))
    return bool(counts.max() >= NEARLY_ALL * len(answered.labels))


def _told(collapsed: int, runs: int) -> str:
    return (
        f"in {collapsed} of {counted(runs, 'run')} it answers one and the same value to "
        f"{100 * NEARLY_ALL:.0f} % of companies or more"
    )


PAPER_MEASURES = (
    "accuracy",
    "macro_f1",
    "weighted_f1",
    "nll",
    "brier_over_k",
    "ece",
    "runtime_ms",
)
OWN_MEASURES = ("nll", "accuracy", "macro_f1", "brier", "ece", "ece_null", "ece_p", "raw_nll")
MORE_MEASURES = (
    "weighted_f1",
    "brier_over_k",
    "ece_15",
    "ece_mass",
    "mce",
    "classwise_ece",
    "raw_nll",
    "raw_ece",
    "aurc",
)
CONFIDENCE_MEASURES = (
    "mean_confidence",
    "confidence_sd",
    "high_confidence_errors",
    "low_confidence_correct",
)
COST_MEASURES = ("runtime_ms", "per_second", "fit_seconds", "stored_bytes", "peak_bytes")
PART_COLUMNS = (
    Column("entities", "Entities", "count", None, 0),
    Column("accuracy", "Accuracy", "share", None, 4),
    Column("nll", "NLL", "number", None, 4),
    Column("mean_confidence", "Mean confidence", "share", None, 4),
    Column("ece", "ECE", "share", None, 4),
    Column("ece_null", "ECE if perfect", "share", None, 4),
)


def small_table(plan: ExperimentPlan, small: Runs, results: ResultReader) -> Table:
    """The one that the paper has, with those of its methods that were not run here."""
    shown = _beside_papers(
        "main",
        "The paper's test: 135 companies",
        f"{_how(plan)} One error is .0074 of accuracy here. Queries without reading the texts, "
        "except for the transformer, which is nothing but that.",
        small,
        PAPER_MEASURES,
        results,
        "main_results",
    )
    return with_collapse_note(shown, small, results)


def large_table(plan: ExperimentPlan, large: Runs, results: ResultReader) -> Table:
    shown = method_table(
        "large",
        f"The same on {plan.asked:,} new companies in unseen wordings",
        f"{_how(plan)} 'ECE if perfect' is what a perfectly calibrated predictor with the same "
        "confidences would show on so many companies, p(perfect) how often it would show more "
        "(mean over runs).",
        large,
        OWN_MEASURES,
        results,
    )
    return with_collapse_note(shown, large, results)


def more_table(plan: ExperimentPlan, large: Runs, results: ResultReader) -> Table:
    return method_table(
        "more",
        "More measures",
        f"On the same {plan.asked:,} new companies, methods in the same order. ECE has ten bins of "
        "equal width unless it says otherwise, equal mass 15; MCE is the largest gap of a bin, and "
        "in a bin of few companies large by chance. AURC is the error rate among the surest "
        "answers, averaged over how many of them are taken. Before T is before the temperature.",
        large,
        MORE_MEASURES,
        results,
    )


def against_table(large: Runs, results: ResultReader) -> Table:
    return comparison_table(
        "against",
        "Paired on the same companies, the ensemble's one run beside every run of another; below 0 "
        "the ensemble is better. Intervals of 95 % over companies and runs together, p-values "
        "corrected for the number of methods.",
        "lpf_robust",
        large,
        results,
    )


def confidence_table(plan: ExperimentPlan, small: Runs, results: ResultReader) -> Table:
    return _beside_papers(
        "confidence",
        "How sure they sound",
        "Shares of all companies; high is above .8, low below .5. " + _how(plan),
        small,
        CONFIDENCE_MEASURES,
        results,
        "confidence",
    )


def costs_table(small: Runs, results: ResultReader) -> Table:
    return _beside_papers(
        "costs",
        "What they cost",
        "One query is the median of single companies asked alone, without reading their texts; "
        "queries a second are all asked at once, on one core. Training includes networks that "
        "a method shares with others. Memory is that of Python and NumPy.",
        small,
        COST_MEASURES,
        results,
        "runtime",
    )


def parts_tables(large: Runs, results: ResultReader) -> list[Table]:
    """None where every run of the ensemble crashed."""
    answered = answers_of(large["lpf_robust"], results)
    if answered is None:
        return []
    return [
        _parts_table("by_label", "By true value", by_label(answered)),
        _parts_table(
            "by_credibility", "By the evidence's mean credibility", by_credibility(answered)
        ),
    ]


def _beside_papers(
    name: str,
    title: str,
    caption: str,
    runs: Runs,
    measures: Sequence[str],
    results: ResultReader,
    printed: str,
) -> Table:
    shown = method_table(name, title, caption, runs, measures, results, printed)
    return with_printed_rows(shown, printed_table(printed))


def _parts_table(name: str, title: str, parts: Sequence[SubsetScores]) -> Table:
    caption = f"{title_of('lpf_robust')} on the large test set."
    return Table(name, title, caption, PART_COLUMNS, tuple(map(_part_row, parts)))


def _part_row(part: SubsetScores) -> Row:
    cells = tuple(plain_value(getattr(part, column.name)) for column in PART_COLUMNS)
    return Row(part.name, part.name, cells)


def _how(plan: ExperimentPlan) -> str:
    seeds = f"{len(plan.main_seeds)} seeds of the search"
    repeats = counted(len(plan.main_repetitions), "repetition")
    return (
        f"LPF and VAE-Only with one network: mean and sd over all {seeds}, the worst among them; "
        "their ensembles: the best five of these, one run. What stands on the classifier has the "
        f"best of as many networks, and like all else that draws is run in {repeats}. All methods "
        "but references at a temperature fitted on the same 135 validation companies, robust mode "
        "at its own."
    )


DOMAIN = "compliance"
# One network at a time: a run of these is one seed of the search.
BY_SEED = (
    "lpf_robust_single",
    "lpf_paper",
    "lpf_paper_best",
    "lpf_learned_published",
    "vae_only",
)
REFERENCES = ("prior", "perfect_reader", "oracle")
# Nothing in these depends on the seed that repetitions change.
ONCE = ("lpf_robust", "lpf_learned", "vae_only_ensemble", *REFERENCES)
SLOW = ("transformer",)  # minutes a run


def train_spec(plan: ExperimentPlan, repetition: int = 1) -> TrainSpec:
    return TrainSpec(DomainData(DOMAIN), seed=repetition, seeds=plan.main_seeds)


def large_eval_spec(plan: ExperimentPlan) -> EvalSpec:
    return EvalSpec(DomainData(DOMAIN, seed=TEST_SEED), entities=plan.asked)


def main_runs(plan: ExperimentPlan, eval_spec: EvalSpec) -> Runs:
    """The cells of each method: one a seed of the search, one a repetition, or one."""
    return {method: _cells(plan, eval_spec, method) for method in plan.methods}


def _cells(plan: ExperimentPlan, eval_spec: EvalSpec, method: str) -> list[Cell]:
    if method in BY_SEED:
        members = range(len(plan.main_seeds))
        return [
            Cell(train_spec(plan), eval_spec, method, (("member", place),)) for place in members
        ]
    repeated = plan.main_repetitions[:1] if method in ONCE else plan.main_repetitions
    if method in SLOW:
        repeated = repeated[:1]
    return [Cell(train_spec(plan, repetition), eval_spec, method) for repetition in repeated]


OURS = "lpf_robust"
PREFIX = f"confusion_{DOMAIN}_"


def confusion_table(small: Runs, results: ResultReader) -> Table:
    """Three rows a method: the ensemble's, and those of methods whose matrix the paper prints."""
    beside = _printed()
    values = next(iter(beside.values())).columns
    rows = [
        row
        for method in (OURS, *beside)
        for row in _rows(method, values, small, results, beside.get(method))
    ]
    return Table(
        "confusions",
        "Who is taken for what: 135 companies",
        "A row is a true value, a column what was answered: mean and sd of the counts over runs. "
        "The paper's companies are others, with other numbers of each true value.",
        tuple(Column(value, f"Answered {value}", "count", None, 1) for value in values),
        tuple(rows),
    )


def _printed() -> dict[str, PrintedTable]:
    """By method."""
    slugs = [slug for slug in printed_slugs() if slug.startswith(PREFIX)]
    return {slug.removeprefix(PREFIX): printed_table(slug) for slug in slugs}


def _rows(
    method: str,
    values: tuple[str, ...],
    runs: Runs,
    results: ResultReader,
    beside: PrintedTable | None,
) -> Iterator[Row]:
    counts = _counts(method, values, runs, results)
    note = "; ".join(results.summary(runs[method]).notes) or None if method in runs else NOT_RUN
    for place, truth in enumerate(values):
        cells = []
        for column, answer in enumerate(values):
            paper, doubt = printed_value(beside, truth, answer)
            cells.append(_cell(counts[:, place, column], paper, doubt))
        title = f"{title_of(method)}: {truth}"
        yield Row(f"{method}_{truth}", title, tuple(cells), standing_of(method), note)


def _counts(method: str, values: tuple[str, ...], runs: Runs, results: ResultReader) -> FloatArray:
    """[R, V, V] of the runs that have answers: true value, answer, in the order of ``values``."""
    there = [one for one in results.runs(runs.get(method, ())) if one.error is None]
    orders = [[one.values.index(value) for value in values] for one in there]
    found = [
        confusion_of(one)[np.ix_(order, order)] for one, order in zip(there, orders, strict=True)
    ]
    return np.array(found, np.float64).reshape(len(found), len(values), len(values))


def _cell(counts: FloatArray, paper: float | None, doubt: str | None) -> Value | None:
    """``counts`` [R] of one place in the matrix."""
    if not len(counts):
        return None if paper is None else Value(None, paper=paper, doubt=doubt)
    sd = float(counts.std(ddof=1)) if len(counts) > 1 else None
    return Value(float(counts.mean()), sd, paper=paper, doubt=doubt)


SEED_COLUMNS = (
    Column("validation_accuracy", "Items right", "share", "higher", 4),
    Column("validation_loss", "Validation loss", "number", "lower", 4),
    Column("validation_cross_entropy", "Cross-entropy", "number", "lower", 4),
    Column("validation_kl", "KL", "number", None, 2),
    Column("best_epoch", "Best epoch", "count", None, 0),
)


def seeds_table(plan: ExperimentPlan, results: ResultReader) -> Table:
    """With what the paper prints beside it."""
    beside = printed_table("compliance_seeds")
    histories = results.models.load(train_spec(plan)).histories
    accuracy = spread(histories, "validation_accuracy")
    return Table(
        "seeds",
        "The search, seed by seed",
        f"Single items of validation companies; {accuracy.mean:.4f} ± {accuracy.sd:.4f} over "
        f"all, {accuracy.selected:.4f} for the selected one.",
        SEED_COLUMNS,
        tuple(_row(history, beside) for history in histories),
    )


def training_figures(plan: ExperimentPlan, results: ResultReader) -> list[Figure]:
    histories = results.models.load(train_spec(plan)).histories
    return [_accuracy_figure(histories), _loss_figure(histories)]


def _row(history: SeedHistory, beside: PrintedTable) -> Row:
    cells = []
    for column in SEED_COLUMNS:
        paper, doubt = printed_value(beside, str(history.seed), column.name)
        cells.append(Value(_of(history, column.name), paper=paper, doubt=doubt))
    note = None if history.converged else "stopped by the number of epochs, not by patience"
    return Row(str(history.seed), f"Seed {history.seed}", tuple(cells), "rival", note)


def _of(history: SeedHistory, name: str) -> float:
    return float(history.best_epoch if name == "best_epoch" else getattr(history.best, name))


def _accuracy_figure(histories: Sequence[SeedHistory]) -> Figure:
    right = [history.best.validation_accuracy for history in histories]
    return Figure(
        "seed_variance",
        "How much the seed matters",
        "Accuracy on single items of validation companies, at the best epoch of each seed.",
        "bars",
        "Seed",
        "Accuracy",
        (_bars("Validation items right", histories, right, "ours"),),
    )


def _loss_figure(histories: Sequence[SeedHistory]) -> Figure:
    best = [history.best for history in histories]
    entropies = [epoch.validation_cross_entropy for epoch in best]
    weighted = [epoch.validation_loss - epoch.validation_cross_entropy for epoch in best]
    return Figure(
        "loss_parts",
        "What the loss is made of",
        "Validation loss of each seed at its best epoch, in its two parts.",
        "bars",
        "Seed",
        "Loss",
        (
            _bars("Cross-entropy", histories, entropies, "ours"),
            _bars("β·KL", histories, weighted, "rival"),
        ),
    )


def _bars(
    name: str, histories: Sequence[SeedHistory], heights: Sequence[float], standing: Standing
) -> Series:
    seeds = tuple(str(history.seed) for history in histories)
    return Series(name, seeds, tuple(heights), standing=standing)


METHOD = "lpf_paper_best"
MEASURES = ("accuracy", "macro_f1", "nll", "brier_over_k", "ece", "raw_nll", "raw_ece")
PRINTED_AS = {"brier_over_k": "brier"}
STATISTICS = (
    Column("mean", "Mean", "number", None, 4),
    Column("sd", "sd", "number", None, 4),
    Column("best", "Best seed", "number", None, 4),
    Column("worst", "Worst seed", "number", None, 4),
    Column("half_width", "Half of 95 % interval", "number", None, 4),
)
NORMAL = 1.96


def seed_stats_table(small: Runs, results: ResultReader) -> Table:
    """On the paper's test. Where no run has answers, the paper's numbers stand alone."""
    cells = small.get(METHOD, ())
    summary = results.summary(cells)
    beside = printed_table("seed_stats")
    found = [measures(one) for one in results.runs(cells) if one.error is None]
    rows = []
    for measure in MEASURES:
        numbers = [one[measure] for one in found if measure in one]
        statistics = _statistics(measure, summary.spreads.get(measure), numbers)
        rows.append(_row_seed_stats(measure, statistics, beside))
    return Table(
        "seed_stats",
        "What the seed changes: 135 companies",
        " ".join([_how_seed_stats(len(cells)), *(f"{note}." for note in summary.notes)]),
        STATISTICS,
        tuple(rows),
    )


def _how_seed_stats(seeds: int) -> str:
    return (
        f"{title_of(METHOD)}, {counted(seeds, 'seed')} of the search, each alone; before T is as "
        "published. Best and worst are looked for measure by measure, after the test: nobody could "
        f"have chosen them. Half of the interval is {NORMAL} sd over the root of the number of "
        "seeds, for the mean over other seeds on the same companies."
    )


def _statistics(measure: str, spread: Spread | None, numbers: Sequence[float]) -> dict[str, float]:
    """By the names of the columns; without those that there are none of."""
    if spread is None:
        return {}
    ends = sorted(numbers, reverse=COLUMNS[measure].better == "higher")
    found = {"mean": spread.mean, "best": ends[0], "worst": ends[-1]}
    if spread.sd is not None:
        found |= {"sd": spread.sd, "half_width": NORMAL * spread.sd / sqrt(spread.runs)}
    return {name: number for name, number in found.items() if isfinite(number)}


def _row_seed_stats(measure: str, statistics: dict[str, float], beside: PrintedTable) -> Row:
    printed = PRINTED_AS.get(measure, measure)
    cells = []
    for column in STATISTICS:
        paper, doubt = printed_value(beside, printed, column.name)
        number = statistics.get(column.name)
        there = number is not None or paper is not None
        cells.append(Value(number, paper=paper, doubt=doubt) if there else None)
    return Row(measure, COLUMNS[measure].title, tuple(cells))
