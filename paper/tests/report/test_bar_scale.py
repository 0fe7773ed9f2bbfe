from __future__ import annotations

import math

import pytest
from figure_words import assert_readable, drawn
from matplotlib.figure import Figure

from lpf_paper.exhibits import Figure as Exhibit
from lpf_paper.exhibits import Series
from lpf_paper.report.bar_figures import Scale
from lpf_paper.report.exhibit_figures import draw_exhibit

__all__ = ["drawn"]  # the fixture

FEW = ("missing", "flipped", "noise")
MANY = tuple(f"a method with a name of its own, no. {n}" for n in range(12))


def one(*y: float | None, high: tuple[float, ...] = ()) -> Series:
    return Series("a", tuple(map(str, range(len(y)))), y, (0.0,) * len(high), high, "ours")


@pytest.mark.parametrize(
    ("series", "is_log"),
    [
        ((one(0.1, 40.0),), True),
        ((one(0.1), one(40.0)), True),
        ((one(0.1, 0.0, None, math.nan, 40.0),), True),
        ((one(1.0, 40.0),), False),
        ((one(-0.1, 0.1, 40.0),), False),
        ((Series("a", ("0", "1"), (0.1, 40.0), (-0.1, 30.0), (0.3, 50.0)),), False),
        ((one(0.0, 0.0),), False),
        ((one(None, 3.0),), False),
        ((one(1.0, 2.0), Series("perfect", ("0", "1"), (1e-6, 1e-6), standing="reference")), False),
    ],
)
def test_a_wide_span_is_shown_by_logarithm(series: tuple[Series, ...], is_log: bool) -> None:
    assert (Scale.of(series).limits is not None) is is_log


def test_every_bar_and_its_bounds_are_within_the_limits() -> None:
    reference = Series("perfect", ("0",), (0.001,), standing="reference")
    limits = Scale.of((one(0.1, 40.0, high=(0.2, 90.0)), reference)).limits
    assert limits is not None
    assert limits[0] < 0.001
    assert limits[1] > 90.0


@pytest.mark.parametrize("names", [FEW, MANY], ids=["upright", "lying"])
def test_bars_of_very_different_sizes(names: tuple[str, ...], drawn: list[Figure]) -> None:
    values = (0.0618, 0.0, 40.3, *(0.2 * n for n in range(1, len(names) - 2)))
    high = tuple(1.2 * value for value in values)
    series = (Series("ours", names, values, (0.0,) * len(names), high, "ours"),)
    draw_exhibit(Exhibit("f", "F", "", "bars", "", "Milliseconds", series), "f")
    (figure,) = drawn
    assert_readable(figure)
    (axes,) = figure.axes
    along, title = (
        (axes.yaxis, axes.get_ylabel())
        if names == FEW
        else (
            axes.xaxis,
            axes.get_xlabel(),
        )
    )
    assert along.get_scale() == "log"
    assert title == "Milliseconds, logarithmic axis"
    assert [text.get_text() for text in axes.texts[:3]] == ["0.062", "0", "40"]


def test_bars_of_like_sizes_keep_their_axis(drawn: list[Figure]) -> None:
    series = (Series("ours", FEW, (0.941, 0.5, 0.939), standing="ours"),)
    draw_exhibit(Exhibit("f", "F", "", "bars", "", "accuracy", series), "f")
    (axes,) = drawn[0].axes
    assert (axes.yaxis.get_scale(), axes.get_ylabel()) == ("linear", "accuracy")
    assert [text.get_text() for text in axes.texts] == ["0.941", "0.500", "0.939"]
