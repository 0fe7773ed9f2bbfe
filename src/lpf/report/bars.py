"""Horizontal bars: names of any length fit beside them, and any number below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from lpf.report.palette import LIGHT
from lpf.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

THICKNESS = 0.7  # of a row
LONGEST_LINE = 20  # characters of a name
MOST_LINES = 2


@dataclass(frozen=True)
class Bars:
    """One bar a row, and the words beside it. ``errors`` are half-lengths of error bars (NaN for
    none), ``colours`` one for all or one a row."""

    values: Sequence[float]
    words: Sequence[str]
    colours: str | Sequence[str]
    errors: Sequence[float] | None = None


def height(names: Sequence[str], sets: int = 1) -> float:
    """Inches for rows with these names and so many bars in each."""
    lines = max(two_lines(name).count("\n") + 1 for name in names)
    return 0.9 + len(names) * max(0.21 * sets, 0.17 * lines)


def paint_bars(axes: Axes, names: Sequence[str], sets: Sequence[Bars]) -> None:
    """The first row on top; within a row the sets below each other."""
    rows = np.arange(len(names), dtype=np.float64)
    thickness = THICKNESS / len(sets)
    for place, bars in enumerate(sets):
        middles = rows + (place - (len(sets) - 1) / 2) * thickness
        axes.barh(middles, _finite(bars.values), thickness, color=bars.colours)
        if bars.errors is not None:
            _paint_errors(axes, middles, bars)
        write_beside(axes, middles, bars.words)
    name_rows(axes, names)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(np.arange(len(names)), [two_lines(name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")


def write_beside(axes: Axes, middles: FloatArray, words: Sequence[str]) -> None:
    """In a column to the right, where no bar and no line can run into them."""
    across = axes.get_yaxis_transform()
    for middle, word in zip(middles.tolist(), words, strict=True):
        axes.text(1.02, middle, word, va="center_baseline", transform=across)


def _paint_errors(axes: Axes, middles: FloatArray, bars: Bars) -> None:
    axes.errorbar(
        _finite(bars.values),
        middles,
        xerr=bars.errors,
        fmt="none",
        ecolor=LIGHT["ink"],
        elinewidth=1.2,
        capsize=2.5,
    )


def key(colour: str, label: str) -> Artist:
    """A patch of colour for the legend."""
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def two_lines(name: str) -> str:
    """A name as it fits beside a bar; what is cut off ends in dots. Tables have all of it."""
    cut = wrap(name, LONGEST_LINE, max_lines=MOST_LINES, placeholder=" …")
    return "\n".join(cut)


def _finite(values: Sequence[float]) -> FloatArray:
    """A length that is none draws no bar; the word beside it says what it is."""
    array = np.asarray(values, np.float64)
    return np.where(np.isfinite(array), array, 0.0)
