"""Which variables depend on each other: G-tests on all pairs, from rows where both are known."""

from __future__ import annotations

import numpy as np

from lpf.spn.layers import FloatArray


def independence_p_value(counts: FloatArray) -> float:
    """p-value of the G-test on a table of counts [V, W]; 1.0 when nothing can be tested.

    Degrees of freedom count only the values that occur: an empty row or column tests nothing.
    """
    used = counts[counts.sum(axis=1) > 0.0][:, counts.sum(axis=0) > 0.0]
    freedom = (used.shape[0] - 1) * (used.shape[1] - 1)
    if used.size == 0 or freedom == 0:
        return 1.0
    expected = np.outer(used.sum(axis=1), used.sum(axis=0)) / used.sum()
    seen = used > 0.0
    statistic = 2.0 * float((used[seen] * np.log(used[seen] / expected[seen])).sum())
    # Rounding may leave a statistic of -1e-15 for exact independence.
    from scipy.special import chdtrc  # slow to import, and only learning needs it

    return float(chdtrc(freedom, max(statistic, 0.0)))


def dependent_groups(
    one_hot: FloatArray, slots: list[slice], significance: float
) -> list[list[int]]:
    """Positions in ``slots`` grouped so that no dependence is found between groups.

    ``one_hot`` is [N, S]. The level is divided by the number of pairs (Bonferroni), so that
    ``significance`` is the chance of joining variables that are all independent.
    """
    counts = one_hot.T @ one_hot
    pairs = [(i, j) for i in range(len(slots)) for j in range(i)]
    level = significance / max(1, len(pairs))
    group = list(range(len(slots)))
    for i, j in pairs:
        if group[i] != group[j] and independence_p_value(counts[slots[i], slots[j]]) < level:
            group = [group[j] if label == group[i] else label for label in group]
    members: dict[int, list[int]] = {}
    for position, label in enumerate(group):
        members.setdefault(label, []).append(position)
    return list(members.values())
