"""Sorting probabilities into bins.

A bin holds [lower, upper), the last one also its upper end. Bins that stay empty are dropped, so
nothing has to stand for the mean of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.types import FloatArray

BinKind = Literal["width", "mass"]


@dataclass(frozen=True)
class Bins:
    """B bins that hold something. ``order`` [E] puts entities of one bin side by side, ``starts``
    [B] is where each bin begins there; ``scores`` [B] are sums over its entities."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    lower: FloatArray
    upper: FloatArray
    count: NDArray[np.int64]
    scores: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, bins: int, kind: BinKind) -> Bins:
        """``scores`` [E] are probabilities."""
        edges = _edges(scores, bins, kind)
        # A sum may exceed 1 by its tolerance, and the last bin is closed: both belong to it.
        place = np.minimum(np.searchsorted(edges, scores, side="right") - 1, bins - 1)
        order = np.argsort(place, kind="stable")
        used, starts, count = np.unique(place[order], return_index=True, return_counts=True)
        sums = np.add.reduceat(scores[order], starts)
        return cls(order, starts, edges[used], edges[used + 1], count.astype(np.int64), sums)

    def hits(self, right: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many are right in each bin: [..., E] in ``order`` -> [..., B]."""
        return np.add.reduceat(right, self.starts, axis=-1, dtype=np.int64)


def _edges(scores: FloatArray, bins: int, kind: BinKind) -> FloatArray:
    """[bins + 1]. By mass each bin begins at the score of its first entity in order, so that equal
    scores always share a bin, even where that leaves bins uneven."""
    if bins < 1:
        raise ConfigError(f"bins: must be 1 or above, got {bins!r}.")
    if kind not in get_args(BinKind):
        raise ConfigError(f"kind: must be one of {get_args(BinKind)}, got {kind!r}.")
    if kind == "width":
        # Divided, not counted up by steps of 1/bins, which puts the edge of .6 just above .6.
        return np.arange(bins + 1) / bins
    ordered = np.sort(scores)
    return np.append(ordered[np.arange(bins) * len(ordered) // bins], ordered[-1])
