"""Accuracy, proper scores, confidence and risk-coverage curves.

The answer to an entity is its most probable value, the first one of a tie; its confidence
is that value's probability. Throughout, ``probabilities`` are [E, V] and ``labels`` [E].

A risk-coverage curve shows the error rate if only the most confident answers are given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError, EvidenceError, NonFiniteError
from lpf.types import FloatArray

LabelArray = NDArray[np.int64]

SUM_TOLERANCE = 1e-6


def checked(probabilities: FloatArray, labels: LabelArray) -> tuple[FloatArray, LabelArray]:
    """``probabilities`` [E, V] as float64 and ``labels`` [E] as int64, places in the row.

    Raises ``EvidenceError`` for anything that is not a distribution with a label in each row.
    """
    rows, places = checked_probabilities(probabilities), np.asarray(labels)
    if places.shape != rows.shape[:1]:
        raise _refused(f"labels: {places.shape} given for {len(rows)} rows; give one per row")
    if places.dtype.kind not in "iu":
        raise _refused(f"labels: must be whole numbers, got {places.dtype}")
    outside = np.flatnonzero((places < 0) | (places >= rows.shape[1]))
    if len(outside):
        row = int(outside[0])
        raise _refused(f"labels[{row}]: {places[row]} is not in 0 to {rows.shape[1] - 1}")
    return rows, places.astype(np.int64)


def checked_probabilities(probabilities: FloatArray) -> FloatArray:
    """Like ``checked``, for scores that need no labels."""
    rows = np.asarray(probabilities, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise _refused(f"probabilities: must be [entities, values], not empty, got {rows.shape}")
    if not np.isfinite(rows).all():
        row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise NonFiniteError(f"probabilities[{row}]: not finite, {rows[row]}. Nothing was scored.")
    if rows.min() < 0.0:
        row = int(np.flatnonzero(rows.min(axis=1) < 0.0)[0])
        raise _refused(f"probabilities[{row}]: below 0, {rows[row]}")
    totals = rows.sum(axis=1)
    astray = np.flatnonzero(np.abs(totals - 1.0) > SUM_TOLERANCE)
    if len(astray):
        row = int(astray[0])
        raise _refused(f"probabilities[{row}]: sums to {totals[row]:.9g}; divide rows by their sum")
    return rows


def _refused(problem: str) -> EvidenceError:
    return EvidenceError(f"{problem}. Nothing was scored.")


HIGH_CONFIDENCE = 0.8
LOW_CONFIDENCE = 0.5


def confidence_and_hits(
    probabilities: FloatArray, labels: LabelArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The confidence of each answer [E], and True if it is right [E]."""
    rows, labels = checked(probabilities, labels)
    return rows.max(axis=1), np.asarray(rows.argmax(axis=1) == labels)


def log_losses(probabilities: FloatArray, labels: LabelArray) -> FloatArray:
    """[E] in nats; infinite if the label was given probability 0."""
    rows, labels = checked(probabilities, labels)
    with np.errstate(divide="ignore"):
        # Subtracted from 0, not negated: the loss of a perfect answer must be 0.0, not -0.0.
        return np.asarray(0.0 - np.log(rows[np.arange(len(rows)), labels]))


def brier_losses(probabilities: FloatArray, labels: LabelArray) -> FloatArray:
    """[E], squared differences from the label's one-hot row, summed over values: 0 to 2."""
    rows, labels = checked(probabilities, labels)
    return np.asarray(((rows - np.eye(rows.shape[1])[labels]) ** 2).sum(axis=1))


def accuracy(probabilities: FloatArray, labels: LabelArray) -> float:
    _, right = confidence_and_hits(probabilities, labels)
    return float(right.mean())


def nll(probabilities: FloatArray, labels: LabelArray) -> float:
    """Mean of ``log_losses``: one label with probability 0 makes it infinite."""
    return float(log_losses(probabilities, labels).mean())


