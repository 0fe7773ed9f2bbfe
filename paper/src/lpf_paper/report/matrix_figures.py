"""A matrix with its numbers in the cells, such as a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lpf.report import LIGHT, WIDE, WIDTH, Drawing, cut, draw, in_lines
from lpf.types import FloatArray
from lpf_paper.exhibits import Figure
from lpf_paper.report.axes import finite
from lpf_paper.report.quantities import alike

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


MOST_NARROW = 7  # columns that fit the width of a phone
ROOM_FOR_NAMES = 1.6  # inches
ROW, ROW_OF_TWO_LINES = 0.34, 0.42  # inches
# Up to this opacity text is readable on the colour, in light and dark pages.
FAINTEST, STRONGEST = 0.04, 0.5
COLUMN_CHARACTERS = 20
LETTER = 0.62  # width of a letter, in font sizes
SIZES = 5.0, 8.5  # points


def matrix_figure(figure: Figure, name: str) -> Drawing:
    """One row per series; columns are in the order of their first appearance."""
    columns = list(dict.fromkeys(str(x) for one in figure.series for x in one.x))
    rows = [one.name for one in figure.series]
    values = np.array(
        [
            _row(columns, dict(zip(map(str, one.x), finite(one.y).tolist(), strict=True)))
            for one in figure.series
        ]
    )
    is_wide = len(columns) > MOST_NARROW

    def paint(axes: Axes) -> Sequence[Artist]:
        _paint_cells(axes, values, (WIDE if is_wide else WIDTH) - ROOM_FOR_NAMES)
        _name_sides(axes, rows, columns, is_wide=is_wide)
        axes.set_xlabel(figure.x_title)
        axes.set_ylabel(figure.y_title)
        return []

    longest = max(len(cut(one, COLUMN_CHARACTERS)) for one in columns)
    row = ROW_OF_TWO_LINES if any("\n" in in_lines(one) for one in rows) else ROW
    height = 0.9 + row * len(rows) + 0.05 * longest
    return draw(name, figure.title, figure.caption, height, paint, is_wide=is_wide)


def _row(columns: Sequence[str], found: dict[str, float]) -> list[float]:
    return [found.get(column, np.nan) for column in columns]


def _paint_cells(axes: Axes, values: FloatArray, inches: float) -> None:
    words = alike(values.ravel().tolist())
    longest = max(map(len, words))
    room = 72 * inches / values.shape[1]
    size = min(SIZES[1], max(SIZES[0], 0.92 * room / (LETTER * longest)))
    strength = _strength(values).ravel()
    for place, (value, word) in enumerate(zip(values.ravel().tolist(), words, strict=True)):
        row, column = divmod(place, values.shape[1])
        if np.isfinite(value):
            _paint_cell(axes, column, row, value, float(strength[place]))
        axes.text(column, row, word, ha="center", va="center_baseline", fontsize=size)


def _paint_cell(axes: Axes, column: int, row: int, value: float, strength: float) -> None:
    from matplotlib.patches import Rectangle

    colour = LIGHT["first"] if value >= 0 else LIGHT["second"]
    corner = (column - 0.49, row - 0.48)
    axes.add_patch(Rectangle(corner, 0.98, 0.96, facecolor=colour, alpha=strength, linewidth=0))


def _strength(values: FloatArray) -> FloatArray:
    """Opacity by absolute value, from the smallest to the largest, or from 0 if signs differ."""
    size = np.abs(values)
    least = 0.0 if np.nanmin(values) < 0 else float(np.nanmin(size))
    span = float(np.nanmax(size)) - least
    scaled = (size - least) / span if span > 0 else np.full_like(size, 0.5)
    return FAINTEST + (STRONGEST - FAINTEST) * scaled


def _name_sides(axes: Axes, rows: Sequence[str], columns: Sequence[str], *, is_wide: bool) -> None:
    room = (WIDE if is_wide else WIDTH) - ROOM_FOR_NAMES
    is_horizontal = max(map(len, columns)) * 0.085 <= room / len(columns)
    axes.set_xticks(np.arange(len(columns)), [cut(one, COLUMN_CHARACTERS) for one in columns])
    if not is_horizontal:
        for label in axes.get_xticklabels():
            label.set(rotation=90, ha="center", va="top")
    axes.set_yticks(np.arange(len(rows)), [in_lines(one) for one in rows])
    axes.tick_params(length=0)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for spine in axes.spines.values():
        spine.set_visible(False)
