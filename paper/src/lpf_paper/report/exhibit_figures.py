"""Figures of a study, from plain data to drawings.

A figure that cannot be drawn is refused by name: an empty panel would easily be overlooked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from lpf.errors import ConfigError
from lpf.report import Drawing
from lpf_paper.exhibits import Figure, Series, Shape
from lpf_paper.report.bar_figures import bar_figure
from lpf_paper.report.line_figures import line_figure, reliability_figure
from lpf_paper.report.matrix_figures import matrix_figure
from lpf_paper.report.point_figures import point_figure

SHAPES: Mapping[Shape, Callable[[Figure, str], Drawing]] = {
    "lines": line_figure,
    "points": point_figure,
    "bars": bar_figure,
    "reliability": reliability_figure,
    "matrix": matrix_figure,
}
OVER_NUMBERS: tuple[Shape, ...] = ("lines", "points", "reliability")


def draw_exhibit(figure: Figure, name: str) -> Drawing:
    """``name`` is the name of the files. ConfigError if no point is finite, or if the series do not
    fit the shape. Series without a finite point are left out, and the caption names them."""
    _check(figure)
    drawable = tuple(one for one in figure.series if _has_points(one))
    if not drawable:
        raise _refused(figure, "no series has a finite point, so the panel would be empty")
    shown = replace(figure, series=drawable, caption=_caption(figure))
    return SHAPES[figure.shape](shown, name)


def _check(figure: Figure) -> None:
    if figure.shape not in SHAPES:
        raise _refused(figure, f"its shape {figure.shape!r} is not one of {', '.join(SHAPES)}")
    for series in figure.series:
        for of, values in (("y", series.y), ("low", series.low), ("high", series.high)):
            if len(values) != len(series.x) and (of == "y" or values):
                counts = f"{len(values)} values of {of} for {len(series.x)} of x"
                raise _refused(figure, f"series {series.name!r} has {counts}")
        _check_x(figure, series)
        # A bound from a JSON document may be None, contrary to its type.
        bounds = zip(series.low, series.high, strict=False)
        if any(None not in pair and pair[0] > pair[1] for pair in bounds):
            raise _refused(figure, f"series {series.name!r} has a low above its high")


def _check_x(figure: Figure, series: Series) -> None:
    if figure.shape not in OVER_NUMBERS:
        return
    for x in series.x:
        if isinstance(x, str) or not math.isfinite(x):
            raise _refused(figure, f"series {series.name!r} has {x!r} on x, which is not a number")
        if figure.log_x and x <= 0:
            raise _refused(figure, f"series {series.name!r} has {x:g} on a logarithmic x axis")


def _caption(figure: Figure) -> str:
    """The caption, with a note about series and points that cannot be shown."""
    missing = [one.name for one in figure.series if not _has_points(one)]
    infinite = [one.name for one in figure.series if any(map(_is_infinite, one.y))]
    sentences = [figure.caption]
    if missing:
        sentences.append(f"Without a finite point: {', '.join(missing)}.")
    if infinite:
        sentences.append(f"Infinite values are not drawn: {', '.join(infinite)}.")
    return " ".join(filter(None, sentences))


def _has_points(series: Series) -> bool:
    return any(y is not None and math.isfinite(y) for y in series.y)


def _is_infinite(y: float | None) -> bool:
    return y is not None and math.isinf(y)


def _refused(figure: Figure, why: str) -> ConfigError:
    return ConfigError(
        f"report: figure {figure.name!r} ({figure.title}) cannot be drawn: {why}. "
        "Nothing was written; fix the study that made it, or leave the figure out."
    )