def brier(probabilities: FloatArray, labels: LabelArray) -> float:
    """Mean of ``brier_losses``; not divided by the number of values."""
    return float(brier_losses(probabilities, labels).mean())


def confusion(probabilities: FloatArray, labels: LabelArray) -> NDArray[np.int64]:
    """[V, V] counts: rows are labels, columns are answers."""
    rows, labels = checked(probabilities, labels)
    size = rows.shape[1]
    cells = labels * size + rows.argmax(axis=1)
    return np.bincount(cells, minlength=size * size).reshape(size, size).astype(np.int64)


def macro_f1(probabilities: FloatArray, labels: LabelArray) -> float:
    """Mean F1 over the values that are a label or an answer; other values have no F1."""
    f1, _ = _f1(confusion(probabilities, labels))
    return float(f1.mean())


def weighted_f1(probabilities: FloatArray, labels: LabelArray) -> float:
    """Mean F1 over values, each weighted by how many entities have it as their label."""
    f1, support = _f1(confusion(probabilities, labels))
    return float((f1 * support).sum() / support.sum())


def mean_confidence(probabilities: FloatArray) -> float:
    return float(confidences(probabilities).mean())


def confidence_sd(probabilities: FloatArray) -> float:
    """Standard deviation of these E confidences, divided by E and not by E - 1."""
    return float(confidences(probabilities).std())


def confidences(probabilities: FloatArray) -> FloatArray:
    """[E], the probability of each answer."""
    return np.asarray(checked_probabilities(probabilities).max(axis=1))


def high_confidence_errors(
    probabilities: FloatArray, labels: LabelArray, threshold: float = HIGH_CONFIDENCE
) -> int:
    """How many wrong answers have a confidence above ``threshold``."""
    confidence, right = confidence_and_hits(probabilities, labels)
    return int((~right & (confidence > _share(threshold))).sum())


def low_confidence_correct(
    probabilities: FloatArray, labels: LabelArray, threshold: float = LOW_CONFIDENCE
) -> int:
    """How many right answers have a confidence below ``threshold``."""
    confidence, right = confidence_and_hits(probabilities, labels)
    return int((right & (confidence < _share(threshold))).sum())


def _f1(matrix: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.int64]]:
    """F1 = 2·hits / (labels + answers) and the number of labels, of each value that occurs."""
    support = matrix.sum(axis=1)
    either = support + matrix.sum(axis=0)
    occurs = either > 0
    return 2.0 * np.diag(matrix)[occurs] / either[occurs], support[occurs]


def _share(threshold: float) -> float:
    if not 0.0 <= threshold <= 1.0:
        raise ConfigError(f"threshold: must be in [0, 1], got {threshold!r}.")
    return threshold


@dataclass(frozen=True)
class RiskCoverage:
    """Each field [E]; position k - 1 is about the k most confident answers: their share k/E, their
    share of errors, and the lowest confidence among them."""

    coverage: FloatArray
    risk: FloatArray
    threshold: FloatArray


def risk_coverage(probabilities: FloatArray, labels: LabelArray) -> RiskCoverage:
    """Equally confident answers have no order, so each counts as their mean error. The curve is
    then the mean over all their orders and does not depend on the order of the rows."""
    return risk_coverage_of_answers(*confidence_and_hits(probabilities, labels))


def risk_coverage_of_answers(confidence: FloatArray, right: NDArray[np.bool_]) -> RiskCoverage:
    """From the probabilities of the answers [E], and whether they were right [E]."""
    levels, level, sizes = np.unique(-confidence, return_inverse=True, return_counts=True)
    shared = np.bincount(level, weights=~right) / sizes
    accepted = np.arange(1, len(right) + 1)
    return RiskCoverage(
        coverage=accepted / len(right),
        risk=np.cumsum(np.repeat(shared, sizes)) / accepted,
        threshold=np.repeat(-levels, sizes),
    )


def aurc(probabilities: FloatArray, labels: LabelArray) -> float:
    """Area under the risk-coverage curve: its mean risk over all E coverages."""
    return float(risk_coverage(probabilities, labels).risk.mean())
