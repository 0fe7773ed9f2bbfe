"""Where words go so that none lies on another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np

from lpf.types import FloatArray

RINGS = 1.5 ** np.arange(9)  # times the nearest distance
DIRECTIONS = 16


@dataclass(frozen=True)
class Box:
    """The lower left corner, and how wide and high it is."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        along = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        return across * along if across > 0 and along > 0 else 0.0

    def beyond(self, frame: Box) -> float:
        """The area that lies outside of a frame."""
        return self.width * self.height - self.overlap(frame)


def below_each_other(
    wanted: Sequence[float], heights: Sequence[float], low: float, high: float
) -> FloatArray:
    """Middles of labels in one column, as near as can be to where they are wanted (least squares)
    and within the bounds. Labels that do not fit there in all touch each other."""
    order = np.argsort(wanted, kind="stable")
    tall = np.asarray(heights, np.float64)[order]
    offsets = np.concatenate([[0.0], np.cumsum((tall[:-1] + tall[1:]) / 2)])
    rising = _never_falling(np.asarray(wanted, np.float64)[order] - offsets)
    least, most = low + tall[0] / 2, high - tall[-1] / 2 - offsets[-1]
    placed = np.empty(len(order))
    placed[order] = np.clip(rising, least, max(least, most)) + offsets
    return placed


def around(point: tuple[float, float], size: tuple[float, float], nearest: float) -> Iterator[Box]:
    """Places for a label of that width and height near a point, those at the ``nearest`` distance
    first; on each ring to the right, then around it."""
    for ring in RINGS.tolist():
        for step in range(DIRECTIONS):
            turn = (step + 1) // 2 * (-1) ** step * 2 * pi / DIRECTIONS
            yield _beside(point, size, ring * nearest, turn)


def free_place(candidates: Iterator[Box], taken: Sequence[Box], frame: Box) -> Box:
    """The first that covers nothing and stays in the frame, or the one that covers least."""
    best, least = None, np.inf
    for box in candidates:
        cost = sum(box.overlap(one) for one in taken) + 4 * box.beyond(frame)
        if cost <= 1e-9:
            return box
        if cost < least:
            best, least = box, cost
    assert best is not None  # there is always a candidate
    return best


def _beside(point: tuple[float, float], size: tuple[float, float], away: float, turn: float) -> Box:
    """The box touches a circle around the point in that direction, from outside."""
    (x, y), (width, height) = point, size
    middle_x = x + cos(turn) * (away + width / 2)
    middle_y = y + sin(turn) * (away + height / 2)
    return Box(middle_x - width / 2, middle_y - height / 2, width, height)


def _never_falling(values: FloatArray) -> FloatArray:
    """The nearest rising sequence: neighbours that fall share their mean."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (mean, count), (first, more) = blocks.pop(), blocks.pop()
            whole = count + more
            blocks.append(((mean * count + first * more) / whole, whole))
    return np.repeat([mean for mean, _ in blocks], [count for _, count in blocks])
