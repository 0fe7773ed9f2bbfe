"""How the series of a figure look: ours in colour and heavy, what we are compared with in grey.

Greys are told apart by their dashes, bars by their place; markers help where both run out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lpf.experiments.exhibits import Series
from lpf.report.curves import Dashes, Look
from lpf.report.palette import LIGHT

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
