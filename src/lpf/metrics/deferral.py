"""Deferral: answer only if an answer this sure is wrong with a chance of at most ``max_risk``.

Answers less sure than a threshold are deferred. It is found on held-out entities, sorted by how
sure their answers are. Test k asks whether the k surest answers have so few errors that a risk
above ``max_risk`` is ruled out (the Clopper-Pearson bound), beginning with the fewest that could
show it; the threshold is that of the last test that is passed (fixed-sequence testing, as in "learn
then test"). The tests need no correction for their number: if surer answers are not more often
wrong, the risk of the answers that are given is at most ``max_risk`` with a confidence of
``RISK_CONFIDENCE``.

One error among the very surest would end a single sequence. If there are entities enough, there are
three: one begins with the fewest, two at a quarter and at half of the entities. They share the
chance of error, and one that reaches the beginning of the next brings its part along (the fallback
procedure).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.types import Float32Array, FloatArray

RISK_CONFIDENCE = 0.95
# Where sequences begin, as a share of the entities (0: with the fewest), and their part of the
# chance of error.
STARTS = ((0.0, 0.5), (0.25, 0.25), (0.5, 0.25))
RISKS = tuple(round(step * scale, 6) for scale in (0.001, 0.01) for step in range(1, 10)) + tuple(
    round(0.05 * step, 2) for step in range(2, 11)
)  # to choose from when the smallest reachable risk is shown


def fewest_without_error(max_risk: float, chance: float = 1.0 - RISK_CONFIDENCE) -> int:
    """How many answers without an error rule out a risk above ``max_risk``: n with
    (1 - risk)^n ≤ chance."""
    _check(max_risk)
    return math.ceil(math.log(chance) / math.log1p(-max_risk) - 1e-9)


def deferral_cutoff(
    surprises: Float32Array, right: NDArray[np.bool_], max_risk: float
) -> float | None:
    """The surprise from which on answers are deferred, from the ``surprises`` [E] of held-out
    answers (their top values) and whether they were ``right`` [E]. Infinite if all may be given;
    None if no threshold keeps the risk."""
    _check(max_risk)
    if not len(surprises):
        return None
    order = np.argsort(surprises, kind="stable")
    ordered = surprises[order]
    errors = np.cumsum(~right[order], dtype=np.intp)
    # Answers that are equally sure are given together or not at all.
    ends = np.flatnonzero(np.append(ordered[1:] > ordered[:-1], True))
    chances = chance_of_few_errors(errors[ends], ends + 1, max_risk)
    begins = _begins(len(ordered), max_risk)
    passed, carried, waiting = -1, 0.0, 0
    for place, (end, chance) in enumerate(zip(ends.tolist(), chances.tolist(), strict=True)):
        level = carried
        while waiting < len(begins) and begins[waiting][0] <= end + 1:
            level += begins[waiting][1]
            waiting += 1
        carried = level if level > 0.0 and chance <= level else 0.0
        if carried:
            passed = place
    if passed < 0:
        return None
    return float(ordered[ends[passed] + 1]) if passed + 1 < len(ends) else math.inf


def _begins(entities: int, max_risk: float) -> list[tuple[int, float]]:
    """Numbers of answers at which sequences begin, with their parts of the chance of error."""
    chance = 1.0 - RISK_CONFIDENCE
    fewest = fewest_without_error(max_risk, chance * STARTS[0][1])
    if entities * STARTS[1][0] <= fewest:
        return [(fewest_without_error(max_risk, chance), chance)]
    return [(max(fewest, math.ceil(share * entities)), chance * part) for share, part in STARTS]


def chance_of_few_errors(
    errors: NDArray[np.intp], answers: NDArray[np.intp], risk: float
) -> FloatArray:
    """P(at most ``errors`` of ``answers`` are wrong) if each is wrong with the chance ``risk``."""
    from scipy.special import bdtr

    return np.asarray(bdtr(errors, answers, risk), np.float64)


def smallest_risk(surprises: Float32Array, right: NDArray[np.bool_]) -> float | None:
    """The smallest of ``RISKS`` that can be kept; None if none can."""
    reachable = (risk for risk in RISKS if deferral_cutoff(surprises, right, risk) is not None)
    return next(reachable, None)


def nearest(
    surprises: Float32Array, right: NDArray[np.bool_], surprise: float, most: int
) -> tuple[int, int]:
    """How many of the ``most`` answers that are about as sure as ``surprise`` were right: as many
    surer ones as less sure ones, where there are enough. Returns (right, of how many)."""
    order = np.argsort(surprises, kind="stable")
    count = min(most, len(order))
    middle = int(np.searchsorted(surprises[order], np.float32(surprise)))
    start = min(max(middle - count // 2, 0), len(order) - count)
    return int(right[order[start : start + count]].sum()), count


def _check(max_risk: float) -> None:
    if not 0.0 < max_risk < 1.0:
        raise ConfigError(f"must be in (0, 1), got {max_risk!r}.", field="max_risk")
