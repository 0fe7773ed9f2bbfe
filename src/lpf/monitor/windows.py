"""Consecutive windows of events in time: of a number of events, or of days."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError

DAY = 86_400_000_000  # microseconds
MOST_WINDOWS = 60
FEWEST_EVENTS = 20
_FORM = re.compile(r"(\d{1,6})(d?)", re.ASCII)


@dataclass(frozen=True)
class Window:
    """``count`` events from ``first`` to ``last``, in microseconds since 1970."""

    first: int
    last: int
    count: int


@dataclass(frozen=True)
class WindowSize:
    """``number`` events, or ``number`` days if ``in_days``."""

    number: int
    in_days: bool = False

    @classmethod
    def parse(cls, text: str) -> WindowSize:
        """From ``100`` or ``30d``. ConfigError for anything else."""
        match = _FORM.fullmatch(text)
        if match is None or not int(match[1]):
            raise ConfigError(
                f"must be a number of outcomes such as 100, or of days such as 30d, got "
                f"{text[:40]!r}. Nothing was computed.",
                field="window",
            )
        return cls(int(match[1]), bool(match[2]))


def cut_into(
    moments: NDArray[np.int64], size: WindowSize | None = None
) -> Iterator[tuple[Window, slice]]:
    """Windows of events at ``moments`` [N], in order, that are not empty, with their rows. They end
    with the newest event, so the first one may have fewer. By default there are up to
    ``MOST_WINDOWS`` of equal size and at least ``FEWEST_EVENTS`` events."""
    count = len(moments)
    if not count:
        return
    chosen = size or WindowSize(max(FEWEST_EVENTS, -(-count // MOST_WINDOWS)))
    if chosen.in_days:
        age = (moments[-1] - moments) // (chosen.number * DAY)
        ends = np.append(np.flatnonzero(np.diff(age)) + 1, count)
    else:
        ends = np.arange(count, 0, -chosen.number)[::-1]
    start = 0
    for end in ends.tolist():
        yield Window(int(moments[start]), int(moments[end - 1]), end - start), slice(start, end)
        start = end
