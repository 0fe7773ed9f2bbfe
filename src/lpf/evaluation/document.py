"""An evaluation as plain data.

Who was taken for what, which entities a method is good at, and its curves, as plain data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lpf import metrics
from lpf.evaluation.comparisons import Comparison
from lpf.evaluation.evaluation import Evaluation, numbers_of
from lpf.evaluation.evaluation_warnings import unlearned
from lpf.evaluation.measures import SubsetScores, by_credibility, by_label, plain, risk_coverage_of
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.summaries import Summary
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


def part_numbers(part: SubsetScores) -> dict[str, float | None]:
    return plain(numbers_of(part))


def _together(runs: Sequence[Predictions]) -> tuple[FloatArray, LabelArray]:
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


def _risk_coverage(runs: Sequence[Predictions]) -> dict[str, list[float]]:
    """Up to ``POINTS`` points: the share answered, surest first, and the share of errors in it."""
    curves = [risk_coverage_of(one, POINTS) for one in runs]
    risk = np.mean([curve.risk for curve in curves], axis=0)
    return {"coverage": curves[0].coverage.tolist(), "risk": risk.tolist()}


# Of every method: null where they are not known, and never left out.
PROMISED = ("accuracy", "nll", "brier", "ece", "ece_null", "macro_f1", "runtime_ms")
SPREAD = "accuracy_sd"


def evaluation_document(evaluation: Evaluation) -> dict[str, Any]:
    """What ``lpf evaluate --json`` prints."""
    plan, dataset = evaluation.plan, evaluation.dataset
    return {
        "dataset": dataset.name,
        "predicate": evaluation.predicate,
        "values": list(dataset.schema[evaluation.predicate].values),
        "entities": len(dataset),
        "claims_read": any(entity.claim is not None for entity in dataset),
        "asked": len(next(iter(evaluation.runs.values()))[0].labels),
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
    }


def _method(evaluation: Evaluation, name: str) -> dict[str, Any]:
    """``error`` is why there are no answers at all; what else there is to say is in ``notes``."""
    summary = evaluation.scores(name)
    document = _spreads(summary)
    clean = evaluation.unshared_scores(name)
    if clean is not None:
        document["unshared"] = _means(clean)
    parts = evaluation.parts(name)
    if parts:
        document["groups"] = {part.name: part_numbers(part) for part in parts}
    crashed = not summary.runs
    return document | {
        **details(evaluation, name),
        "runs": summary.runs,
        "error": "; ".join(summary.notes) if crashed else None,
        "notes": [] if crashed else list(summary.notes),
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


def _against(one: Comparison) -> dict[str, Any]:
    found = one.difference
    return {
        "difference": None if found is None else found.mean,
        "interval": None if found is None else [found.low, found.high],
        "p_holm": one.adjusted,
        "note": one.note,
    }
