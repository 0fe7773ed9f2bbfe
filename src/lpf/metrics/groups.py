"""Entities in groups: what they say together, and how sure a mean over them is.

Entities of one group, such as rumours about one event, share more than their texts. If there are
few groups, their entities must not count as independent: probabilities fitted to them would be sure
about groups that nobody has seen. Each then gets the weight 1/(1 + (n - 1)·r) of Kish's design
effect, n being the size of its group and r how alike the labels within groups are. With many or
small groups all entities have the weight 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from lpf.types import FloatArray

# With fewer groups, means over them are known too badly to take their entities as independent.
FEW_GROUPS = 30
LARGE_GROUPS = 5  # entities on average; pairs or triples are nearly independent

Groups = NDArray[np.intp]


def few_groups(names: Sequence[Hashable | None]) -> Groups | None:
    """The number of each entity's group [E], given its name (None: a group of its own). None unless
    the groups are few and large."""
    numbers: dict[Hashable, int] = {}
    groups = np.array(
        [
            numbers.setdefault((name, None) if name is not None else place, len(numbers))
            for place, name in enumerate(names)
        ],
        dtype=np.intp,
    )
    are_large = len(groups) >= LARGE_GROUPS * max(1, len(numbers))
    return groups if are_large and len(numbers) < FEW_GROUPS else None


def group_weights(labels: NDArray[np.intp], groups: Groups | None) -> FloatArray:
    """The weight of each entity [E], given its label [E] (all known) and the number of its group
    [E] (None: not few). Labels that are no more alike within groups than between them, or a single
    group, give weights of 1."""
    if groups is None or len(labels) == 0:
        return np.ones(len(labels))
    _, places, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    alike = _intraclass_correlation(labels, places, sizes)
    return np.asarray(1.0 / (1.0 + (sizes[places] - 1.0) * alike))


def _intraclass_correlation(
    labels: NDArray[np.intp], groups: NDArray[np.intp], sizes: NDArray[np.intp]
) -> float:
    """By analysis of variance, over all values together; at least 0."""
    count, total = len(sizes), int(sizes.sum())
    if not 1 < count < total:
        return 0.0
    tables = np.zeros((count, int(labels.max()) + 1))
    np.add.at(tables, (groups, labels), 1.0)
    shares, overall = tables / sizes[:, None], tables.sum(axis=0) / total
    between = float((sizes[:, None] * (shares - overall) ** 2).sum()) / (count - 1)
    within = float((sizes[:, None] * shares * (1.0 - shares)).sum()) / (total - count)
    typical = (total - float((sizes**2).sum()) / total) / (count - 1)
    variance = between + (typical - 1.0) * within
    return max(0.0, (between - within) / variance) if variance > 0.0 else 0.0


def weighted_mean(losses: FloatArray, weights: FloatArray) -> float:
    return float(weights @ losses / weights.sum())


def standard_error(losses: FloatArray, weights: FloatArray, groups: Groups | None) -> float:
    """Of the weighted mean of ``losses`` [E], whose entities are independent between ``groups`` [E]
    (None: all are). Infinite for a single group."""
    spread = weights * (losses - weighted_mean(losses, weights))
    correction = 1.0
    if groups is not None:
        spread = np.asarray(np.bincount(groups, spread)[np.unique(groups)], np.float64)
        if len(spread) < 2:
            return np.inf
        correction = len(spread) / (len(spread) - 1)
    return float(np.sqrt((spread**2).sum() * correction) / weights.sum())
