"""Prediction sets: values among which the true one is, with a coverage that is chosen.

The surprise of a value is -log of its probability. A value belongs to the set of an answer if its
surprise is at most a cutoff: the k-th smallest surprise of the true values of n held-out entities,
k = ⌈(n + 1) · coverage⌉ (split conformal prediction). If a new entity is like the held-out ones,
its set then has the true value with at least the probability ``coverage``, whatever the model is.
With a cutoff for each value, from the entities with this label, this holds for each value by itself
(class-conditional, or Mondrian, sets).

If entities come in groups, each group counts the same, however many entities it has, and the
coverage is that of an entity of a new group (hierarchical conformal prediction).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.metrics.groups import Groups
from lpf.types import Float32Array, FloatArray

_ROUNDING = 1e-9  # of sums of weights, such as 20 · 0.95


def surprise(distribution: FloatArray) -> Float32Array:
    """-log p, in the precision of stored models: what is asked and what was held out are compared
    after the same rounding. A probability of 0 has the largest number, not infinity."""
    with np.errstate(divide="ignore"):
        found = -np.log(np.asarray(distribution, np.float64))
    return np.minimum(found, np.finfo(np.float32).max).astype(np.float32)


def cutoff(surprises: Float32Array, coverage: float, groups: Groups | None = None) -> float:
    """The largest surprise that belongs to a set, from the ``surprises`` [E] of true values and the
    ``groups`` [E] of their entities (None: each its own). Infinite if there are too few: then every
    value belongs to a set."""
    if not 0.0 < coverage < 1.0:
        raise ConfigError(f"must be in (0, 1), got {coverage!r}.", field="coverage")
    if not len(surprises):
        return np.inf
    weights, units = np.ones(len(surprises)), len(surprises)
    if groups is not None:
        _, places, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        weights, units = 1.0 / sizes[places], len(sizes)
    order = np.argsort(surprises, kind="stable")
    reached = np.cumsum(weights[order]) >= (units + 1) * coverage - _ROUNDING
    return float(surprises[order][reached.argmax()]) if reached[-1] else np.inf


def cutoffs_by_value(
    surprises: Float32Array,
    labels: NDArray[np.intp],
    values: int,
    coverage: float,
    groups: Groups | None = None,
) -> FloatArray:
    """One cutoff per value [V], from the entities with this label."""
    found = []
    for value in range(values):
        own = labels == value
        found.append(cutoff(surprises[own], coverage, None if groups is None else groups[own]))
    return np.array(found)


def sets(surprises: Float32Array, cutoffs: FloatArray | float) -> NDArray[np.bool_]:
    """Which values belong to the sets of answers whose values have ``surprises`` [E, V]. A set may
    be empty: then the answer is less sure than held-out answers of this coverage are."""
    return np.asarray(surprises <= cutoffs)


def never_empty(members: NDArray[np.bool_], surprises: Float32Array) -> NDArray[np.bool_]:
    """``members`` [E, V] with the most probable value in the sets that were empty. Coverage can
    only grow."""
    rows = np.flatnonzero(~members.any(axis=1))
    filled = members.copy()
    filled[rows, surprises[rows].argmin(axis=1)] = True
    return filled
