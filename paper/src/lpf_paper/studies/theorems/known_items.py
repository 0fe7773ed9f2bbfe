"""Items with exactly known factors, independent given the value: every claim about calibration can
be compared with the exact posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.combine import RobustParameters, Segments, combine_paper, combine_robust
from lpf.domains import stream
from lpf.types import FloatArray

# The product of likelihood ratios: nothing guarded, nothing tempered.
PLAIN = RobustParameters(rho=0.0, epsilon=0.0, fitted=True)


@dataclass(frozen=True)
class KnownItems:
    """E entities with K items each: ``labels`` [E] and ``votes`` [E, K], the value that each item
    names. ``accuracy`` is how often it names the right one; the others are equally likely.
    ``shares`` [V] are those of the values."""

    labels: NDArray[np.intp]
    votes: NDArray[np.intp]
    accuracy: float
    shares: FloatArray

    @property
    def segments(self) -> Segments:
        entities, items = self.votes.shape
        return Segments.of_counts([items] * entities)

    @property
    def likelihood(self) -> FloatArray:
        """P(vote | value), [vote, V]."""
        return vote_likelihood(self.accuracy, len(self.shares))

    @property
    def potential(self) -> FloatArray:
        """P(value | one item), [E·K, V]: each item is exactly calibrated."""
        joint = self.likelihood[self.votes.ravel()] * self.shares
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    @property
    def exact(self) -> FloatArray:
        """P(value | all items), [E, V], by Bayes' rule."""
        logs = np.log(self.likelihood)[self.votes].sum(axis=1) + np.log(self.shares)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def vote_likelihood(accuracy: float, values: int) -> FloatArray:
    wrong = (1.0 - accuracy) / (values - 1)
    return np.where(np.eye(values, dtype=bool), accuracy, wrong)


def draw_items(
    entities: int, items: int, accuracy: float, shares: FloatArray, seed: int
) -> KnownItems:
    generator = stream(seed, "theorems", "votes")
    values = len(shares)
    labels = generator.choice(values, size=entities, p=shares)
    right = generator.random((entities, items)) < accuracy
    moved = generator.integers(1, values, size=(entities, items))
    votes = np.where(right, labels[:, None], (labels[:, None] + moved) % values)
    return KnownItems(labels, votes, accuracy, shares)


def corrected_answer(known: KnownItems, potential: FloatArray) -> FloatArray:
    """The product of likelihood ratios, the prior counted once, [E, V]."""
    unknown = np.full(len(potential), np.nan)
    logs = np.log(known.shares)
    return combine_robust(
        potential, unknown, known.shares, logs, known.segments, PLAIN
    ).distribution


def published_answer(known: KnownItems, weight: float) -> FloatArray:
    """The paper's product of factors with one weight for all, [E, V]."""
    potential = known.potential
    weights = np.full(len(potential), weight)
    return combine_paper(potential, weights, np.log(known.shares), known.segments).distribution
