"""Methods along one knob: how much was spoilt, or how much there was to learn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import Column, Figure, Row, Series, Table
from lpf.experiments.judging.comparisons import compare
from lpf.experiments.judging.summaries import DRAWS
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.tables import COLUMNS, cell_value, mean_of_row
from lpf.metrics import Difference


@dataclass(frozen=True)
class Steps:
    """``x`` are the places of the knob, ``words`` what they are called. ``runs`` has for each
    method the cells of each place, one a data set."""

    x: tuple[float, ...]
    words: tuple[str, ...]
    runs: Mapping[str, tuple[tuple[Cell, ...], ...]]

    def at(self, place: int) -> dict[str, Sequence[Cell]]:
        return {method: cells[place] for method, cells in self.runs.items()}

    def mean(self, method: str, measure: str, place: int, book: Book) -> float:
        """NaN where no run has answers."""
        spread = book.summary(self.runs[method][place]).spreads.get(measure)
        return np.nan if spread is None else spread.mean


def step_table(
    name: str, title: str, caption: str, steps: Steps, measure: str, book: Book
) -> Table:
    """One row a method, the best on average first; one column a place of the knob."""
    like = COLUMNS[measure]
    columns = tuple(
        Column(f"{measure}_{x:g}", word, like.kind, like.better, like.decimals)
        for x, word in zip(steps.x, steps.words, strict=True)
    )
    rows = [_row(method, steps, measure, book) for method in steps.runs]
    rows.sort(key=lambda row: mean_of_row(row, upwards=like.better != "higher"))
    return Table(name, title, caption, columns, tuple(rows))


def step_figure(
    name: str,
    title: str,
    caption: str,
    x_title: str,
    steps: Steps,
    measure: str,
    book: Book,
    *,
    log_x: bool = False,
) -> Figure:
    """One line a method."""
    return _figure(
        name,
        title,
        caption,
        (x_title, COLUMNS[measure].title),
        steps,
        lambda method, place: steps.mean(method, measure, place, book),
        log_x,
    )


def gap_figure(
    name: str, title: str, caption: str, x_title: str, steps: Steps, book: Book
) -> Figure:
    """How much surer each method is than right."""
    return _figure(
        name,
        title,
        caption,
        (x_title, "Mean confidence less accuracy"),
        steps,
        lambda method, place: overconfidence(steps, method, place, book),
    )


def overconfidence(steps: Steps, method: str, place: int, book: Book) -> float:
    """Mean confidence less accuracy: above 0 a method is surer than it is right."""
    sure, right = (
        steps.mean(method, measure, place, book) for measure in ("mean_confidence", "accuracy")
    )
    return sure - right


def lost_nll(steps: Steps, method: str, book: Book, place: int = -1) -> Difference | None:
    """NLL at a place less that at the first, on the same entities. None where answers are missing
    or a loss is infinite."""
    cells = steps.runs[method]
    before, after = book.runs(cells[0]), book.runs(cells[place])
    return compare(after, {method: before}, draws=DRAWS)[0].difference


def _figure(
    name: str,
    title: str,
    caption: str,
    axes: tuple[str, str],
    steps: Steps,
    height: Callable[[str, int], float],
    log_x: bool = False,
) -> Figure:
    series = []
    for method in steps.runs:
        heights = [height(method, place) for place in range(len(steps.x))]
        y = tuple(one if isfinite(one) else None for one in heights)
        series.append(Series(title_of(method), steps.x, y, standing=standing_of(method)))
    return Figure(name, title, caption, "lines", *axes, tuple(series), log_x)


def _row(method: str, steps: Steps, measure: str, book: Book) -> Row:
    summaries = [book.summary(cells) for cells in steps.runs[method]]
    cells = tuple(cell_value(summary, measure) for summary in summaries)
    notes = dict.fromkeys(note for summary in summaries for note in summary.notes)
    return Row(method, title_of(method), cells, standing_of(method), "; ".join(notes) or None)
