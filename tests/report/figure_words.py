"""Collects all drawn figures and checks that their texts can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from lpf.report import drawing


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
