"""What figures over numbers share: points as arrays, and axes with words a reader knows.

Where words go so that none lies on another.
"""

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
MOST_STEPS = 10  # different places on x that are taken for steps
NEAREST = 0.11  # of an axis: ticks closer than this run into each other
HUGE = 1e5
UPRIGHT_CHARACTERS = 22  # of a line beside the lowest axes


@dataclass(frozen=True)
class Points:
    """Arrays [P] of a series, NaN where it has nothing; without bounds all of them are NaN."""

    x: FloatArray
    y: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, series: Series) -> Points:
        """``x`` of names is left to whoever draws bars."""
        y = finite(series.y)
        none = np.full(len(y), np.nan)
        low, high = (finite(one) if one else none for one in (series.low, series.high))
        return cls(np.asarray(series.x, np.float64), y, low, high)

    @property
    def has_bounds(self) -> bool:
        return bool(np.isfinite(self.low + self.high).any())

    @property
    def last(self) -> tuple[float, float]:
        """The last one that can be drawn."""
        place = np.flatnonzero(np.isfinite(self.y))[-1]
        return float(self.x[place]), float(self.y[place])


def finite(values: Sequence[float | None]) -> FloatArray:
    """NaN for what is None or infinite."""
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
    """At round numbers of a logarithmic axis that spans so many powers of ten."""
    from matplotlib.ticker import LogLocator

    within = (1.0, 2.0, 5.0) if decades < 2 else (1.0, 3.0) if decades < 3.5 else (1.0,)
    return LogLocator(subs=within)


def _whole_numbers(axes: Axes, used: FloatArray) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(MOST_TICKS, integer=True, min_n_ticks=1))
    if len(used) == 1:
        axes.set_xlim(used[0] - 0.5, used[0] + 0.5)


def _ticks(used: FloatArray) -> Locator:
    """At steps somebody has chosen, as far as there is room, and else at round numbers."""
    from matplotlib.ticker import FixedLocator

    if len(used) <= MOST_STEPS:
        return FixedLocator(_apart(used))
    return decimal_ticks(np.log10(used[-1] / used[0]))


def _tick(value: float) -> str:
    return f"{value:g}" if 1e-4 <= value < 1000 else short(value)


def _apart(used: FloatArray) -> list[float]:
    places = np.log(used)
    least = NEAREST * (places[-1] - places[0])
    kept = [0]
    for place in range(1, len(used)):
        if places[place] - places[kept[-1]] >= least:
            kept.append(place)
    return [float(used[place]) for place in kept]


def _plain_numbers(axes: Axes) -> None:
    """No "1e6" in a corner: millions are M."""
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
    """The lower left corner, and how wide and high it is."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        along = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return across * along if across > 0 and along > 0 else 0.0

    def beyond(self, frame: Box) -> float:
        """The area that lies outside of a frame."""
        return self.width * self.height - self.overlap(frame)


def below_each_other(
    wanted: Sequence[float], heights: Sequence[float], low: float, high: float
) -> FloatArray:
    """Middles of labels in one column, as near as can be to where they are wanted (least squares)
    and within the bounds. Labels that do not fit there in all touch each other."""
    order = np.argsort(wanted, kind="stable")
    tall = np.asarray(heights, np.float64)[order]
    offsets = np.concatenate([[0.0], np.cumsum((tall[:-1] + tall[1:]) / 2)])
    rising = _never_falling(np.asarray(wanted, np.float64)[order] - offsets)
    least, most = low + tall[0] / 2, high - tall[-1] / 2 - offsets[-1]
    placed = np.empty(len(order))
    placed[order] = np.clip(rising, least, max(least, most)) + offsets
    return placed


def around(point: tuple[float, float], size: tuple[float, float], nearest: float) -> Iterator[Box]:
    """Places for a label of that width and height near a point, those at the ``nearest`` distance
    first; on each ring to the right, then around it."""
    for ring in RINGS.tolist():
        for step in range(DIRECTIONS):
            turn = (step + 1) // 2 * (-1) ** step * 2 * pi / DIRECTIONS
            yield _beside(point, size, ring * nearest, turn)


def free_place(candidates: Iterator[Box], taken: Sequence[Box], frame: Box) -> Box:
    """The first that covers nothing and stays in the frame, or the one that covers least."""
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
    """The box touches a circle around the point in that direction, from outside."""
    (x, y), (width, height) = point, size
    middle_x = x + cos(turn) * (away + width / 2)
    middle_y = y + sin(turn) * (away + height / 2)
    return Box(middle_x - width / 2, middle_y - height / 2, width, height)


def _never_falling(values: FloatArray) -> FloatArray:
    """The nearest rising sequence: neighbours that fall share their mean."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (mean, count), (first, more) = blocks.pop(), blocks.pop()
            whole = count + more
            blocks.append(((mean * count + first * more) / whole, whole))
    return np.repeat([mean for mean, _ in blocks], [count for _, count in blocks])
