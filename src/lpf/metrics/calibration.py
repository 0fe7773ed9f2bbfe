"""Whether probabilities mean what they say.

    ECE = Σ_b |B_b|/E · |accuracy(B_b) - confidence(B_b)|      MCE = max_b of the same differences

An ECE is above 0 for a perfectly calibrated predictor too, the more so the fewer entities there
are: ``ece_null`` says how far above, so that an ECE can be judged against it.

Sorting probabilities into bins.

A bin holds [lower, upper), the last one also its upper end. Bins that stay empty are dropped, so
nothing has to stand for the mean of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.metrics.scores import LabelArray, checked, confidences, judged
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


BINS = 10
DRAWS = 1000
# Draws are made in blocks of about this many coin tosses, 8 MB of random numbers.
BLOCK = 1 << 20
# ECEs of equal counts differ by rounding only; a draw this close below the observed one equals it.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Reliability:
    """The reliability diagram as a table: each field [B], over bins that hold an entity. A bin
    reaches from ``lower`` up to but without ``upper``; the last one holds its upper end too."""

    lower: FloatArray
    upper: FloatArray
    count: NDArray[np.int64]
    confidence: FloatArray
    accuracy: FloatArray


@dataclass(frozen=True)
class EceNull:
    """The ECEs [D] that a perfectly calibrated predictor shows with the same confidences."""

    draws: FloatArray

    @property
    def mean(self) -> float:
        return float(self.draws.mean())

    @property
    def quantile_95(self) -> float:
        return float(np.quantile(self.draws, 0.95))

    @property
    def quantile_99(self) -> float:
        return float(np.quantile(self.draws, 0.99))

    def p_value(self, observed: float) -> float:
        """The chance of an ECE of at least ``observed`` without any miscalibration, (k+1)/(D+1)."""
        if not np.isfinite(observed):
            raise ConfigError(f"observed: must be finite, got {observed!r}.")
        reached = int((self.draws >= observed - ROUNDING).sum())
        return (reached + 1) / (len(self.draws) + 1)


def ece(
    probabilities: FloatArray, labels: LabelArray, bins: int = BINS, kind: BinKind = "width"
) -> float:
    """Expected calibration error of the answers; bins of equal ``width`` or of equal ``mass``."""
    right, sorted_into = _binned(probabilities, labels, bins, kind)
    return float(_ece(right[sorted_into.order], sorted_into))


def mce(
    probabilities: FloatArray, labels: LabelArray, bins: int = BINS, kind: BinKind = "width"
) -> float:
    """The largest difference of any bin, however few entities it holds."""
    table = reliability(probabilities, labels, bins, kind)
    return float(np.abs(table.accuracy - table.confidence).max())


def classwise_ece(
    probabilities: FloatArray, labels: LabelArray, bins: int = BINS, kind: BinKind = "width"
) -> float:
    """Every value's probability, likeliest or not, against how often it is the label: the mean of
    V such ECEs."""
    rows, labels = checked(probabilities, labels)
    errors = []
    for value, column in enumerate(rows.T):
        sorted_into = Bins.of(column, bins, kind)
        errors.append(_ece((labels == value)[sorted_into.order], sorted_into))
    return float(np.mean(errors))


def reliability(
    probabilities: FloatArray, labels: LabelArray, bins: int = BINS, kind: BinKind = "width"
) -> Reliability:
    right, found = _binned(probabilities, labels, bins, kind)
    hits = found.hits(right[found.order])
    return Reliability(
        lower=found.lower,
        upper=found.upper,
        count=found.count,
        confidence=found.scores / found.count,
        accuracy=hits / found.count,
    )


def ece_null(
    probabilities: FloatArray,
    generator: np.random.Generator,
    draws: int = DRAWS,
    bins: int = BINS,
    kind: BinKind = "width",
) -> EceNull:
    """Each draw decides for every entity by a coin of its own confidence whether its answer is
    right, and takes the ECE of that."""
    if draws < 1:
        raise ConfigError(f"draws: must be 1 or above, got {draws!r}.")
    sure = confidences(probabilities)
    sorted_into = Bins.of(sure, bins, kind)
    sure = sure[sorted_into.order]
    block = max(1, BLOCK // len(sure))
    errors = [
        _ece(generator.random((min(block, draws - begin), len(sure))) < sure, sorted_into)
        for begin in range(0, draws, block)
    ]
    return EceNull(np.concatenate(errors))


def _binned(
    probabilities: FloatArray, labels: LabelArray, bins: int, kind: BinKind
) -> tuple[NDArray[np.bool_], Bins]:
    confidence, right = judged(probabilities, labels)
    return right, Bins.of(confidence, bins, kind)


def _ece(right: NDArray[np.bool_], bins: Bins) -> FloatArray:
    """``right`` [..., E] in the order of the bins -> [...]. |B|/E · |hits/|B| - sum/|B|| needs no
    division by |B|."""
    return np.asarray(np.abs(bins.hits(right) - bins.scores).sum(axis=-1) / len(bins.order))
