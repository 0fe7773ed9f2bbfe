"""Shared code of figures with numeric axes: points as arrays, ticks, labels that do not overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import numpy as np

from lpf.types import FloatArray
from lpf_paper.exhibits import Figure, Series
from lpf_paper.report.quantities import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import Locator


MOST_TICKS = 7
MOST_STEPS = 10  # up to here every distinct x gets a tick
NEAREST = 0.11  # of the axis length: closer ticks would overlap
HUGE = 1e5
UPRIGHT_CHARACTERS = 22  # per line of the title of a y axis


@dataclass(frozen=True)
class Points:
    """Arrays [P] of a series, NaN for a missing value; without bounds they are all NaN."""

    x: FloatArray
    y: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, series: Series) -> Points:
        """For a numeric ``x``; bar charts handle names themselves."""
        y = finite(series.y)
        none = np.full(len(y), np.nan)
        low, high = (finite(one) if one else none for one in (series.low, series.high))
        return cls(np.asarray(series.x, np.float64), y, low, high)

    @property
    def has_bounds(self) -> bool:
        return bool(np.isfinite(self.low + self.high).any())

    @property
    def last(self) -> tuple[float, float]:
        """The last point that can be drawn."""
        place = np.flatnonzero(np.isfinite(self.y))[-1]
        return float(self.x[place]), float(self.y[place])


def finite(values: Sequence[float | None]) -> FloatArray:
    """The values as an array, with NaN instead of None and infinity."""
    array = np.array([np.nan if one is None else one for one in values], np.float64)
    return np.where(np.isfinite(array), array, np.nan)


def finish(axes: Axes, figure: Figure, points: Sequence[Points]) -> None:
    axes.set_xlabel(figure.x_title)
    axes.set_ylabel("\n".join(wrap(figure.y_title, UPRIGHT_CHARACTERS)))
    axes.grid(axis="y")
    _plain_numbers(axes)
    used = np.unique(np.concatenate([one.x for one in points]))
    if figure.log_x:
        space_by_logarithm(axes, _ticks(used))
    elif (used == np.round(used)).all():
        _whole_numbers(axes, used)


def space_by_logarithm(axes: Axes, ticks: Locator, along: Literal["x", "y"] = "x") -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    axes.set(**{f"{along}scale": "log"})
    axis = axes.xaxis if along == "x" else axes.yaxis
    axis.set_major_locator(ticks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def decimal_ticks(decades: float) -> Locator:
    """At round numbers of a logarithmic axis that spans ``decades`` powers of ten."""
    from matplotlib.ticker import LogLocator

    within = (1.0, 2.0, 5.0) if decades < 2 else (1.0, 3.0) if decades < 3.5 else (1.0,)
    return LogLocator(subs=within)


def _whole_numbers(axes: Axes, used: FloatArray) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(MOST_TICKS, integer=True, min_n_ticks=1))
    if len(used) == 1:
        axes.set_xlim(used[0] - 0.5, used[0] + 0.5)


def _ticks(used: FloatArray) -> Locator:
    """At the values used, as far as there is room, if they are few; else at round numbers."""
    from matplotlib.ticker import FixedLocator

    if len(used) <= MOST_STEPS:
        return FixedLocator(_apart(used))
    return decimal_ticks(np.log10(used[-1] / used[0]))


def _tick(value: float) -> str:
    return f"{value:g}" if 1e-4 <= value < 1000 else short(value)


def _apart(used: FloatArray) -> list[float]:
    places = np.log(used)
    least = NEAREST * (places[-1] - places[0])
    chosen = [0]
    for place in range(1, len(used)):
        if places[place] - places[chosen[-1]] >= least:
            chosen.append(place)
    return [float(used[place]) for place in chosen]


def _plain_numbers(axes: Axes) -> None:
    """Millions are written as M, not as "1e6" in a corner."""
    from matplotlib.ticker import EngFormatter, MaxNLocator, ScalarFormatter

    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() != "linear":
            continue
        axis.set_major_locator(MaxNLocator(MOST_TICKS - 1))
        if max(map(abs, limits)) >= HUGE:
            axis.set_major_formatter(EngFormatter(sep=""))
            continue
        plain = ScalarFormatter(useOffset=False)
        plain.set_scientific(False)
        axis.set_major_formatter(plain)


RINGS = 1.5 ** np.arange(9)  # times the nearest distance
DIRECTIONS = 16


@dataclass(frozen=True)
class Box:
    """The lower left corner, width and height."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """The area covered by both."""
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        along = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return across * along if across > 0 and along > 0 else 0.0

    def beyond(self, frame: Box) -> float:
        """The area outside a frame."""
        return self.width * self.height - self.overlap(frame)


def below_each_other(
    wanted: Sequence[float], heights: Sequence[float], low: float, high: float
) -> FloatArray:
    """Centres of labels in one column, as near as possible to where they are wanted (least squares)
    and within the bounds. If they do not all fit, they touch each other."""
    order = np.argsort(wanted, kind="stable")
    tall = np.asarray(heights, np.float64)[order]
    offsets = np.concatenate([[0.0], np.cumsum((tall[:-1] + tall[1:]) / 2)])
    rising = _never_falling(np.asarray(wanted, np.float64)[order] - offsets)
    least, most = low + tall[0] / 2, high - tall[-1] / 2 - offsets[-1]
    placed = np.empty(len(order))
    placed[order] = np.clip(rising, least, max(least, most)) + offsets
    return placed


def around(point: tuple[float, float], size: tuple[float, float], nearest: float) -> Iterator[Box]:
    """Candidate boxes for a label of this width and height near a point, those at the ``nearest``
    distance first; each ring starts at the right."""
    for ring in RINGS.tolist():
        for step in range(DIRECTIONS):
            turn = (step + 1) // 2 * (-1) ** step * 2 * pi / DIRECTIONS
            yield _beside(point, size, ring * nearest, turn)


def free_place(candidates: Iterator[Box], taken: Sequence[Box], frame: Box) -> Box:
    """The first box that overlaps nothing and stays in the frame, else the one that overlaps
    least."""
    best, least = None, np.inf
    for box in candidates:
        cost = sum(box.overlap(one) for one in taken) + 4 * box.beyond(frame)
        if cost <= 1e-9:
            return box
        if cost < least:
            best, least = box, cost
    assert best is not None  # there is always a candidate
    return best


def _beside(point: tuple[float, float], size: tuple[float, float], away: float, turn: float) -> Box:
    """The box that touches a circle around the point from outside, in direction ``turn``."""
    (x, y), (width, height) = point, size
    middle_x = x + cos(turn) * (away + width / 2)
    middle_y = y + sin(turn) * (away + height / 2)
    return Box(middle_x - width / 2, middle_y - height / 2, width, height)


def _never_falling(values: FloatArray) -> FloatArray:
    """Isotonic regression: falling neighbours are replaced by their mean."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (mean, count), (first, more) = blocks.pop(), blocks.pop()
            total = count + more
            blocks.append(((mean * count + first * more) / total, total))
    return np.repeat([mean for mean, _ in blocks], [count for _, count in blocks])
