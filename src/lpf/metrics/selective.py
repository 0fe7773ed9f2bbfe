"""Answering only where confident: what share is answered, and how often that is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.metrics.checked import LabelArray
from lpf.metrics.scores import judged
from lpf.types import FloatArray


@dataclass(frozen=True)
class RiskCoverage:
    """Each field [E], the surest k answers at place k - 1: the share k/E they are of all, their
    share of errors, and the lowest confidence among them."""

    coverage: FloatArray
    risk: FloatArray
    threshold: FloatArray


def risk_coverage(probabilities: FloatArray, labels: LabelArray) -> RiskCoverage:
    """Equally sure answers have no order, so each counts as their mean error. The curve is then
    the mean over all their orders and does not depend on that of the rows."""
    confidence, right = judged(probabilities, labels)
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
