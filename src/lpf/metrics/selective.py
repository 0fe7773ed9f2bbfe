"""Accuracy of the surest answers, and how certain a difference between two methods is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError, EvidenceError
from lpf.metrics.intervals import LEVEL, percentiles
from lpf.types import FloatArray

DRAWS = 2000
BLOCK = 1 << 21  # weights that are drawn together


@dataclass(frozen=True, eq=False)
class SureAnswers:
    """One run of a method: how sure its E answers are (``confidence`` [E]), and whether they are
    ``right`` [E]."""

    confidence: FloatArray
    right: NDArray[np.bool_]

    def accuracy(self, coverage: float) -> float:
        """The share of right answers among the surest share ``coverage``. Equally sure answers have
        no order, so each counts as their mean; of an answer at the edge, a part counts."""
        return float(self.accuracies(np.ones((1, len(self.right))), coverage)[0])

    def accuracies(self, weights: FloatArray, coverage: float) -> FloatArray:
        """The same with ``weights`` [D, E] of the entities, [D]."""
        if not 0.0 < coverage <= 1.0:
            raise ConfigError(f"must be in (0, 1], got {coverage!r}.", field="coverage")
        if not len(self.right):
            raise EvidenceError("there are no answers to score.")
        order = np.argsort(-self.confidence, kind="stable")
        _, level, sizes = np.unique(
            -self.confidence[order], return_inverse=True, return_counts=True
        )
        hits = np.bincount(level, weights=self.right[order]) / sizes
        ordered = weights[:, order]
        wanted = coverage * ordered.sum(axis=1, keepdims=True)
        before = np.cumsum(ordered, axis=1) - ordered
        taken = np.clip(wanted - before, 0.0, ordered)
        return np.asarray(taken @ hits[level] / wanted[:, 0])


@dataclass(frozen=True)
class SelectiveDifference:
    """Accuracies of two methods among their surest answers, means over runs, and the interval of
    ``first`` less ``second``."""

    first: float
    second: float
    low: float
    high: float


def selective_difference(
    first: Sequence[SureAnswers],
    second: Sequence[SureAnswers],
    keys: Sequence[Sequence[Hashable]],
    coverage: float,
    generator: np.random.Generator,
    *,
    draws: int = DRAWS,
) -> SelectiveDifference:
    """Two methods on the same entities: one run of each per seed, with the ``keys`` of its
    entities; entities with one key get one weight. A percentile interval of the Bayesian bootstrap
    (see ``metrics.intervals``); seeds are drawn with replacement."""
    if not len(first) == len(second) == len(keys) > 0:
        raise EvidenceError(
            f"{len(first)} and {len(second)} runs with {len(keys)} lists of keys cannot be paired."
        )
    numbers: dict[Hashable, int] = {}
    places = [
        np.array([numbers.setdefault(key, len(numbers)) for key in row], np.intp) for row in keys
    ]
    block = max(1, BLOCK // len(numbers))
    found = []
    for begin in range(0, draws, block):
        count = min(block, draws - begin)
        drawn = generator.exponential(size=(count, len(numbers)))
        runs = np.stack(
            [
                one.accuracies(drawn[:, at], coverage) - two.accuracies(drawn[:, at], coverage)
                for one, two, at in zip(first, second, places, strict=True)
            ]
        )
        shares = generator.multinomial(len(keys), np.full(len(keys), 1.0 / len(keys)), count)
        found.append((runs.T * shares).sum(axis=1) / len(keys))
    low, high = percentiles(np.concatenate(found)[:, None], LEVEL)
    means = [float(np.mean([one.accuracy(coverage) for one in runs])) for runs in (first, second)]
    return SelectiveDifference(means[0], means[1], float(low[0]), float(high[0]))
