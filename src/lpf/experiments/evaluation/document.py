"""An evaluation as plain data."""

from __future__ import annotations

from typing import Any

from lpf.experiments.evaluation.cautions import unlearned
from lpf.experiments.evaluation.details import details, part_numbers
from lpf.experiments.evaluation.outcome import Evaluation
from lpf.experiments.judging.comparisons import Comparison
from lpf.experiments.judging.measures import plain
from lpf.experiments.judging.summaries import Summary

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
        "cautions": [*unlearned(evaluation), *evaluation.cautions],
        "methods": {name: _method(evaluation, name) for name in evaluation.runs},
        "against": {
            "method": evaluation.ours,
            "measure": "nll",
            "others": {one.name: _against(one) for one in evaluation.comparisons()},
        },
    }


def _method(evaluation: Evaluation, name: str) -> dict[str, Any]:
    """``error`` is why there are no answers at all; what else there is to say is in ``notes``."""
    summary = evaluation.summary(name)
    document = _spreads(summary)
    clean = evaluation.clean_summary(name)
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
