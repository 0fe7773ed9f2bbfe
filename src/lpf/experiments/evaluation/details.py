"""Who was taken for what, which entities a method is good at, and its curves, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lpf import metrics
from lpf.experiments.answered import Answered
from lpf.experiments.evaluation.outcome import Evaluation, numbers_of
from lpf.experiments.judging.measures import (
    Part,
    by_credibility,
    by_label,
    plain,
    risk_coverage_of,
)
from lpf.metrics import LabelArray
from lpf.types import FloatArray

KINDS = ("confusion", "by_label", "by_credibility", "reliability", "risk_coverage")
POINTS = 20  # of a risk-coverage curve


def details(evaluation: Evaluation, method: str) -> dict[str, Any]:
    """By the names of ``KINDS``; all None where every repetition crashed.

    ``confusion`` and ``reliability`` are of all repetitions together, each entity once for each;
    the others are means over repetitions, which ask about the same entities."""
    runs = evaluation.answered(method)
    if not runs:
        return dict.fromkeys(KINDS)
    rows, labels = _together(runs)
    return {
        "confusion": metrics.confusion(rows, labels).tolist(),
        "by_label": {part.name: part_numbers(part) for part in evaluation.parts(method, by_label)},
        "by_credibility": [
            {"credibility": part.name, **part_numbers(part)}
            for part in evaluation.parts(method, by_credibility)
        ],
        "reliability": _reliability(rows, labels),
        "risk_coverage": _risk_coverage(runs),
    }


def part_numbers(part: Part) -> dict[str, float | None]:
    return plain(numbers_of(part))


def _together(runs: Sequence[Answered]) -> tuple[FloatArray, LabelArray]:
    rows = np.concatenate([one.answers for one in runs])
    return rows, np.concatenate([one.labels for one in runs]).astype(np.int64)


def _reliability(rows: FloatArray, labels: LabelArray) -> dict[str, list[float]]:
    """A number each for every bin of the ECE that holds an answer, least sure first."""
    found = metrics.reliability(rows, labels)
    return {
        "confidence": found.confidence.tolist(),
        "accuracy": found.accuracy.tolist(),
        "count": found.count.tolist(),
    }


def _risk_coverage(runs: Sequence[Answered]) -> dict[str, list[float]]:
    """Up to ``POINTS`` points: the share answered, surest first, and the share of errors in it."""
    curves = [risk_coverage_of(one, POINTS) for one in runs]
    risk = np.mean([curve.risk for curve in curves], axis=0)
    return {"coverage": curves[0].coverage.tolist(), "risk": risk.tolist()}
