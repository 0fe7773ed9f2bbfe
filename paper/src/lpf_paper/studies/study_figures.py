"""Figures that several studies share, and methods along one axis, such as a level of corruption."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from lpf.evaluation import (
    DRAWS,
    Cell,
    Predictions,
    compare,
    confusion_of,
    reliability_of,
    risk_coverage_of,
    standing_of,
    title_of,
)
from lpf.metrics import Difference
from lpf.training import wilson
from lpf_paper.exhibits import Column, Figure, Row, Series, Standing, Table
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_tables import COLUMNS, cell_value, mean_of_row


def answers_of(cells: Sequence[Cell], results: ResultReader) -> Predictions | None:
    """Predictions of the first run that has some; None if every run crashed."""
    return next((one for one in results.runs(cells) if one.error is None), None)


def with_points(figures: Sequence[Figure]) -> list[Figure]:
    """The figures that have something to draw. If all methods of a figure crashed, the tables say
    so, and a report rejects an empty figure."""
    return [figure for figure in figures if any(map(_has_points, figure.series))]


def _has_points(series: Series) -> bool:
    return any(y is not None and np.isfinite(y) for y in series.y)


def reliability_figure(name: str, caption: str, runs: Runs, results: ResultReader) -> Figure:
    """From the first run of each method with answers; empty bins are left out."""
    found = {method: answers_of(cells, results) for method, cells in runs.items()}
    return Figure(
        name,
        "Are the confidences right?",
        caption,
        "reliability",
        "Confidence",
        "Share that is right",
        tuple(
            reliability_series(title_of(method), one, standing_of(method))
            for method, one in found.items()
            if one is not None
        ),
    )


def risk_figure(name: str, caption: str, runs: Runs, results: ResultReader) -> Figure:
    """From the first run of each method with answers."""
    series = []
    for method, cells in runs.items():
        if (answered := answers_of(cells, results)) is None:
            continue
        curve = risk_coverage_of(answered)
        series.append(
            Series(
                title_of(method),
                tuple(curve.coverage.tolist()),
                tuple(curve.risk.tolist()),
                standing=standing_of(method),
            )
        )
    return Figure(
        name,
        "Errors among the most confident answers",
        caption,
        "lines",
        "Share of entities answered",
        "Error rate among them",
        tuple(series),
    )


def scatter_figure(
    name: str, caption: str, runs: Runs, results: ResultReader, x: str = "ece"
) -> Figure:
    """Accuracy against ECE, one point per method."""
    series = []
    for method, cells in runs.items():
        spreads = results.summary(cells).spreads
        if x in spreads and standing_of(method) != "reference":
            series.append(
                Series(
                    title_of(method),
                    (spreads[x].mean,),
                    (spreads["accuracy"].mean,),
                    standing=standing_of(method),
                )
            )
    return Figure(
        name, "Accuracy and calibration", caption, "points", "ECE", "Accuracy", tuple(series)
    )


def bar_figure(
    name: str,
    title: str,
    caption: str,
    runs: Runs,
    measure: str,
    y_title: str,
    results: ResultReader,
) -> Figure:
    """One bar per method, shortest first."""
    found = []
    for method, cells in runs.items():
        spread = results.summary(cells).spreads.get(measure)
        if spread is not None and np.isfinite(spread.mean):
            found.append((spread.mean, spread.low, spread.high, method))
    found.sort(key=lambda one: one[0])
    bounded = all(low is not None and high is not None for _, low, high, _ in found)
    series = Series(
        y_title,
        tuple(title_of(method) for *_, method in found),
        tuple(mean for mean, *_ in found),
        tuple(float(low or 0.0) for _, low, _, _ in found) if bounded else (),
        tuple(float(high or 0.0) for _, _, high, _ in found) if bounded else (),
        "ours",
    )
    return Figure(name, title, caption, "bars", "", y_title, (series,))


def error_figure(name: str, caption: str, runs: Runs, results: ResultReader) -> Figure:
    """Error rates with the intervals of the accuracies."""
    bars = bar_figure(name, "Error rates", caption, runs, "accuracy", "Error rate", results).series[
        0
    ]
    order = range(len(bars.x) - 1, -1, -1)
    series = Series(
        bars.name,
        tuple(bars.x[at] for at in order),
        tuple(1.0 - float(bars.y[at] or 0.0) for at in order),
        tuple(1.0 - bars.high[at] for at in order) if bars.high else (),
        tuple(1.0 - bars.low[at] for at in order) if bars.low else (),
        "ours",
    )
    return Figure(name, "Error rates", caption, "bars", "", "Error rate", (series,))


def confusion_figure(
    name: str, caption: str, method: str, runs: Runs, results: ResultReader
) -> Figure:
    """From the method's first run with answers; without rows if there is none."""
    answered = answers_of(runs[method], results)
    title = f"Confusion matrix: {title_of(method)}"
    rows = () if answered is None else _confusion(answered)
    return Figure(name, title, caption, "matrix", "Answer", "Truth", rows)


