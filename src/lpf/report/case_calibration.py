"""Charts of calibration, each with a sentence that says how to read it: a reliability diagram, and
for the model that answered also a risk-coverage curve, from its answers about held-out entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpf.metrics.calibration import Reliability, reliability_of_answers
from lpf.metrics.intervals import share_interval
from lpf.metrics.scores import RiskCoverage, risk_coverage_of_answers
from lpf.model.held_out import HeldOutAnswers
from lpf.report.foreign_text import shown
from lpf.report.page import paragraph
from lpf.report.waterfall import share
from lpf.sureness import FEWEST_TOLD

WIDTH, HEIGHT, LEFT, TOP, LOW = 300, 130, 52, 12, 38  # of a chart, in pixels
PER_DOT, MOST_DOTS = 25, 8  # held-out entities behind a dot of the diagram
LEAST_SHOWN = 5  # the share of errors among fewer answers is noise
MOST_POINTS = 100  # of the curve


@dataclass(frozen=True, eq=False)
class CaseCalibration:
    """``held`` are the model's answers about held-out entities, and ``confidence`` is that of this
    answer, or None if they say nothing about it."""

    held: HeldOutAnswers
    confidence: float | None = None


def calibration_charts(found: CaseCalibration | None) -> str:
    """Both charts side by side, or a sentence that there is nothing to draw."""
    if found is None:
        return paragraph(
            "How well its probabilities hold cannot be drawn: this model has no answers about "
            "held-out entities that were given in this way."
        )
    held = found.held
    if len(held) < FEWEST_TOLD:
        count = "entity was" if len(held) == 1 else "entities were"
        return paragraph(
            f"How well its probabilities hold cannot be drawn: only {len(held)} {count} held out, "
            f"at least {FEWEST_TOLD} are needed."
        )
    bins = int(np.clip(len(held) // PER_DOT, 1, MOST_DOTS))
    diagram = reliability_of_answers(held.confidence, held.right, bins, "mass")
    curve = risk_coverage_of_answers(held.confidence, held.right)
    return (
        '<div class="calibration">\n'
        f"{reliability_figure(diagram, confidence=found.confidence)}"
        f"{_figure('risk', *_risk(curve, found))}</div>"
    )


def _figure(name: str, title: str, spoken: str, drawn: str, caption: str) -> str:
    return (
        f'<figure><svg class="{name}" role="img" aria-labelledby="{name}-title {name}-words" '
        f'viewBox="0 0 {LEFT + WIDTH + 24} {TOP + HEIGHT + LOW}">\n'
        f'<title id="{name}-title">{shown(title)}</title>\n'
        f'<desc id="{name}-words">{shown(spoken)}</desc>\n{drawn}</svg>\n'
        f"<figcaption><strong>{shown(title)}</strong> {shown(caption)}</figcaption></figure>\n"
    )


def reliability_figure(
    found: Reliability,
    *,
    confidence: float | None = None,
    answers: str = "held-out answers",
    name: str = "reliability",
) -> str:
    """Confidence against how often ``answers`` were right. ``confidence`` is that of one answer to
    mark, and ``name`` is unique on the page."""
    counts = found.count.astype(np.float64)
    low, high = share_interval(found.accuracy * counts, counts)
    least = min(float(found.confidence.min()), float(low.min()), confidence or 1.0)
    begin = np.floor(10.0 * least) / 10.0
    axes = _Axes(float(begin), 1.0, float(begin), 1.0)
    dots = "".join(
        f"<g><title>{shown(_bin(count, sure, right))}</title>"
        f'<line class="chance" x1="{axes.x(sure)}" y1="{axes.y(bottom)}" x2="{axes.x(sure)}" '
        f'y2="{axes.y(top)}"/><circle class="for" cx="{axes.x(sure)}" cy="{axes.y(right)}" '
        'r="4"/></g>\n'
        for count, sure, right, bottom, top in zip(
            found.count.tolist(),
            found.confidence.tolist(),
            found.accuracy.tolist(),
            low.tolist(),
            high.tolist(),
            strict=True,
        )
    )
    diagonal = (
        f'<line class="even" x1="{axes.x(axes.left)}" y1="{axes.y(axes.left)}" '
        f'x2="{axes.x(1.0)}" y2="{axes.y(1.0)}"/>'
    )
    drawn = f"{axes.frame('confidence', 'right')}{diagonal}{_here(axes, confidence)}{dots}"
    spoken = "; ".join(
        _bin(*row)
        for row in zip(
            found.count.tolist(), found.confidence.tolist(), found.accuracy.tolist(), strict=True
        )
    )
    caption = (
        f"Each dot is a group of {answers}, all about as sure. On the diagonal, answers were "
        "right as often as they said; below it, less often. A line shows how far chance alone may "
        "have moved the dot (95 %)."
    )
    return _figure(name, "Were answers right as often as they said?", spoken, drawn, caption)


def _bin(count: int, sure: float, right: float) -> str:
    return f"{count:,} answers: {share(sure)} sure, {share(right)} right"


def _risk(found: RiskCoverage, case: CaseCalibration) -> tuple[str, str, str, str]:
    entities = len(found.risk)
    ranks = np.unique(
        np.linspace(min(LEAST_SHOWN, entities) - 1, entities - 1, MOST_POINTS).astype(np.intp)
    )
    coverage, risk = found.coverage[ranks], found.risk[ranks]
    most = max(0.05, float(np.ceil(20.0 * risk.max()) / 20.0))
    axes = _Axes(0.0, 1.0, 0.0, most)
    line = " ".join(
        f"{axes.x(x)},{axes.y(y)}" for x, y in zip(coverage.tolist(), risk.tolist(), strict=True)
    )
    place = None
    if case.confidence is not None:
        place = float((case.held.confidence >= case.confidence).mean())
    drawn = (
        f"{axes.frame('answers given, the surest first', 'wrong')}{_here(axes, place)}"
        f'<polyline class="curve" points="{line}"/>'
    )
    half = float(found.risk[max(0, (entities + 1) // 2 - 1)])
    numbers = f"of the surest half {share(half)}, of all {share(float(found.risk[-1]))}"
    apart = case.held.kind == "apart"
    used = "which were used for nothing else" if apart else "which also chose settings"
    caption = (
        "If only the surest answers were given, this share of them would be wrong: "
        f"{numbers}. The lower and the flatter, the better. "
        f"From {entities:,} held-out entities, {used}."
    )
    return "How many of the surest answers are wrong?", f"Wrong {numbers}", drawn, caption


@dataclass(frozen=True)
class _Axes:
    """From shares to pixels."""

    left: float
    right: float
    bottom: float
    top: float

    def x(self, number: float) -> str:
        return f"{LEFT + WIDTH * (number - self.left) / (self.right - self.left):.1f}"

    def y(self, number: float) -> str:
        return f"{TOP + HEIGHT * (self.top - number) / (self.top - self.bottom):.1f}"

    def frame(self, across: str, up: str) -> str:
        """Background, ticks at both ends and in the middle, and what the axes mean."""
        floor, middle = TOP + HEIGHT, LEFT + WIDTH / 2
        across_ticks = "".join(
            f'<text class="tick" x="{self.x(one)}" y="{floor + 15}">{_whole(one)}</text>'
            for one in _ticks(self.left, self.right)
        )
        up_ticks = "".join(
            f'<text class="axis end" x="{LEFT - 5}" y="{float(self.y(one)) + 4:.1f}">'
            f"{_whole(one)}</text>"
            for one in _ticks(self.bottom, self.top)
        )
        return (
            f'<rect class="room" x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>'
            f"{across_ticks}{up_ticks}"
            f'<text class="tick" x="{middle}" y="{floor + 31}">{shown(across)}</text>'
            f'<text class="axis" x="{LEFT + 6}" y="{TOP + 15}">{shown(up)}</text>\n'
        )


def _here(axes: _Axes, number: float | None) -> str:
    """A dashed line where this answer is."""
    if number is None:
        return ""
    x = axes.x(number)
    is_right = float(x) > LEFT + WIDTH / 2
    side, end = (-4, " end") if is_right else (4, "")
    return (
        f'<line class="link" x1="{x}" y1="{TOP}" x2="{x}" y2="{TOP + HEIGHT}"/>'
        f'<text class="axis{end}" x="{float(x) + side:.1f}" y="{TOP + HEIGHT - 6}">'
        "this answer</text>"
    )


def _ticks(first: float, last: float) -> Sequence[float]:
    return (first, (first + last) / 2.0, last)


def _whole(number: float) -> str:
    return f"{100 * number:.3g} %"
