"""A point that stands for few entities must not look like a failure."""

from __future__ import annotations

import pytest
from figure_words import drawn
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

from lpf.report.drawing import Drawing
from lpf_paper.exhibits import Figure as Exhibit
from lpf_paper.exhibits import Series
from lpf_paper.report.exhibit_figures import draw_exhibit
from lpf_paper.report.line_figures import CLEAR, PALE, PALE_POINTS

__all__ = ["drawn"]  # the fixture

X, Y = (0.55, 0.75, 0.95), (0.33, 0.8, 0.94)
# Of 3, of 25 and of 500 entities.
LOW, HIGH = (0.06, 0.61, 0.92), (0.79, 0.91, 0.96)


def reliability(series: Series) -> Drawing:
    title = "Are the confidences right?"
    return draw_exhibit(
        Exhibit("f", title, "Said.", "reliability", "confidence", "right", (series,)), "f"
    )


def dots(axes: Axes) -> PathCollection:
    (found,) = (one for one in axes.collections if isinstance(one, PathCollection))
    return found


def bars(axes: Axes) -> list[LineCollection]:
    return [one for one in axes.collections if isinstance(one, LineCollection)]


def test_the_wider_the_bounds_the_paler_the_point(drawn: list[Figure]) -> None:
    drawing = reliability(Series("ours", X, Y, LOW, HIGH, "ours"))
    (axes,) = drawn[0].axes
    few, some, many = dots(axes).get_facecolors()[:, 3].tolist()
    assert few == pytest.approx(PALE)
    assert few < some < many
    assert many == pytest.approx(CLEAR)
    (light,) = bars(axes)
    assert [path.vertices[:, 1].tolist() for path in light.get_paths()] == [
        list(pair) for pair in zip(LOW, HIGH, strict=True)
    ]
    _, first, second = axes.lines  # behind the diagonal
    assert (first.get_alpha(), second.get_alpha()) == pytest.approx((few, some))
    assert drawing.caption == f"Said. {PALE_POINTS}"


@pytest.mark.parametrize(("low", "high"), [((), ()), ((0.1, 0.2, 0.7), ()), (Y, Y)])
def test_without_bounds_every_point_is_clear(
    low: tuple[float, ...], high: tuple[float, ...], drawn: list[Figure]
) -> None:
    drawing = reliability(Series("ours", X, Y, low, high, "ours"))
    (axes,) = drawn[0].axes
    assert set(dots(axes).get_facecolors()[:, 3].tolist()) == {CLEAR}
    assert not bars(axes)
    assert drawing.caption == "Said."
