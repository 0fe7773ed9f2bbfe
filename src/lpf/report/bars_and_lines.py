"""Building blocks of figures: horizontal bars with names, and lines over epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lpf.report.drawing import LIGHT
from lpf.report.page import cut
from lpf.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


THICKNESS = 0.7  # of a row
LONGEST_LINE = 20  # characters of a name
MOST_LINES = 2
FEW = 3  # sets of bars; more are thinner, with smaller text
SMALL = 7.0  # points
ERROR_BARS: Mapping[str, Any] = {"color": LIGHT["ink"], "elinewidth": 1.2, "capsize": 2.5}


@dataclass(frozen=True)
class Bars:
    """One bar per row, with a text next to it. ``low`` and ``high`` are the ends of error bars
    (NaN for none); a value may lie outside. ``colours`` is one for all or one per row; ``hatch``
    is matplotlib's, drawn in the colour of the page."""

    values: Sequence[float]
    words: Sequence[str]
    colours: str | Sequence[str]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    hatch: str = ""


def height(names: Sequence[str], sets: int = 1) -> float:
    """Height in inches of rows with these names and ``sets`` bars in each."""
    lines = max(in_lines(name).count("\n") + 1 for name in names)
    bar = 0.21 if sets <= FEW else 0.18
    return 0.9 + len(names) * max(bar * sets, 0.17 * lines)


def paint_bars(axes: Axes, names: Sequence[str], sets: Sequence[Bars]) -> None:
    """Draw the sets of bars, the first row on top; within a row the first set on top."""
    rows = np.arange(len(names), dtype=np.float64)
    thickness = THICKNESS / len(sets)
    for place, bars in enumerate(sets):
        middles = rows + (place - (len(sets) - 1) / 2) * thickness
        axes.barh(middles, _finite(bars.values), thickness, **filling(bars.colours, bars.hatch))
        if len(bars.low):
            _paint_errors(axes, middles, bars)
        write_labels(axes, middles, bars.words, SMALL if len(sets) > FEW else None)
    name_rows(axes, names)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Put the rows' names on the vertical axis, the first on top."""
    axes.set_yticks(np.arange(len(names)), [in_lines(name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")


def write_labels(
    axes: Axes, middles: FloatArray, words: Sequence[str], size: float | None = None
) -> None:
    """Write the texts of the bars in a column to the right, where nothing else is drawn."""
    across = axes.get_yaxis_transform()
    for middle, word in zip(middles.tolist(), words, strict=True):
        axes.text(1.02, middle, word, va="center_baseline", fontsize=size, transform=across)


def error_bars(bars: Bars) -> tuple[FloatArray, FloatArray]:
    """Centres and half-lengths of the error bars."""
    low, high = np.asarray(bars.low, np.float64), np.asarray(bars.high, np.float64)
    return (low + high) / 2, (high - low) / 2


def _paint_errors(axes: Axes, middles: FloatArray, bars: Bars) -> None:
    centres, halves = error_bars(bars)
    axes.errorbar(centres, middles, xerr=halves, fmt="none", **ERROR_BARS)


def key(colour: str, label: str, hatch: str = "") -> Artist:
    """A coloured patch for the legend."""
    from matplotlib.patches import Patch

    return Patch(label=label, **filling(colour, hatch))


def filling(colours: str | Sequence[str], hatch: str) -> dict[str, Any]:
    """matplotlib's arguments for colour and hatch, which it draws in the colour of the edge."""
    if not hatch:
        return {"color": colours}
    return {"facecolor": colours, "hatch": hatch, "edgecolor": LIGHT["surface"], "linewidth": 0}


def in_lines(name: str, characters: int = LONGEST_LINE, most: int = MOST_LINES) -> str:
    """A name wrapped to at most ``most`` lines, shortened in the middle if it is longer: similar
    names often differ at their ends. Tables have the full names."""
    lines = wrap(name, characters)
    if len(lines) > most:
        room = most * characters - 5
        lines = wrap(cut(name, room), characters, max_lines=most, placeholder="…")
    return "\n".join(lines)


def _finite(values: Sequence[float]) -> FloatArray:
    """NaN and infinity draw no bar; the text next to it shows them."""
    array = np.asarray(values, np.float64)
    return np.where(np.isfinite(array), array, 0.0)


CURVE_HEIGHT = 2.6  # inches
MOST_TICKS = 8
DOT, SMALL_DOT = 5.0, 3.0  # points
# matplotlib's style of a line: its sign, or an offset with the lengths of dashes and gaps.
Dashes = Literal["-", "--", ":"] | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """The style of a line. ``dashes`` and ``marker`` distinguish lines in print without colour."""

    colour: str
    dashes: Dashes = "-"
    width: float = 1.8
    marker: str = ""


TRAINING = Look(LIGHT["second"], "--")
VALIDATION = Look(LIGHT["first"])
MEAN = Look(LIGHT["ink"], "--", 1.2)


def paint_curve(axes: Axes, values: Sequence[float], look: Look, best: int | None = None) -> None:
    """Draw one value per epoch, with a dot at epoch ``best`` (counted from 1)."""
    epochs = np.arange(1, len(values) + 1)
    axes.plot(epochs, values, color=look.colour, linestyle=look.dashes, linewidth=look.width)
    if best is not None:
        size = DOT if look.width > 1 else SMALL_DOT
        axes.plot(best, values[best - 1], "o", color=look.colour, markersize=size, clip_on=False)


def paint_mean(axes: Axes, value: float) -> None:
    """A dashed vertical line."""
    axes.axvline(value, color=MEAN.colour, linestyle=MEAN.dashes, linewidth=MEAN.width)


def finish_axes(axes: Axes, measured: str, epochs: int) -> None:
    """Label the axes: epochs from 1 in whole numbers, and what was ``measured``."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("epoch")
    axes.set_ylabel(measured)
    axes.set_xlim(0.5, epochs + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(MOST_TICKS, integer=True, min_n_ticks=1))
    axes.grid(axis="y")


def line_key(look: Look, label: str) -> Artist:
    """A line for the legend."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        color=look.colour,
        linestyle=look.dashes,
        linewidth=look.width,
        marker=look.marker,
        markersize=DOT,
        label=label,
    )


def dot_key(label: str) -> Artist:
    """A dot for the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=LIGHT["first"], marker="o", markersize=DOT, lw=0, label=label)
