"""How good the predictions of one run are: as numbers, by subset of entities, and as curves.

Everything is scored at the fitted temperature, except measures whose names begin with ``raw_``.
What was not measured is absent. A log loss is infinite if a label got probability 0;
``labels_ruled_out`` is the share of such entities, and ``plain`` turns infinity into None for JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.errors import ConfigError
from lpf.evaluation.predictions import Costs, Predictions
from lpf.metrics import BinKind, LabelArray, Reliability, RiskCoverage
from lpf.types import FloatArray

NULL_DRAWS = 1000
UNKNOWN = "unknown"

SCORES: Mapping[str, Callable[[FloatArray, LabelArray], float]] = {
    "accuracy": metrics.accuracy,
    "macro_f1": metrics.macro_f1,
    "weighted_f1": metrics.weighted_f1,
    "nll": metrics.nll,
    "labels_ruled_out": lambda rows, labels: float(
        np.isinf(metrics.log_losses(rows, labels)).mean()
    ),
    "brier": metrics.brier,
    # The paper defines the sum over values and prints it divided by their number.
    "brier_over_k": lambda rows, labels: metrics.brier(rows, labels) / rows.shape[1],
    "ece": metrics.ece,
    "ece_15": lambda rows, labels: metrics.ece(rows, labels, bins=15),
    "ece_mass": lambda rows, labels: metrics.ece(rows, labels, bins=15, kind="mass"),
    "mce": metrics.mce,
    "classwise_ece": metrics.classwise_ece,
    "mean_confidence": lambda rows, _: metrics.mean_confidence(rows),
    "confidence_sd": lambda rows, _: metrics.confidence_sd(rows),
    "high_confidence_errors": lambda rows, labels: (
        metrics.high_confidence_errors(rows, labels) / len(rows)
    ),
    "low_confidence_correct": lambda rows, labels: (
        metrics.low_confidence_correct(rows, labels) / len(rows)
    ),
    "aurc": metrics.aurc,
}
RAW_SCORES = ("nll", "ece", "brier")


@dataclass(frozen=True)
class SubsetScores:
    """Scores of some of the entities. An ECE of few entities is high by chance: ``ece_null`` is its
    mean if confidences were right."""

    name: str
    entities: int
    accuracy: float
    nll: float
    brier: float
    mean_confidence: float
    ece: float | None
    ece_null: float | None


def measure(predictions: Predictions, *, seed: int = 0) -> dict[str, float]:
    """Every measure of one run by its name; shares are in [0, 1], of all entities.

    ``ece`` has 10 bins of equal width, ``ece_15`` 15, ``ece_mass`` 15 of equal mass; ``ece_null``,
    ``ece_null_95`` and ``ece_p`` compare the first with chance, by 1,000 draws. Raises
    EvidenceError for a run that failed.
    """
    rows, labels = predictions.answers, _labels(predictions)
    measures = {name: score(rows, labels) for name, score in SCORES.items()}
    null = metrics.ece_null(rows, np.random.default_rng(seed), NULL_DRAWS)
    measures |= {"ece_null": null.mean, "ece_null_95": null.quantile_95}
    measures["ece_p"] = null.p_value(measures["ece"])
    if predictions.raw is not None:
        measures |= {f"raw_{name}": SCORES[name](predictions.raw, labels) for name in RAW_SCORES}
    return measures | _costs(predictions.costs)


def plain(measured: Mapping[str, float]) -> dict[str, float | None]:
    """The measures with None instead of infinity, which JSON does not have."""
    return {name: value if math.isfinite(value) else None for name, value in measured.items()}


def by_label(predictions: Predictions) -> list[SubsetScores]:
    """One subset per label, in the order of the values. ECEs are None: among entities of one label
    even perfect confidences do not match the accuracy."""
    parts = _parts(predictions, predictions.labels, predictions.values)
    return [replace(part, ece=None, ece_null=None) for part in parts]


def by_credibility(predictions: Predictions) -> list[SubsetScores]:
    """Quarters of the entities by mean credibility, lowest first (fewer subsets if many are equal,
    because equal ones stay together); then those whose credibility is unknown."""
    known = ~np.isnan(predictions.credibility)
    credibility = predictions.credibility[known]
    edges = np.quantile(credibility, [0.25, 0.5, 0.75]) if len(credibility) else credibility
    edges = np.unique(edges)
    quarter = np.searchsorted(edges, credibility)
    place = np.full(len(known), len(edges) + 1)
    place[known] = quarter
    names = [_range_text(credibility[quarter == which]) for which in range(len(edges) + 1)]
    return _parts(predictions, place, (*names, UNKNOWN))


def by_count(predictions: Predictions, most: int = 10) -> list[SubsetScores]:
    """One subset per number of items, fewest first; ``most`` or more items are one subset."""
    if most < 1:
        raise ConfigError(f"must be 1 or above, got {most!r}.", field="most")
    names = (*map(str, range(most)), f"{most} or more")
    return _parts(predictions, np.minimum(predictions.counts, most), names)


def by_group(predictions: Predictions) -> list[SubsetScores]:
    """One subset per value of the protected field, sorted, then those without a value. Empty if no
    field is protected."""
    if not predictions.groups:
        return []
    names = (*sorted({group for group in predictions.groups if group is not None}), UNKNOWN)
    numbers: dict[str | None, int] = {name: number for number, name in enumerate(names[:-1])}
    place = np.array([numbers.get(group, len(numbers)) for group in predictions.groups])
    return _parts(predictions, place, names)


def confusion_of(predictions: Predictions) -> NDArray[np.int64]:
    """[V, V] counts: rows are labels, columns are answers, both in the order of the values."""
    return metrics.confusion(predictions.answers, _labels(predictions))


def reliability_of(
    predictions: Predictions, bins: int = 10, kind: BinKind = "width"
) -> Reliability:
    return metrics.reliability(predictions.answers, _labels(predictions), bins, kind)


def risk_coverage_of(predictions: Predictions, points: int = 100) -> RiskCoverage:
    """The curve at up to ``points`` evenly spaced coverages, for drawing; the last is 1."""
    if points < 1:
        raise ConfigError(f"must be 1 or above, got {points!r}.", field="points")
    curve = metrics.risk_coverage(predictions.answers, _labels(predictions))
    size = len(curve.coverage)
    places = np.unique(-(-np.arange(1, points + 1) * size // points) - 1)
    return RiskCoverage(curve.coverage[places], curve.risk[places], curve.threshold[places])


def _labels(predictions: Predictions) -> LabelArray:
    return predictions.labels.astype(np.int64)


def _costs(costs: Costs) -> dict[str, float]:
    measured = {
        "runtime_ms": costs.query_ms,
        "per_second": costs.per_second,
        "fit_seconds": costs.fit_seconds,
        "stored_bytes": costs.stored_bytes,
        "peak_bytes": costs.peak_bytes,
    }
    return {name: float(value) for name, value in measured.items() if value is not None}


def _parts(
    predictions: Predictions, place: NDArray[np.intp], names: tuple[str, ...]
) -> list[SubsetScores]:
    """One subset per value of ``place`` [E] that occurs, in the order of ``names``."""
    rows, labels = predictions.answers, _labels(predictions)
    chosen = [(names[which], place == which) for which in np.unique(place)]
    return [_part(name, rows[among], labels[among]) for name, among in chosen]


def _part(name: str, rows: FloatArray, labels: LabelArray) -> SubsetScores:
    null = metrics.ece_null(rows, np.random.default_rng(0), NULL_DRAWS)
    return SubsetScores(
        name=name,
        entities=len(rows),
        accuracy=metrics.accuracy(rows, labels),
        nll=metrics.nll(rows, labels),
        brier=metrics.brier(rows, labels),
        mean_confidence=metrics.mean_confidence(rows),
        ece=metrics.ece(rows, labels),
        ece_null=null.mean,
    )


def _range_text(numbers: FloatArray) -> str:
    """With three decimals, because the ends of two quarters may be close."""
    return f"{numbers.min():.3f} to {numbers.max():.3f}" if len(numbers) else ""
