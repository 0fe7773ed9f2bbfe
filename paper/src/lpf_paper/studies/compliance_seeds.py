"""The search for networks on compliance, seed by seed, and how the seed affects test scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt

from lpf.evaluation import Spread, Standing, title_of
from lpf.training import SeedHistory, spread
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.printed import PrintedTable, printed_table
from lpf_paper.studies.compliance_runs import main_train_spec
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_tables import COLUMNS, counted, printed_value

SEED_COLUMNS = (
    Column("validation_accuracy", "Items right", "share", "higher", 4),
    Column("validation_loss", "Validation loss", "number", "lower", 4),
    Column("validation_cross_entropy", "Cross-entropy", "number", "lower", 4),
    Column("validation_kl", "KL", "number", None, 2),
    Column("best_epoch", "Best epoch", "count", None, 0),
)


def seeds_table(plan: ExperimentPlan, results: ResultReader) -> Table:
    """The history of each seed, with the numbers that the paper prints."""
    beside = printed_table("compliance_seeds")
    histories = results.models.load(main_train_spec(plan)).histories
    accuracy = spread(histories, "validation_accuracy")
    return Table(
        "seeds",
        "The search, seed by seed",
        f"Single items of validation companies; {accuracy.mean:.4f} ± {accuracy.sd:.4f} over "
        f"all, {accuracy.selected:.4f} for the selected one.",
        SEED_COLUMNS,
        tuple(_history_row(history, beside) for history in histories),
    )


def training_figures(plan: ExperimentPlan, results: ResultReader) -> list[Figure]:
    histories = results.models.load(main_train_spec(plan)).histories
    return [_accuracy_figure(histories), _loss_figure(histories)]


def _history_row(history: SeedHistory, beside: PrintedTable) -> Row:
    cells = []
    for column in SEED_COLUMNS:
        paper, doubt = printed_value(beside, str(history.seed), column.name)
        cells.append(Value(_of(history, column.name), paper=paper, doubt=doubt))
    note = None if history.converged else "stopped at the maximum number of epochs, not by patience"
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
        "The parts of the loss",
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
    """On the paper's test companies; without answers only the paper's numbers are shown."""
    cells = small.get(METHOD, ())
    summary = results.summary(cells)
    beside = printed_table("seed_stats")
    by_seed = [results.summary([cell]).spreads for cell in cells]
    rows = []
    for measure in MEASURES:
        numbers = [spreads[measure].mean for spreads in by_seed if measure in spreads]
        statistics = _statistics(measure, summary.spreads.get(measure), numbers)
        rows.append(_statistics_row(measure, statistics, beside))
    return Table(
        "seed_stats",
        "Effect of the seed: 135 companies",
        " ".join([_caption(len(cells)), *(f"{note}." for note in summary.notes)]),
        STATISTICS,
        tuple(rows),
    )


def _caption(seeds: int) -> str:
    return (
        f"{title_of(METHOD)}, {counted(seeds, 'seed')} of the search, each alone; before T is as "
        "published. Best and worst are picked for each measure after the test; they could not be "
        f"chosen in advance. Half of the interval is {NORMAL} sd over the root of the number "
        "of seeds, for the mean over other seeds on the same companies."
    )


def _statistics(measure: str, spread: Spread | None, numbers: Sequence[float]) -> dict[str, float]:
    """By column name; statistics that do not exist or are not finite are left out."""
    if spread is None:
        return {}
    ends = sorted(numbers, reverse=COLUMNS[measure].better == "higher")
    found = {"mean": spread.mean, "best": ends[0], "worst": ends[-1]}
    if spread.sd is not None:
        found |= {"sd": spread.sd, "half_width": NORMAL * spread.sd / sqrt(spread.runs)}
    return {name: number for name, number in found.items() if isfinite(number)}


def _statistics_row(measure: str, statistics: dict[str, float], beside: PrintedTable) -> Row:
    printed = PRINTED_AS.get(measure, measure)
    cells = []
    for column in STATISTICS:
        paper, doubt = printed_value(beside, printed, column.name)
        number = statistics.get(column.name)
        is_known = number is not None or paper is not None
        cells.append(Value(number, paper=paper, doubt=doubt) if is_known else None)
    return Row(measure, COLUMNS[measure].title, tuple(cells))
