"""The few entities that are asked about where every question costs money."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.training.examples import Examples


def sampled(
    examples: Examples, predicate: str, limit: int, generator: np.random.Generator
) -> Examples:
    """At most ``limit`` entities in their old order, each value of ``predicate`` in its share to
    within one entity; those without a value count as one more. A value too rare for its share to
    come to an entity can be missing."""
    if limit < 1:
        raise ConfigError(f"limit: must be 1 or above, got {limit!r}. Nothing was drawn.")
    labels = examples.dataset.labels(predicate)
    if limit >= len(labels):
        return examples
    values, counts = np.unique(labels, return_counts=True)
    chosen = [
        generator.permutation(np.flatnonzero(labels == value))[:quota]
        for value, quota in zip(values, _quotas(counts, limit), strict=True)
    ]
    return examples.select(np.sort(np.concatenate(chosen)))


def _quotas(counts: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """``limit`` shared out in proportion to ``counts``, by largest remainders."""
    exact = counts * (limit / counts.sum())
    quotas: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    largest = np.argsort(quotas - exact, kind="stable")
    quotas[largest[: limit - quotas.sum()]] += 1
    return quotas
