"""Line charts, each line named at its end, and reliability diagrams (confidence and accuracy)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lpf.report import CURVE_HEIGHT, LIGHT, Drawing, Look, draw, in_lines, legend_name, line_key
from lpf.types import FloatArray
from lpf_paper.exhibits import Figure, Series
from lpf_paper.report.axes import Points, below_each_other, finish, finite
from lpf_paper.report.series_styles import looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text


MOST_NAMED = 16  # lines with their name at the end; more have a legend
LINE_OF_NAMES, NAME_CHARACTERS = 0.155, 18  # inches; characters
BESIDE = 1.08  # where names begin, in widths of the axes
BAND = 0.16  # opacity
FEW_POINTS = 12  # up to here each point has a marker
RELIABILITY_HEIGHT = 4.3  # inches: its axes are a square
SMALLEST_DOT, LARGEST_DOT = 8.0, 130.0  # square points
NARROW, WIDE_APART = 0.15, 0.6  # widths of precise and of imprecise bounds
CLEAR, PALE, BAR = 0.85, 0.3, 0.22  # opacity of dots with such bounds, and of the bounds
PALE_POINTS = "The wider the bounds of a point, drawn as light bars, the paler it is."


def line_figure(figure: Figure, name: str) -> Drawing:
    found = [Points.of(one) for one in figure.series]
    styles = looks(figure.series)
    is_named = len(figure.series) <= MOST_NAMED
    names = [in_lines(one.name, NAME_CHARACTERS, most=3) for one in figure.series]

    def paint(axes: Axes) -> Sequence[Artist]:
        for one, look in sorted(zip(found, styles, strict=True), key=lambda pair: pair[1].width):
            _paint(axes, one, look, is_marked=not is_named or len(one.x) <= FEW_POINTS)
        axes.margins(x=0.02)
        finish(axes, figure, found)
        if not is_named:
            return _legend(figure.series, styles)
        _write_names(axes, names, figure.series)
        return []

    def settle(axes: Axes) -> None:
        _settle_names(axes, found, styles)

    lines = sum(label.count("\n") + 1 for label in names) + len(names) * 0.25
    height = max(CURVE_HEIGHT, 0.9 + LINE_OF_NAMES * lines) if is_named else 1.25 * CURVE_HEIGHT
    ending = settle if is_named else None
    return draw(name, figure.title, figure.caption, height, paint, ending)


def reliability_figure(figure: Figure, name: str) -> Drawing:
    """Points with bounds are paler the wider the bounds are. If only one of ``low`` and ``high`` is
    given, or both are equal, it is the share of answers at this point, and sets the dot's size: a
    point of three entities is rarely near the diagonal, which is not an error."""
    styles = looks(figure.series)
    has_bounds = any(_shares(one) is None and Points.of(one).has_bounds for one in figure.series)
    caption = " ".join(filter(None, (figure.caption, PALE_POINTS if has_bounds else "")))

    def paint(axes: Axes) -> Sequence[Artist]:
        axes.plot([0, 1], [0, 1], color=LIGHT["quiet"], linestyle="--", linewidth=1.0)
        for series, look in zip(figure.series, styles, strict=True):
            _paint_reliability(axes, series, look)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_aspect("equal")
        axes.set_xlabel(figure.x_title)
        axes.set_ylabel(figure.y_title)
        axes.grid()
        perfect = Look(LIGHT["quiet"], "--", 1.0)
        return [*_legend(figure.series, styles), line_key(perfect, "perfectly calibrated")]

    return draw(name, figure.title, caption, RELIABILITY_HEIGHT, paint)


def _paint(axes: Axes, points: Points, look: Look, *, is_marked: bool) -> None:
    seen = np.isfinite(points.y)
    if points.has_bounds:
        axes.fill_between(
            points.x, points.low, points.high, color=look.colour, alpha=BAND, linewidth=0
        )
    axes.plot(
        points.x[seen],
        points.y[seen],
        color=look.colour,
        linestyle=look.dashes,
        linewidth=look.width,
        marker=look.marker if is_marked else "",
        markersize=2 + look.width,
        clip_on=False,
    )


def _write_names(axes: Axes, names: Sequence[str], series: Sequence[Series]) -> None:
    for label, one in zip(names, series, strict=True):
        weight = "bold" if one.standing == "ours" else "normal"
        axes.text(
            BESIDE,
            0.5,
            label,
            va="center",
            fontsize=8,
            linespacing=1.0,
            fontweight=weight,
            transform=axes.transAxes,
        )


def _settle_names(axes: Axes, found: Sequence[Points], styles: Sequence[Look]) -> None:
    """Puts each name as near to the end of its line as the others allow, and joins them."""
    texts: list[Text] = list(axes.texts)
    into_axes = axes.transAxes.inverted()
    ends = into_axes.transform(axes.transData.transform([one.last for one in found]))
    heights = [text.get_window_extent().height / axes.bbox.height * 1.15 for text in texts]
    # Names may extend above and below the axes, up to the title and the edge of the figure.
    middles = below_each_other(ends[:, 1].tolist(), heights, -0.14, 1.02)
    for text, end, middle, look in zip(texts, ends.tolist(), middles.tolist(), styles, strict=True):
        text.set_position((BESIDE, middle))
        axes.plot(
            [end[0] + 0.01, BESIDE - 0.01],
            [end[1], middle],
            color=look.colour,
            linewidth=0.7,
            transform=axes.transAxes,
            clip_on=False,
            scalex=False,
            scaley=False,
        )


def _paint_reliability(axes: Axes, series: Series, look: Look) -> None:
    from matplotlib.colors import to_rgba

    points, share = Points.of(series), _shares(series)
    seen = np.isfinite(points.y)
    x, y = points.x[seen], points.y[seen]
    opacity = _opacity(points)[seen]
    if share is None and points.has_bounds:
        axes.vlines(points.x, points.low, points.high, color=look.colour, linewidth=3.0, alpha=BAR)
    _join(axes, x, y, opacity, look)
    sizes = 16.0 if share is None else _dots(share)[seen]
    colours = [to_rgba(look.colour, one) for one in opacity.tolist()]
    axes.scatter(x, y, sizes, color=colours, marker=look.marker)


def _join(axes: Axes, x: FloatArray, y: FloatArray, opacity: FloatArray, look: Look) -> None:
    """Each line is as pale as the paler of the two points it joins."""
    for place in range(len(x) - 1):
        both = slice(place, place + 2)
        axes.plot(
            x[both],
            y[both],
            color=look.colour,
            linestyle=look.dashes,
            linewidth=0.7 * look.width,
            alpha=float(opacity[both].min()),
        )


def _opacity(points: Points) -> FloatArray:
    """By the width of the bounds; a point without bounds is drawn clearly."""
    apart = np.nan_to_num(points.high - points.low)
    return np.interp(apart, (NARROW, WIDE_APART), (CLEAR, PALE))


def _shares(series: Series) -> FloatArray | None:
    if series.low and series.high and series.low != series.high:
        return None
    share = finite(series.low or series.high)
    return np.nan_to_num(share) if share.size else None


def _dots(share: FloatArray) -> FloatArray:
    """Dot areas, proportional to the share."""
    largest = share.max()
    scale = share / largest if largest > 0 else share
    return SMALLEST_DOT + (LARGEST_DOT - SMALLEST_DOT) * scale


def _legend(series: Sequence[Series], styles: Sequence[Look]) -> list[Artist]:
    return [line_key(look, legend_name(one.name)) for one, look in zip(series, styles, strict=True)]
