"""Lines over epochs, each with a dot at the epoch that was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lpf.report.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

CURVE_HEIGHT = 2.6  # inches
MOST_TICKS = 8
DOT, SMALL_DOT = 5.0, 3.0  # points
# matplotlib's style of a line: its sign, or an offset with the lengths of dashes and gaps.
Dashes = Literal["-", "--", ":"] | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """``dashes`` tell lines apart in grey, and so does ``marker`` where there is one."""

    colour: str
    dashes: Dashes = "-"
    width: float = 1.8
    marker: str = ""


TRAINING = Look(LIGHT["second"], "--")
VALIDATION = Look(LIGHT["first"])
MEAN = Look(LIGHT["ink"], "--", 1.2)


def paint_curve(axes: Axes, values: Sequence[float], look: Look, best: int | None = None) -> None:
    """One value an epoch; ``best`` counts from 1."""
    epochs = np.arange(1, len(values) + 1)
    axes.plot(epochs, values, color=look.colour, linestyle=look.dashes, linewidth=look.width)
    if best is not None:
        size = DOT if look.width > 1 else SMALL_DOT
        axes.plot(best, values[best - 1], "o", color=look.colour, markersize=size, clip_on=False)


def paint_mean(axes: Axes, value: float) -> None:
    axes.axvline(value, color=MEAN.colour, linestyle=MEAN.dashes, linewidth=MEAN.width)


def finish_axes(axes: Axes, measured: str, epochs: int) -> None:
    """Whole epochs from 1 on, whatever was drawn before."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("epoch")
    axes.set_ylabel(measured)
    axes.set_xlim(0.5, epochs + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(MOST_TICKS, integer=True, min_n_ticks=1))
    axes.grid(axis="y")


def line_key(look: Look, label: str) -> Artist:
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
    from matplotlib.lines import Line2D

    return Line2D([], [], color=LIGHT["first"], marker="o", markersize=DOT, lw=0, label=label)
