"""Time two functions against each other in one run.

On a shared machine with a varying clock speed, absolute times cannot be compared: candidate and
reference run in turns, and the result is the median of the paired ratios.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the results: a value, what it was compared with, and if the goal is met.

    ``met`` is None if there is no goal.
    """

    name: str
    value: float
    unit: str
    reference: str
    ratio: float | None
    goal: str
    met: bool | None

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Paired:
    """Median seconds of both sides, and the median of reference/candidate over the pairs."""

    candidate_seconds: float
    reference_seconds: float
    ratio: float


def paired_ratio(
    candidate: Callable[[], object],
    reference: Callable[[], object],
    repeats: int = 15,
    inner_candidate: int = 1,
    inner_reference: int = 1,
    settle: float = 0.0,
) -> Paired:
    """How many times faster ``candidate`` is than ``reference``, run in turns after a warm-up.

    Before each run it sleeps for ``settle`` seconds, in case one side leaves threads spinning that
    would take a core from the other (OpenBLAS does, for about a tenth of a second).
    """
    candidate(), reference()
    pairs = []
    for _ in range(repeats):
        time.sleep(settle)
        seconds = _seconds(candidate, inner_candidate)
        time.sleep(settle)
        pairs.append((seconds, _seconds(reference, inner_reference)))
    return Paired(
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        statistics.median(pair[1] / pair[0] for pair in pairs),
    )


def _seconds(call: Callable[[], object], inner: int) -> float:
    """Seconds of one call, the mean over ``inner`` calls, without garbage collection."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        return (time.perf_counter() - start) / inner
    finally:
        gc.enable()
