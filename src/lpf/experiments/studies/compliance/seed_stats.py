"""LPF-SPN over the seeds of the search, in the numbers that the paper sums its seeds up in."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt

from lpf.experiments.exhibits import Column, Row, Table, Value
from lpf.experiments.judging.measures import measures
from lpf.experiments.judging.summaries import Spread
from lpf.experiments.naming import title_of
from lpf.experiments.printed.tables import PrintedTable, printed_table
from lpf.experiments.studies.book import Book, Runs
from lpf.experiments.studies.tables import COLUMNS, counted, printed_value

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


def seed_stats_table(small: Runs, book: Book) -> Table:
    """On the paper's test. Where no run has answers, the paper's numbers stand alone."""
    cells = small.get(METHOD, ())
    summary = book.summary(cells)
    beside = printed_table("seed_stats")
    found = [measures(one) for one in book.runs(cells) if one.error is None]
    rows = []
    for measure in MEASURES:
        numbers = [one[measure] for one in found if measure in one]
        statistics = _statistics(measure, summary.spreads.get(measure), numbers)
        rows.append(_row(measure, statistics, beside))
    return Table(
        "seed_stats",
        "What the seed changes: 135 companies",
        " ".join([_how(len(cells)), *(f"{note}." for note in summary.notes)]),
        STATISTICS,
        tuple(rows),
    )


def _how(seeds: int) -> str:
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


def _row(measure: str, statistics: dict[str, float], beside: PrintedTable) -> Row:
    printed = PRINTED_AS.get(measure, measure)
    cells = []
    for column in STATISTICS:
        paper, doubt = printed_value(beside, printed, column.name)
        number = statistics.get(column.name)
        there = number is not None or paper is not None
        cells.append(Value(number, paper=paper, doubt=doubt) if there else None)
    return Row(measure, COLUMNS[measure].title, tuple(cells))
