"""Points in a plane, such as accuracy against cost, each with its name beside it.

How the series of a figure look: ours in colour and heavy, what we are compared with in grey.

Greys are told apart by their dashes, bars by their place; markers help where both run out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lpf.report.charts import Dashes, Look
from lpf.report.drawing import LIGHT, Drawing, draw, legend_name
from lpf.report.page import cut
from lpf_paper.exhibits import Figure, Series
from lpf_paper.report.axes import Box, Points, around, finish, free_place

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text


HUES = tuple(LIGHT[name] for name in ("first", "second", "third", "fourth", "fifth"))
DASHES: tuple[Dashes, ...] = (
    "-",
    (0, (4, 1.5)),
    (0, (1, 1.2)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (8, 2)),
    (0, (5, 1.2, 1, 1.2, 1, 1.2)),
)
MARKERS = "os^DvPX<>p"
OURS, RIVAL = 2.3, 1.2  # points
GREYS = tuple(LIGHT[name] for name in ("rival", "other", "quiet"))
HATCHES = ("", "////", "....", "xxxx")


@dataclass(frozen=True)
class Fill:
    """``hatch`` is matplotlib's, drawn in the colour of the page."""

    colour: str
    hatch: str = ""


def looks(series: Sequence[Series]) -> list[Look]:
    """In the order of the series. Where none is ours and colours suffice, all have one: such a
    figure compares things that are all of one kind."""
    coloured = _coloured(series)
    hues = grey = 0
    found = []
    for one in series:
        if one.name in coloured:
            found.append(_hue(hues))
            hues += 1
        elif one.standing == "reference":
            found.append(Look(LIGHT["ink"], ":", RIVAL, MARKERS[grey % len(MARKERS)]))
        else:
            found.append(_grey(grey))
            grey += 1
    return found


def fills(series: Sequence[Series]) -> list[Fill]:
    """The same for bars, which have no dashes: three greys, then the same greys hatched."""
    coloured = _coloured(series)
    hues = grey = 0
    found = []
    for one in series:
        if one.name in coloured:
            found.append(Fill(HUES[hues % len(HUES)], HATCHES[hues // len(HUES) % len(HATCHES)]))
            hues += 1
        else:
            found.append(Fill(GREYS[grey % len(GREYS)], HATCHES[grey // len(GREYS) % len(HATCHES)]))
            grey += 1
    return found


def _coloured(series: Sequence[Series]) -> set[str]:
    ours = {one.name for one in series if one.standing == "ours"}
    others = {one.name for one in series if one.standing == "rival"}
    return others if not ours and len(others) <= len(HUES) else ours


def _hue(place: int) -> Look:
    dashes = DASHES[place // len(HUES) % len(DASHES)]
    return Look(HUES[place % len(HUES)], dashes, OURS, MARKERS[place % len(MARKERS)])


def _grey(place: int) -> Look:
    dashes, marker = DASHES[place % len(DASHES)], MARKERS[place % len(MARKERS)]
    return Look(LIGHT["rival"], dashes, RIVAL, marker)


MOST_NAMED = 16  # points with their name beside them; of more, each has a number and a legend
NAME_CHARACTERS = 22
HEIGHT = 3.7  # inches
OUR_DOT, DOT = 7.0, 5.0  # points
GAP = 4.0  # points between a dot and its name
NEAR = 10.0  # points: a name that is not farther off needs no line to its dot


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
        text.set_in_layout(False)  # it comes to lie within the axes


def _settle(axes: Axes, found: Sequence[Points], series: Sequence[Series]) -> None:
    """One after the other to the nearest place that is free, ours first."""
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
