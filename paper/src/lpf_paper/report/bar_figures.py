"""Bar charts: vertical bars for a few short names, horizontal bars otherwise.

The axis is logarithmic if values differ widely: next to a bar of 40, bars of 0.1 and 0.3 would look
the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import numpy as np

from lpf.report import (
    ERROR_BARS,
    LIGHT,
    THICKNESS,
    WIDTH,
    Bars,
    Drawing,
    draw,
    error_bars,
    filling,
    height,
    key,
    legend_name,
    paint_bars,
)
from lpf.types import FloatArray
from lpf_paper.exhibits import Figure, Series, Standing
from lpf_paper.report.axes import decimal_ticks, finite, space_by_logarithm
from lpf_paper.report.quantities import NOTHING, alike, two_digits
from lpf_paper.report.series_styles import Fill, fills

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


WIDEST = 50.0  # largest ratio of values that a linear axis shows
MARGIN = 0.1  # of a logarithmic axis, before the smallest bar's end and after the largest one's


@dataclass(frozen=True)
class Scale:
    """``limits`` of a logarithmic axis; None means linear, and bars start at 0."""

    limits: tuple[float, float] | None = None

    @classmethod
    def of(cls, series: Sequence[Series]) -> Scale:
        """Linear if a bar or bound is negative. A bar of 0 has no logarithm either, but no visible
        length on any axis. References do not count: a perfect one is near 0 on purpose."""
        values = finite([y for one in series for y in one.y])
        rated = _positive([one for one in series if one.standing != "reference"])
        lows = finite([end for one in series for end in one.low])
        if (values < 0).any() or (lows < 0).any() or not rated.size:
            return cls()
        if rated.max() <= WIDEST * rated.min():
            return cls()
        ends = finite([end for one in series for end in one.high])
        least, largest = _positive(series).min(), np.nanmax(np.append(ends, values))
        room = (largest / least) ** MARGIN
        return cls((float(least / room), float(largest * room)))

    @property
    def start(self) -> float:
        return 0.0 if self.limits is None else self.limits[0]

    def words(self, values: Sequence[float]) -> list[str]:
        """Labels of the bars; empty for a missing bar."""
        labels = alike(values) if self.limits is None else [two_digits(one) for one in values]
        return ["" if label == NOTHING else label for label in labels]

    def title(self, measured: str) -> str:
        scale = "" if self.limits is None else "logarithmic axis"
        return ", ".join(filter(None, (measured, scale)))

    def set_on(self, axes: Axes, along: Literal["x", "y"]) -> None:
        """Call after the bars were drawn."""
        if self.limits is None:
            line = axes.axvline if along == "x" else axes.axhline
            line(0, color=LIGHT["quiet"], linewidth=0.8)
            return
        low, high = self.limits
        space_by_logarithm(axes, decimal_ticks(np.log10(high / low)), along)
        axes.set(**{f"{along}lim": self.limits})


def _positive(series: Sequence[Series]) -> FloatArray:
    values = finite([y for one in series for y in one.y])
    return values[values > 0]


MOST_UPRIGHT = 6  # names
UPRIGHT_HEIGHT = 2.8  # inches
CHARACTER = 0.078  # inches of a name's letter
MOST_LINES = 3
STANDINGS: Mapping[Standing, str] = {
    "ours": LIGHT["first"],
    "rival": LIGHT["rival"],
    "reference": LIGHT["other"],
}


@dataclass(frozen=True)
class Sets:
    """``names`` of the rows in the order of their first appearance; one set of bars per series. The
    ``legend`` is empty if each row has one bar. All sets share one ``scale``."""

    names: tuple[str, ...]
    bars: tuple[Bars, ...]
    scale: Scale
    legend: tuple[tuple[str, Fill], ...] = ()


def bar_figure(figure: Figure, name: str) -> Drawing:
    sets = _sets(figure.series)
    if len(sets.names) <= MOST_UPRIGHT and _fits_vertically(sets):
        return _vertical(figure, name, sets)
    return _horizontal(figure, name, sets)


def _horizontal(figure: Figure, name: str, sets: Sets) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        paint_bars(axes, sets.names, sets.bars)
        sets.scale.set_on(axes, "x")
        axes.set_xlabel(sets.scale.title(figure.y_title))
        return _keys(sets)

    tall = height(sets.names, len(sets.bars))
    return draw(name, figure.title, figure.caption, tall, paint)


def _vertical(figure: Figure, name: str, sets: Sets) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        places = np.arange(len(sets.names), dtype=np.float64)
        width = THICKNESS / len(sets.bars)
        for place, bars in enumerate(sets.bars):
            middles = places + (place - (len(sets.bars) - 1) / 2) * width
            _paint_vertical(axes, middles, width, bars, sets.scale.start)
        axes.set_xticks(places, [_lines(one, len(sets.names)) for one in sets.names])
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, len(sets.names) - 0.4)
        axes.margins(y=0.12)
        sets.scale.set_on(axes, "y")
        axes.set_ylabel(sets.scale.title(figure.y_title))
        axes.grid(axis="y")
        return _keys(sets)

    return draw(name, figure.title, figure.caption, UPRIGHT_HEIGHT, paint)


def _paint_vertical(
    axes: Axes, middles: FloatArray, width: float, bars: Bars, start: float
) -> None:
    heights = np.nan_to_num(np.asarray(bars.values))
    axes.bar(middles, heights, width, **filling(bars.colours, bars.hatch))
    tops = np.maximum(heights, start)
    if len(bars.low):
        centres, halves = error_bars(bars)
        axes.errorbar(middles, centres, yerr=halves, fmt="none", **ERROR_BARS)
        tops = np.fmax(tops, np.asarray(bars.high))
    for middle, top, word in zip(middles.tolist(), tops.tolist(), bars.words, strict=True):
        axes.annotate(
            word,
            (middle, top),
            (0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            annotation_clip=False,
        )


def _sets(series: Sequence[Series]) -> Sets:
    names = tuple(dict.fromkeys(str(x) for one in series for x in one.x))
    scale = Scale.of(series)
    if len(series) > 1 and sum(len(one.x) for one in series) == len(names):
        return Sets(names, (_joined(series, names, scale),), scale)
    styles = fills(series)
    bars = tuple(
        replace(_bars(names, [one], fill.colour, scale), hatch=fill.hatch)
        for one, fill in zip(series, styles, strict=True)
    )
    legend = tuple((one.name, fill) for one, fill in zip(series, styles, strict=True))
    return Sets(names, bars, scale, legend if len(series) > 1 else ())


def _joined(series: Sequence[Series], names: tuple[str, ...], scale: Scale) -> Bars:
    """One set of bars, coloured by standing, for series that have no row in common."""
    colours = [STANDINGS[one.standing] for one in series for _ in one.x]
    return _bars(names, series, colours, scale)


def _bars(
    names: Sequence[str], series: Sequence[Series], colours: str | list[str], scale: Scale
) -> Bars:
    by_name = _by_name(series)
    nothing = (np.nan, np.nan, np.nan)
    values, low, high = zip(*(by_name.get(name, nothing) for name in names), strict=True)
    has_bounds = bool(np.isfinite(np.add(low, high)).any())
    bounds = (low, high) if has_bounds else ((), ())
    return Bars(values, scale.words(values), colours, *bounds)


def _by_name(series: Sequence[Series]) -> dict[str, tuple[float, float, float]]:
    """Value and bounds of each row."""
    return {
        str(x): (y, low, high)
        for one in series
        for x, y, low, high in zip(one.x, *_numbers(one), strict=True)
    }


def _numbers(series: Series) -> tuple[list[float], list[float], list[float]]:
    none = [np.nan] * len(series.x)
    low, high = (finite(one).tolist() if one else none for one in (series.low, series.high))
    return finite(series.y).tolist(), low, high


def _fits_vertically(sets: Sets) -> bool:
    """Return True if no name and no number above a bar runs into the next."""
    slot = (WIDTH - 0.8) / (len(sets.names) + 0.2)
    letters = int(slot / CHARACTER)
    names_fit = all(
        max(map(len, name.split()), default=0) <= letters and len(wrap(name, letters)) <= MOST_LINES
        for name in sets.names
    )
    longest = max(len(word) for bars in sets.bars for word in bars.words)
    return names_fit and longest * CHARACTER * 0.95 <= slot * THICKNESS / len(sets.bars) + 0.05


def _lines(name: str, names: int) -> str:
    return "\n".join(wrap(name, int((WIDTH - 0.8) / (names + 0.2) / CHARACTER)))


def _keys(sets: Sets) -> list[Artist]:
    return [key(fill.colour, legend_name(label), fill.hatch) for label, fill in sets.legend]
