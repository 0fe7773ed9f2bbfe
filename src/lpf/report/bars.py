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
    """One bar a row. ``errors`` are half-lengths of error bars, ``colours`` one for all or one a
    row."""

    values: Sequence[float]
    colours: str | Sequence[str]
    errors: Sequence[float] | None = None


def height(rows: int, sets: int = 1) -> float:
    """Inches for so many rows with so many bars in each."""
    return 0.9 + rows * (0.2 if sets == 1 else 0.34)


def paint_bars(
    axes: Axes, names: Sequence[str], sets: Sequence[Bars], words: Sequence[str]
) -> None:
    """The first row on top; within a row the sets below each other. ``words`` stand in a column
    to the right, one a row, where no bar or line can run into them."""
    rows = np.arange(len(names), dtype=np.float64)
    thickness = THICKNESS / len(sets)
    for place, bars in enumerate(sets):
        shift = (place - (len(sets) - 1) / 2) * thickness
        axes.barh(rows + shift, _finite(bars.values), thickness, color=bars.colours)
        if bars.errors is not None:
            paint_errors(axes, rows + shift, bars)
    axes.set_yticks(rows, [two_lines(name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")
    for row, text in enumerate(words):
        axes.text(1.02, row, text, va="center", transform=axes.get_yaxis_transform())


def paint_errors(axes: Axes, heights: FloatArray, bars: Bars) -> None:
    axes.errorbar(
        _finite(bars.values),
        heights,
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
