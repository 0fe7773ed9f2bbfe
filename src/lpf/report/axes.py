"""What figures over numbers share: points as arrays, and axes with words a reader knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import numpy as np

from lpf.experiments.exhibits import Figure, Series
from lpf.report.quantities import short
from lpf.types import FloatArray

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
