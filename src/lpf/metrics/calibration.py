"""Calibration: do probabilities match how often answers are right?

    ECE = Σ_b |B_b|/E · |accuracy(B_b) - confidence(B_b)|      MCE = max_b of the same differences

Even a perfectly calibrated predictor has an ECE above 0, and the fewer entities, the higher it is.
``ece_null`` computes that ECE for comparison.

A bin is [lower, upper); the last one includes its upper end. Empty bins are dropped, because they
have no mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError
from lpf.metrics.scores import LabelArray, checked, confidence_and_hits, confidences
from lpf.types import FloatArray

BinKind = Literal["width", "mass"]


@dataclass(frozen=True)
class Bins:
    """B bins that are not empty. ``order`` [E] sorts entities by bin, ``starts``
    [B] is the position in ``order`` at which each bin begins; ``scores`` [B] are sums over its
    entities."""

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
    scores always share a bin, even if bins then differ in size."""
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
# Draws are made in blocks of about this many random numbers (8 MB).
BLOCK = 1 << 20
# ECEs of equal counts differ by rounding only, so a draw this close counts as equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Reliability:
    """The reliability diagram as a table: each field [B], over bins that are not empty. A bin
    is [lower, upper); the last one includes its upper end."""

    lower: FloatArray
    upper: FloatArray
    count: NDArray[np.int64]
    confidence: FloatArray
    accuracy: FloatArray


@dataclass(frozen=True)
class EceNull:
    """The ECEs [D] of a perfectly calibrated predictor with the same confidences."""

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
    right, binned = _binned(probabilities, labels, bins, kind)
    return float(_ece(right[binned.order], binned))


def mce(
    probabilities: FloatArray, labels: LabelArray, bins: int = BINS, kind: BinKind = "width"
) -> float:
    """Maximum calibration error: the largest difference of any bin, even of a small one."""
    table = reliability(probabilities, labels, bins, kind)
    return float(np.abs(table.accuracy - table.confidence).max())


def classwise_ece(
    probabilities: FloatArray, labels: LabelArray, bins: int = BINS, kind: BinKind = "width"
) -> float:
    """Mean over values of the ECE of each value's probability, against how often it is the label.
    Unlike ``ece``, this uses all probabilities, not only the answer's."""
    rows, labels = checked(probabilities, labels)
    errors = []
    for value, column in enumerate(rows.T):
        binned = Bins.of(column, bins, kind)
        errors.append(_ece((labels == value)[binned.order], binned))
    return float(np.mean(errors))


def reliability(
    probabilities: FloatArray, labels: LabelArray, bins: int = BINS, kind: BinKind = "width"
) -> Reliability:
    confidence, right = confidence_and_hits(probabilities, labels)
    return reliability_of_answers(confidence, right, bins, kind)


def reliability_of_answers(
    confidence: FloatArray, right: NDArray[np.bool_], bins: int = BINS, kind: BinKind = "width"
) -> Reliability:
    """From the probabilities of the answers [E], and whether they were right [E]."""
    binned = Bins.of(confidence, bins, kind)
    hits = binned.hits(right[binned.order])
    return Reliability(
        lower=binned.lower,
        upper=binned.upper,
        count=binned.count,
        confidence=binned.scores / binned.count,
        accuracy=hits / binned.count,
    )


def ece_null(
    probabilities: FloatArray,
    generator: np.random.Generator,
    draws: int = DRAWS,
    bins: int = BINS,
    kind: BinKind = "width",
) -> EceNull:
    """In each draw, the answer to an entity is right with a probability equal to its confidence;
    the draw is the ECE of these outcomes."""
    if draws < 1:
        raise ConfigError(f"draws: must be 1 or above, got {draws!r}.")
    confidence = confidences(probabilities)
    binned = Bins.of(confidence, bins, kind)
    confidence = confidence[binned.order]
    size = len(confidence)
    block = max(1, BLOCK // size)
    errors = [
        _ece(generator.random((min(block, draws - begin), size)) < confidence, binned)
        for begin in range(0, draws, block)
    ]
    return EceNull(np.concatenate(errors))


def _binned(
    probabilities: FloatArray, labels: LabelArray, bins: int, kind: BinKind
) -> tuple[NDArray[np.bool_], Bins]:
    confidence, right = confidence_and_hits(probabilities, labels)
    return right, Bins.of(confidence, bins, kind)


def _ece(right: NDArray[np.bool_], bins: Bins) -> FloatArray:
    """``right`` [..., E] in the order of the bins -> [...]. |B|/E · |hits/|B| - sum/|B|| needs no
    division by |B|."""
    return np.asarray(np.abs(bins.hits(right) - bins.scores).sum(axis=-1) / len(bins.order))
