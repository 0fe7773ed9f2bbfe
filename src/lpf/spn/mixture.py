"""Clusters of rows: a mixture of independent categoricals fitted by EM, gaps allowed."""

from __future__ import annotations

import numpy as np

from lpf.spn.layers import FloatArray, IntArray

# Keeps an unseen value of one cluster possible while fitting; the leaves are estimated anew.
_FITTING_SMOOTHING = 0.1


def cluster_rows(
    one_hot: FloatArray,
    slots: list[slice],
    clusters: int,
    iterations: int,
    restarts: int,
    *,
    generator: np.random.Generator,
) -> IntArray:
    """Cluster of each row, [N], from the best of several fits. ``one_hot`` is [N, S]."""
    fits = [_fit(one_hot, slots, clusters, iterations, generator) for _ in range(restarts)]
    best = max(fits, key=lambda fit: fit[0])
    return best[1]


def _fit(
    one_hot: FloatArray,
    slots: list[slice],
    clusters: int,
    iterations: int,
    generator: np.random.Generator,
) -> tuple[float, IntArray]:
    labels = generator.integers(clusters, size=len(one_hot))
    shares = np.eye(clusters)[labels]
    previous = -np.inf
    for _ in range(iterations):
        log_joint = _log_joint(one_hot, slots, shares)
        evidence = np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
        total = float(evidence.sum())
        shares = np.exp(log_joint - evidence)
        if total - previous < 1e-6 * len(one_hot):
            break
        previous = total
    return total, shares.argmax(axis=1)


def _log_joint(one_hot: FloatArray, slots: list[slice], shares: FloatArray) -> FloatArray:
    """log P(row, cluster), [N, K]. A gap contributes nothing: its inputs are zeros."""
    counts = shares.T @ one_hot + _FITTING_SMOOTHING
    log_probabilities = np.empty_like(counts)
    for slot in slots:
        block = counts[:, slot]
        log_probabilities[:, slot] = np.log(block / block.sum(axis=1, keepdims=True))
    weights = shares.sum(axis=0) + _FITTING_SMOOTHING
    result: FloatArray = one_hot @ log_probabilities.T + np.log(weights / weights.sum())
    return result
