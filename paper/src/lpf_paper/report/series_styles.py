"""Styles of the series of a figure: ours in colour with heavy lines, all others in grey.

Grey lines differ in their dashes and markers, grey bars in their hatching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lpf.report import LIGHT, Dashes, Look
from lpf_paper.exhibits import Series

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
OURS, RIVAL = 2.3, 1.2  # line widths in points
GREYS = tuple(LIGHT[name] for name in ("rival", "other", "quiet"))
HATCHES = ("", "////", "....", "xxxx")


@dataclass(frozen=True)
class Fill:
    """How bars are filled. ``hatch`` is a matplotlib pattern, drawn in the page's colour."""

    colour: str
    hatch: str = ""


def looks(series: Sequence[Series]) -> list[Look]:
    """Line styles in the order of the series. If no series is ours and there are enough colours,
    every series has a colour."""
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
    """Fills for bars, in the order of the series: three greys, then the same greys hatched."""
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
