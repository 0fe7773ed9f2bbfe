"""p-values that hold for any number of observations: of shares, and of counts of several kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpf.types import FloatArray

PERMUTATIONS, SEED = 1999, 7


def chance_of_as_many(count: int, shares: FloatArray) -> float:
    """P(at least ``count`` of N independent events), event i having the chance ``shares`` [N] at
    most. From the binomial distribution with their mean, which bounds it above the mean (Hoeffding
    1956); below, 1."""
    from scipy.special import bdtrc

    total, mean = len(shares), float(np.mean(shares)) if len(shares) else 0.0
    if count < total * mean + 1.0:
        return 1.0
    return float(bdtrc(count - 1, total, mean))


def chance_of_as_few(marked: int, drawn: int, all_marked: int, total: int) -> float:
    """P(at most ``marked`` marked ones) if ``drawn`` of ``total``, of which ``all_marked`` are
    marked, are drawn without replacement (one-sided Fisher test)."""
    from scipy.special import gammaln

    def log_choose(size: int, part: NDArray[np.int64]) -> FloatArray:
        found = gammaln(size + 1.0) - gammaln(part + 1.0) - gammaln(size - part + 1.0)
        return np.asarray(found, np.float64)

    least, most = max(0, drawn + all_marked - total), min(drawn, all_marked)
    counts = np.arange(least, most + 1)
    logs = log_choose(all_marked, counts) + log_choose(total - all_marked, drawn - counts)
    chances = np.exp(logs - np.logaddexp.reduce(logs))
    return min(1.0, float(chances[: max(0, marked - least + 1)].sum()))


def chance_of_other_mix(counts: NDArray[np.int64], before: NDArray[np.int64]) -> float:
    """P(the mix of ``counts`` [V] differs as much from that of ``before`` [V]) if both are random
    parts of one population: a permutation test of the chi-squared distance, with a fixed seed."""
    together, size = counts + before, int(counts.sum())
    used = together > 0
    if not size or not before.sum() or used.sum() < 2:
        return 1.0
    drawn = np.random.default_rng(SEED).multivariate_hypergeometric(
        together[used], size, size=PERMUTATIONS, method="marginals"
    )
    expected = together[used] * (size / together.sum())

    def distance(rows: NDArray[np.int64]) -> FloatArray:
        return np.asarray(((rows - expected) ** 2 / expected).sum(axis=-1))

    reached = int((distance(drawn) >= distance(counts[used]) - 1e-9).sum())
    return (reached + 1) / (PERMUTATIONS + 1)


def total_variation(counts: NDArray[np.int64], before: NDArray[np.int64]) -> float:
    """Half the sum of the differences of two mixes [V]: the share that would have to change."""
    return float(np.abs(counts / counts.sum() - before / before.sum()).sum() / 2.0)