def _confusion(answered: Predictions) -> tuple[Series, ...]:
    return tuple(
        Series(value, answered.values, tuple(float(count) for count in row))
        for value, row in zip(answered.values, confusion_of(answered), strict=True)
    )


def reliability_series(name: str, answered: Predictions, standing: Standing = "rival") -> Series:
    """One point per non-empty bin, with the 95 % interval of the accuracy."""
    table = reliability_of(answered)
    used = table.count > 0
    accuracy, count = table.accuracy[used].tolist(), table.count[used].tolist()
    bounds = [wilson(round(right * of), int(of)) for right, of in zip(accuracy, count, strict=True)]
    return Series(
        name,
        tuple(table.confidence[used].tolist()),
        tuple(accuracy),
        tuple(low for low, _ in bounds),
        tuple(high for _, high in bounds),
        standing,
    )


@dataclass(frozen=True)
class Steps:
    """The values ``x`` of a knob and their names ``words``. ``runs`` has the cells of each method
    for each value, one per data set."""

    x: tuple[float, ...]
    words: tuple[str, ...]
    runs: Mapping[str, tuple[tuple[Cell, ...], ...]]

    def at(self, place: int) -> dict[str, Sequence[Cell]]:
        return {method: cells[place] for method, cells in self.runs.items()}

    def mean(self, method: str, measure: str, place: int, results: ResultReader) -> float:
        """NaN if no run has answers."""
        spread = results.summary(self.runs[method][place]).spreads.get(measure)
        return np.nan if spread is None else spread.mean


def step_table(
    name: str, title: str, caption: str, steps: Steps, measure: str, results: ResultReader
) -> Table:
    """One row per method, the best on average first; one column per step."""
    like = COLUMNS[measure]
    columns = tuple(
        Column(f"{measure}_{x:g}", word, like.kind, like.better, like.decimals)
        for x, word in zip(steps.x, steps.words, strict=True)
    )
    rows = [_row(method, steps, measure, results) for method in steps.runs]
    rows.sort(key=lambda row: mean_of_row(row, upwards=like.better != "higher"))
    return Table(name, title, caption, columns, tuple(rows))


def step_figure(
    name: str,
    title: str,
    caption: str,
    x_title: str,
    steps: Steps,
    measure: str,
    results: ResultReader,
    *,
    log_x: bool = False,
) -> Figure:
    """One line per method."""
    return _figure(
        name,
        title,
        caption,
        (x_title, COLUMNS[measure].title),
        steps,
        lambda method, place: steps.mean(method, measure, place, results),
        log_x,
    )


def gap_figure(
    name: str, title: str, caption: str, x_title: str, steps: Steps, results: ResultReader
) -> Figure:
    """Overconfidence of each method over the steps."""
    return _figure(
        name,
        title,
        caption,
        (x_title, "Mean confidence minus accuracy"),
        steps,
        lambda method, place: overconfidence(steps, method, place, results),
    )


def overconfidence(steps: Steps, method: str, place: int, results: ResultReader) -> float:
    """Mean confidence minus accuracy."""
    sure, right = (
        steps.mean(method, measure, place, results) for measure in ("mean_confidence", "accuracy")
    )
    return sure - right


def lost_nll(
    steps: Steps, method: str, results: ResultReader, place: int = -1
) -> Difference | None:
    """NLL at a place minus that at the first, on the same entities. None if answers are missing
    or a loss is infinite."""
    cells = steps.runs[method]
    before, after = results.runs(cells[0]), results.runs(cells[place])
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


def _row(method: str, steps: Steps, measure: str, results: ResultReader) -> Row:
    summaries = [results.summary(cells) for cells in steps.runs[method]]
    cells = tuple(cell_value(summary, measure) for summary in summaries)
    notes = dict.fromkeys(note for summary in summaries for note in summary.notes)
    return Row(method, title_of(method), cells, standing_of(method), "; ".join(notes) or None)
