"""A knob through all its values as lines: paper mode, robust mode, and what the paper prints."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lpf.experiments.exhibits import Figure, Series, Standing
from lpf.experiments.judging.summaries import Spread, Summary
from lpf.experiments.plan import Plan
from lpf.experiments.studies.knobs.cells import Knob, members, printed_at
from lpf.experiments.studies.knobs.sweeps import Sweep
from lpf.experiments.studies.knobs.words import others_at_default, who_is_asked

FIGURES = {"accuracy": "Accuracy", "ece": "ECE", "nll": "NLL"}


def knob_figure(plan: Plan, sweep: Sweep, measure: str) -> Figure:
    knob = sweep.knob
    return Figure(
        f"{knob.name}_{measure}",
        f"{FIGURES[measure]} by {knob.title.lower()}",
        f"{others_at_default(knob)} {who_is_asked(plan, knob)} Means over {len(members(plan))} "
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


def _finite(spread: Spread | None) -> float | None:
    return None if spread is None or not math.isfinite(spread.mean) else spread.mean
