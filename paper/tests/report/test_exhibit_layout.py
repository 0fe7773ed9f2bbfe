"""Text in the figures of an experiment: nothing overlaps, nothing is cut off."""

from __future__ import annotations

import pytest
from figure_words import assert_readable, drawn
from made_up_experiments import extreme, realistic
from matplotlib.figure import Figure

from lpf_paper.exhibits import Figure as Exhibit
from lpf_paper.exhibits import Series, Shape
from lpf_paper.report.exhibit_figures import draw_exhibit

__all__ = ["drawn"]  # the fixture


@pytest.mark.parametrize(
    "exhibit",
    [
        exhibit
        for study in (*realistic().studies, extreme().studies[0])
        for exhibit in study.figures
    ],
    ids=lambda exhibit: exhibit.name,
)
def test_words_of_an_experiment(exhibit: Exhibit, drawn: list[Figure]) -> None:
    draw_exhibit(exhibit, "any")
    (figure,) = drawn
    assert_readable(figure)


@pytest.mark.parametrize(
    ("names", "is_upright"),
    [
        (("missing", "flipped", "noise", "copies"), True),
        (tuple("abcdef"), True),
        (tuple("abcdefg"), False),
        (("a name", "Unternehmensbewertungen", "c", "d"), False),
    ],
)
def test_bars_stand_where_their_names_fit(
    names: tuple[str, ...], is_upright: bool, drawn: list[Figure]
) -> None:
    values = tuple(0.9 - 0.1 * place for place in range(len(names)))
    series = (Series("ours", names, values, standing="ours"),)
    draw_exhibit(Exhibit("f", "F", "", "bars", "", "accuracy", series), "f")
    (figure,) = drawn
    assert_readable(figure)
    assert (figure.axes[0].get_ylabel() == "accuracy") is is_upright


@pytest.mark.parametrize("shape", ["points", "lines", "bars"])
def test_names_of_a_legend_are_whole(shape: Shape, drawn: list[Figure]) -> None:
    """Cut in the middle, these would be the same but for their numbers."""
    begun = ["Classifier, averaged", "Classifier ensemble, averaged"]
    names = [*begun, *(f"Classifier no. {n} in the circuit, averaged" for n in range(20))]
    x: tuple[float | str, ...] = ("one", "two") if shape == "bars" else (1.0, 2.0)
    values = [(0.5 + 0.01 * place, 0.6) for place in range(len(names))]
    series = tuple(Series(name, x, y) for name, y in zip(names, values, strict=True))
    draw_exhibit(Exhibit("f", "F", "", shape, "x", "y", series), "f")
    (figure,) = drawn
    assert_readable(figure)
    (legend,) = figure.legends
    written = [text.get_text().replace("\n", " ") for text in legend.get_texts()]
    numbers = [f"{n} " if shape == "points" else "" for n in range(1, len(names) + 1)]
    assert written == [number + name for number, name in zip(numbers, names, strict=True)]
