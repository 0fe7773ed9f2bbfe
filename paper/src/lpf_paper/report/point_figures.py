"""Scatter plots, such as accuracy against cost, with each point's name next to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lpf.report import LIGHT, Drawing, Look, cut, draw, legend_name
from lpf_paper.exhibits import Figure, Series
from lpf_paper.report.axes import Box, Points, around, finish, free_place
from lpf_paper.report.series_styles import looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text


MOST_NAMED = 16  # points with their name next to them; more get numbers and a legend
NAME_CHARACTERS = 22
HEIGHT = 3.7  # inches
OUR_DOT, DOT = 7.0, 5.0  # points
GAP = 4.0  # points between a dot and its name
NEAR = 10.0  # points: a name farther from its dot gets a line to it


def point_figure(figure: Figure, name: str) -> Drawing:
    found = [Points.of(one) for one in figure.series]
    styles = looks(figure.series)
    is_named = len(found) <= MOST_NAMED

    def paint(axes: Axes) -> Sequence[Artist]:
        for one, look, series in zip(found, styles, figure.series, strict=True):
            _paint(axes, one, look, series)
        axes.margins(0.09)
        finish(axes, figure, found)
        _write(axes, found, figure.series, is_named=is_named)
        return [] if is_named else _legend(figure.series, styles)

    def settle(axes: Axes) -> None:
        _settle(axes, found, figure.series)

    return draw(name, figure.title, figure.caption, HEIGHT, paint, settle)


def _paint(axes: Axes, points: Points, look: Look, series: Series) -> None:
    seen = np.isfinite(points.y)
    if points.has_bounds:
        axes.vlines(points.x, points.low, points.high, color=look.colour, linewidth=1.0)
    axes.plot(
        points.x[seen],
        points.y[seen],
        look.marker,
        color=look.colour,
        markersize=_size(series),
        clip_on=False,
    )


def _write(
    axes: Axes, found: Sequence[Points], series: Sequence[Series], *, is_named: bool
) -> None:
    for number, (one, points) in enumerate(zip(series, found, strict=True), start=1):
        label = cut(one.name, NAME_CHARACTERS) if is_named else str(number)
        weight = "bold" if one.standing == "ours" else "normal"
        text = axes.text(*points.last, label, fontsize=7.5, fontweight=weight)
        text.set_in_layout(False)  # it will be moved inside the axes


def _settle(axes: Axes, found: Sequence[Points], series: Sequence[Series]) -> None:
    """Moves each name to the nearest free place, ours first."""
    unit = axes.figure.dpi / 72
    dots = axes.transData.transform([one.last for one in found])
    taken = [
        _dot(x, y, _size(one) * unit)
        for one, points in zip(series, found, strict=True)
        for x, y in _pixels(axes, points)
    ]
    frame = Box(*axes.bbox.bounds)
    for place in _ours_first(series):
        text, (x, y) = axes.texts[place], dots[place].tolist()
        extent = text.get_window_extent()
        size = (extent.width + 2 * unit, extent.height + unit)
        nearest = (_size(series[place]) / 2 + GAP) * unit
        box = free_place(around((x, y), size, nearest), taken, frame)
        taken.append(box)
        _move(axes, text, box, (x, y), unit)


def _move(axes: Axes, text: Text, box: Box, dot: tuple[float, float], unit: float) -> None:
    from matplotlib.lines import Line2D

    inverse = axes.transAxes.inverted()
    middle = (box.x + box.width / 2, box.y + box.height / 2)
    text.set(transform=axes.transAxes, ha="center", va="center")
    text.set_position(tuple(inverse.transform(middle)))
    nearest = (
        min(max(dot[0], box.x), box.x + box.width),
        min(max(dot[1], box.y), box.y + box.height),
    )
    if np.hypot(nearest[0] - dot[0], nearest[1] - dot[1]) > NEAR * unit:
        ends = inverse.transform([dot, nearest])
        line = Line2D(*ends.T, color=LIGHT["quiet"], linewidth=0.6, transform=axes.transAxes)
        axes.add_artist(line)


def _size(series: Series) -> float:
    return OUR_DOT if series.standing == "ours" else DOT


def _ours_first(series: Sequence[Series]) -> list[int]:
    return sorted(range(len(series)), key=lambda place: series[place].standing != "ours")


def _pixels(axes: Axes, points: Points) -> list[tuple[float, float]]:
    seen = np.isfinite(points.y)
    placed = axes.transData.transform(np.column_stack([points.x[seen], points.y[seen]]))
    return [(float(x), float(y)) for x, y in placed]


def _dot(x: float, y: float, width: float) -> Box:
    return Box(x - width / 2, y - width / 2, width, width)


def _legend(series: Sequence[Series], styles: Sequence[Look]) -> list[Artist]:
    from matplotlib.lines import Line2D

    return [
        Line2D(
            [],
            [],
            color=look.colour,
            marker=look.marker,
            markersize=DOT,
            linewidth=0,
            label=legend_name(f"{number} {one.name}"),
        )
        for number, (one, look) in enumerate(zip(series, styles, strict=True), start=1)
    ]
