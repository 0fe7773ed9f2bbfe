"""Charts of numbers beside the range that chance allows them: over time, and one below the other.

SVG strings with classes of the page's style sheet; every number is in a tooltip or in a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lpf.report.foreign_text import shown

WIDTH, HEIGHT = 640, 220  # pixels of the chart over time
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 34
ROW, BAR_LEFT, BAR_WIDTH = 34, 60, 420  # of the chart below each other
TICKS = 4
DOT = 4.0


@dataclass(frozen=True)
class RangePoint:
    """``value`` beside what was expected, between ``low`` and ``high``. ``name`` is a date or a
    level, ``note`` the tooltip."""

    name: str
    value: float
    expected: float
    low: float
    high: float
    note: str

    @property
    def is_outside(self) -> bool:
        return not self.low - 1e-9 <= self.value <= self.high + 1e-9


def over_time(points: Sequence[RangePoint], label: str, form: Callable[[float], str]) -> str:
    """A line through the points over a band of what was expected, from left to right. ``form``
    writes a number of the axis."""
    unit = _round_step(max(max(one.value, one.high) for one in points) / TICKS)
    top = unit * TICKS
    inner, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    step = inner / max(1, len(points) - 1)

    def x(place: int) -> float:
        return LEFT + (place * step if len(points) > 1 else inner / 2)

    def y(number: float) -> float:
        return TOP + tall * (1.0 - number / top)

    places = range(len(points))
    upper = [f"{x(i):.1f},{y(points[i].high):.1f}" for i in places]
    lower = [f"{x(i):.1f},{y(points[i].low):.1f}" for i in reversed(places)]
    expected = " ".join(f"{x(i):.1f},{y(points[i].expected):.1f}" for i in places)
    line = " ".join(f"{x(i):.1f},{y(points[i].value):.1f}" for i in places)
    grid = "".join(
        f'<line class="grid" x1="{LEFT}" y1="{y(number):.1f}" x2="{WIDTH - RIGHT}" '
        f'y2="{y(number):.1f}"/><text class="axis end" x="{LEFT - 6}" y="{y(number) + 4:.1f}">'
        f"{shown(form(number))}</text>"
        for number in (unit * part for part in range(TICKS + 1))
    )
    dots = "".join(
        f"<g><title>{shown(one.note)}</title>"
        f'<circle class="{"against" if one.is_outside else "for"}" cx="{x(place):.1f}" '
        f'cy="{y(one.value):.1f}" r="{DOT}"/></g>\n'
        for place, one in enumerate(points)
    )
    return (
        f'<figure class="wide"><svg role="img" aria-label="{shown(label)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">\n{grid}'
        f'<polygon class="range" points="{" ".join([*upper, *lower])}"/>'
        f'<polyline class="expected" points="{expected}"/>'
        f'<polyline class="course" points="{line}"/>{dots}'
        f'<text class="axis" x="{LEFT}" y="{HEIGHT - 8}">{shown(points[0].name)}</text>'
        f'<text class="axis end" x="{WIDTH - RIGHT}" y="{HEIGHT - 8}">{shown(points[-1].name)}'
        f"</text></svg>\n<figcaption>{shown(label)}</figcaption></figure>"
    )


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least ``least``."""
    if least <= 0.0:
        return 1.0 / TICKS
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= least)


def one_below_the_other(points: Sequence[RangePoint], label: str, least: float) -> str:
    """Shares from ``least`` to 1: a bar for the range, a line where the share was promised, a dot
    where it is."""

    def x(share: float) -> float:
        return BAR_LEFT + BAR_WIDTH * (max(share, least) - least) / (1.0 - least)

    tall = ROW * len(points)
    rows = "".join(
        f"<g><title>{shown(one.note)}</title>"
        f'<text class="axis end" x="{BAR_LEFT - 10}" y="{ROW * place + 22}">{shown(one.name)}'
        f'</text><rect class="room" x="{BAR_LEFT}" y="{ROW * place + 6}" width="{BAR_WIDTH}" '
        f'height="22"/><rect class="range" x="{x(one.low):.1f}" y="{ROW * place + 6}" '
        f'width="{max(1.0, x(one.high) - x(one.low)):.1f}" height="22"/>'
        f'<line class="even" x1="{x(one.expected):.1f}" y1="{ROW * place + 4}" '
        f'x2="{x(one.expected):.1f}" y2="{ROW * place + 30}"/>'
        f'<circle class="{"against" if one.is_outside else "for"}" cx="{x(one.value):.1f}" '
        f'cy="{ROW * place + 17}" r="{DOT + 1}"/></g>\n'
        for place, one in enumerate(points)
    )
    return (
        f'<figure><svg role="img" aria-label="{shown(label)}" '
        f'viewBox="0 0 {BAR_LEFT + BAR_WIDTH + 40} {tall + 24}">\n{rows}'
        f'<text class="tick" x="{BAR_LEFT}" y="{tall + 18}">{100 * least:.0f} %</text>'
        f'<text class="tick" x="{BAR_LEFT + BAR_WIDTH}" y="{tall + 18}">100 %</text></svg>\n'
        f"<figcaption>{shown(label)}</figcaption></figure>"
    )
