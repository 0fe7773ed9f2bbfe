"""An evaluation as plain data: the JSON document of ``lpf evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lpf import metrics
from lpf.evaluation.comparisons import Comparison
from lpf.evaluation.data_checks import beats_class_shares, unlearned
from lpf.evaluation.evaluation import Evaluation, numbers_of
from lpf.evaluation.measures import SubsetScores, by_credibility, by_label, plain, risk_coverage_of
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.summaries import Summary
from lpf.metrics import LabelArray
from lpf.types import FloatArray

KINDS = ("confusion", "by_label", "by_credibility", "reliability", "risk_coverage")
POINTS = 20  # of a risk-coverage curve


def details(evaluation: Evaluation, method: str) -> dict[str, Any]:
    """Detailed results by the names in ``KINDS``; all None if every repetition failed.

    ``confusion`` and ``reliability`` cover all repetitions together; the others are means over
    repetitions, which have the same test entities."""
    runs = evaluation.answered(method)
    if not runs:
        return dict.fromkeys(KINDS)
    rows, labels = _together(runs)
    return {
        "confusion": metrics.confusion(rows, labels).tolist(),
        "by_label": {
            part.name: part_numbers(part) for part in evaluation.subset_scores(method, by_label)
        },
        "by_credibility": [
            {"credibility": part.name, **part_numbers(part)}
            for part in evaluation.subset_scores(method, by_credibility)
        ],
        "reliability": _reliability(rows, labels),
        "risk_coverage": _risk_coverage(runs),
    }


def part_numbers(part: SubsetScores) -> dict[str, float | None]:
    return plain(numbers_of(part))


def _together(runs: Sequence[Predictions]) -> tuple[FloatArray, LabelArray]:
    rows = np.concatenate([one.answers for one in runs])
    return rows, np.concatenate([one.labels for one in runs]).astype(np.int64)


def _reliability(rows: FloatArray, labels: LabelArray) -> dict[str, list[float]]:
    """One number per bin of the ECE that holds an answer, lowest confidence first."""
    table = metrics.reliability(rows, labels)
    return {
        "confidence": table.confidence.tolist(),
        "accuracy": table.accuracy.tolist(),
        "count": table.count.tolist(),
    }


def _risk_coverage(runs: Sequence[Predictions]) -> dict[str, list[float]]:
    """Up to ``POINTS`` points: share of entities answered, highest confidence first, and share of
    errors among them."""
    curves = [risk_coverage_of(one, POINTS) for one in runs]
    risk = np.mean([curve.risk for curve in curves], axis=0)
    return {"coverage": curves[0].coverage.tolist(), "risk": risk.tolist()}


# Every method has these keys; the value is null if it is not known.
PROMISED = ("accuracy", "nll", "brier", "ece", "ece_null", "macro_f1", "runtime_ms")
SPREAD = "accuracy_sd"


def evaluation_document(evaluation: Evaluation) -> dict[str, Any]:
    """What ``lpf evaluate --json`` prints."""
    run = evaluation.language_model
    plan, dataset = evaluation.plan, evaluation.dataset
    return {
        "beats_class_shares": beats_class_shares(evaluation),
        "dataset": dataset.name,
        "predicate": evaluation.predicate,
        "values": list(dataset.schema[evaluation.predicate].values),
        "entities": len(dataset),
        "claims_read": any(entity.claim is not None for entity in dataset),
        "asked": evaluation.test_entities,
        "seeds": list(plan.seeds),
        "folds": evaluation.folds,
        "model": plan.model,
        "cautions": [*unlearned(evaluation), *evaluation.warnings],
        "methods": {name: _method(evaluation, name) for name in evaluation.runs},
        "against": {
            "method": evaluation.ours,
            "measure": "nll",
            "others": {one.name: _against(one) for one in evaluation.comparisons()},
        },
        **({} if run is None else {"language_models": {run.name: run.to_dict()}}),
    }


def _method(evaluation: Evaluation, name: str) -> dict[str, Any]:
    """``error`` is the reason if there are no predictions; other remarks are in ``notes``."""
    summary = evaluation.scores(name)
    document = _spreads(summary)
    unshared = evaluation.unshared_scores(name)
    if unshared is not None:
        document["unshared"] = _means(unshared)
    parts = evaluation.subset_scores(name)
    if parts:
        document["groups"] = {part.name: part_numbers(part) for part in parts}
    failed = not summary.runs
    return document | {
        **details(evaluation, name),
        "runs": summary.runs,
        "error": "; ".join(summary.notes) if failed else None,
        "notes": [] if failed else list(summary.notes),
    }


def _spreads(summary: Summary) -> dict[str, Any]:
    document: dict[str, Any] = {**_means(summary), SPREAD: None}
    for key, one in summary.spreads.items():
        if one.sd is not None:
            document[f"{key}_sd"] = one.sd
        if one.low is not None:
            document[f"{key}_interval"] = [one.low, one.high]
    return document


def _means(summary: Summary) -> dict[str, float | None]:
    measured = plain({key: one.mean for key, one in summary.spreads.items()})
    return dict.fromkeys(PROMISED) | measured


def _against(comparison: Comparison) -> dict[str, Any]:
    difference = comparison.difference
    return {
        "difference": None if difference is None else difference.mean,
        "interval": None if difference is None else [difference.low, difference.high],
        "p_holm": comparison.adjusted,
        "note": comparison.note,
    }
