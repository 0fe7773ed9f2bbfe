"""Words in figures: none on top of another, none cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from made_up_experiments import extreme, realistic
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from trained_runs import trained

from lpf.experiments.exhibits import Figure as Exhibit
from lpf.experiments.exhibits import Series
from lpf.report import drawing, write_domains_report, write_training_report
from lpf.report.exhibit_figures import drawn as drawing_of
from lpf.training import FIFTEEN_SEEDS, SEVEN_SEEDS

LONG_SEEDS = (2**63 - 1, 2**62, 10**18, 5, 6)
LONG_NAMES = ("materials and everything that they are made of", "Unternehmensbewertungen", "law")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Every figure that is drawn in a test."""
    seen: list[Figure] = []
    write = drawing._png

    def watched(figure: Figure) -> bytes:
        content = write(figure)
        FigureCanvasAgg(figure).draw()  # so that words can be asked where they stand
        seen.append(figure)
        return content

    monkeypatch.setattr(drawing, "_png", watched)
    return seen


def words_of(figure: Figure) -> Iterator[Text]:
    (axes,) = figure.axes
    yield from within(axes.get_xticks(), axes.get_xticklabels(), axes.get_xlim())
    yield from within(axes.get_yticks(), axes.get_yticklabels(), axes.get_ylim())
    yield from (axes.xaxis.label, axes.yaxis.label, *axes.texts, *figure.texts)
    for legend in figure.legends:
        yield from legend.get_texts()


def within(
    places: Sequence[float], labels: Sequence[Text], limits: tuple[float, float]
) -> Iterator[Text]:
    """Ticks beyond the ends of an axis are not shown."""
    low, high = sorted(limits)
    yield from (one for at, one in zip(places, labels, strict=True) if low <= at <= high)


def assert_readable(figure: Figure) -> None:
    words = [one for one in words_of(figure) if one.get_text()]
    boxes = [(one.get_text(), one.get_window_extent()) for one in words]
    for name, box in boxes:
        assert figure.bbox.x0 <= box.x0, name
        assert box.x1 <= figure.bbox.x1, name
        assert figure.bbox.y0 <= box.y0, name
        assert box.y1 <= figure.bbox.y1, name
    for (name, box), (other, second) in combinations(boxes, 2):
        assert not box.overlaps(second), f"{name!r} and {other!r}"


@pytest.mark.parametrize("seeds", [(7,), LONG_SEEDS, SEVEN_SEEDS, FIFTEEN_SEEDS])
def test_words_of_a_training_report(
    seeds: tuple[int, ...], drawn: list[Figure], tmp_path: Path
) -> None:
    run = trained(seeds, members=min(5, len(seeds) - len(seeds) // 3))
    write_training_report(run, tmp_path, dataset_name="any")
    assert len(drawn) == 7
    for figure in drawn:
        assert_readable(figure)


@pytest.mark.parametrize("names", [("one",), LONG_NAMES, tuple("abcdefgh")])
def test_words_of_a_domains_report(
    names: tuple[str, ...], drawn: list[Figure], tmp_path: Path
) -> None:
    write_domains_report({name: trained() for name in names}, tmp_path)
    assert len(drawn) == 5
    for figure in drawn:
        assert_readable(figure)


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
    drawing_of(exhibit, "any")
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
    drawing_of(Exhibit("f", "F", "", "bars", "", "accuracy", series), "f")
    (figure,) = drawn
    assert_readable(figure)
    assert (figure.axes[0].get_ylabel() == "accuracy") is is_upright
