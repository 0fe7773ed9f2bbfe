"""Which stances occur among an entity's items: none, only supporting, only refuting, or both.

A value such as "disputed" needs one item that supports the claim and one that refutes it. No
product or average over items can say that; a sum over the four cases can. If items take their
stances independently,

    P(no item supports) = Π (1 - P(supports)ᵢ)^dᵢ, and so on, which gives P(k) of the four cases k
    Λ(y) = Σₖ P(k) · r_k(y)      r_k(y) = P(y | k) / P(y), a table that is fitted in training

Λ is one more likelihood in the circuit's product. dᵢ discounts copies and unfamiliar texts, as in
``robust``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lpf.items import Segments
from lpf.types import FloatArray

CASES: Final = ("none", "supports", "refutes", "both")
LEAST: Final = 1e-9  # of a probability whose logarithm is taken
STEPS: Final = 200  # of expectation-maximisation
# Gauss-Legendre quadrature on [0, 1].
_QUADRATURE: Final = np.polynomial.legendre.leggauss(12)
_NODES: Final = 0.5 * (_QUADRATURE[0] + 1.0)
_WEIGHTS: Final = 0.5 * _QUADRATURE[1]


def occurrences(stances: FloatArray, discount: FloatArray, segments: Segments) -> FloatArray:
    """P(k) [E, 4] of the cases of ``CASES``. ``stances`` [N, 3] are the chances that an item
    supports the claim, refutes it, or is neutral."""
    return cases_of(np.exp(segments.sum(log_absent(stances, discount))))


def cases_of(absent: FloatArray) -> FloatArray:
    """P(k) [E, 4] from the chances [E, 3] that no item takes either stance, none supports, and none
    refutes."""
    nothing, no_support, no_refutation = absent.T
    both = 1.0 - no_support - no_refutation + nothing
    cases = np.stack([nothing, no_refutation - nothing, no_support - nothing, both], axis=1)
    return np.asarray(np.maximum(cases, 0.0))  # rounding may leave a little less than 0


def fit_ratios(cases: FloatArray, labels: NDArray[np.intp], prior: FloatArray) -> FloatArray:
    """r_k(y) [4, V] from P(k) [E, 4] and the labels of E entities, by expectation-maximisation,
    because the case of an entity is not known. One average entity is added to each case."""
    average = np.tile(prior, (len(CASES), 1))
    table = average
    for _ in range(STEPS):
        chance = cases * table[:, labels].T
        chance /= np.maximum(chance.sum(axis=1, keepdims=True), LEAST)
        counts = average.copy()
        np.add.at(counts.T, labels, chance)
        table = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(table / prior)


def log_occurrence(
    stances: FloatArray, discount: FloatArray, segments: Segments, ratios: FloatArray
) -> FloatArray:
    """log Λ [E, V]; 0 for an entity none of whose items counts. ``ratios`` are [4, V], or
    [E, 4, V] if they differ by entity."""
    likelihood = (occurrences(stances, discount, segments)[:, None, :] @ ratios)[:, 0]
    counts = segments.sum(discount) > 0.0
    return np.where(counts[:, None], np.log(np.maximum(likelihood, LEAST)), 0.0)


def occurrence_contributions(
    stances: FloatArray, discount: FloatArray, segments: Segments, ratios: FloatArray
) -> FloatArray:
    """Each item's part of log Λ [N, V]; those of an entity add up to it.

    They are Aumann-Shapley values: while all items are faded in together, from saying nothing to
    their stances, an item gets what log Λ gains through it. What log Λ is before that is divided in
    proportion to ``discount``.
    """
    none, supports, refutes, both = np.moveaxis(ratios, -2, 0)
    # Λ = both + absent · change, so its slope along each of the three products is simple.
    change = np.stack([none - supports - refutes + both, refutes - both, supports - both], axis=-2)
    parts = np.zeros((len(stances), ratios.shape[-1]))
    # The chances that an item is not neutral, supports, and refutes.
    taken = np.stack([1.0 - stances[:, 2], stances[:, 0], stances[:, 1]], axis=1)
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        left = np.maximum(1.0 - node * taken, LEAST)
        absent = np.exp(segments.sum(discount[:, None] * np.log(left)))
        likelihood = np.maximum((absent[:, None, :] @ change)[:, 0] + both, LEAST)
        mean_slope = absent[:, :, None] * change / likelihood[:, None, :]
        slope = -discount[:, None] * taken / left
        parts += weight * (slope[:, None, :] @ mean_slope[segments.owner])[:, 0]
    rest = log_occurrence(stances, discount, segments, ratios) - segments.sum(parts)
    share = discount / np.maximum(segments.sum(discount), LEAST)[segments.owner]
    return np.asarray(parts + share[:, None] * rest[segments.owner])


def log_absent(stances: FloatArray, discount: FloatArray) -> FloatArray:
    """dᵢ · log P of (neither stance, no support, no refutation) [N, 3]."""
    absent = np.stack([stances[:, 2], 1.0 - stances[:, 0], 1.0 - stances[:, 1]], axis=1)
    return np.asarray(discount[:, None] * np.log(np.maximum(absent, LEAST)))
