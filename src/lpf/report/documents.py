"""Every number of a report as plain data, for programs and for those who doubt a figure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lpf.report.domain_figures import epochs_to_best, epochs_trained, gap
from lpf.report.training_run import Run, Seed, weighted_kl

if TYPE_CHECKING:
    from lpf.training.fitting import FittedParameters

FORMAT = 1


def training_document(run: Run, dataset_name: str) -> dict[str, Any]:
    """What ``training.json`` holds. Seeds are the best first; shares lie in [0, 1]."""
    trained = run.trained
    return {
        "format": FORMAT,
        "dataset": dataset_name,
        "card": trained.card.to_dict(),
        "cautions": list(trained.warnings),
        "members": list(trained.config.seeds),
        "seeds": [_seed(seed) for seed in run.seeds],
        "spread": spreads(run),
        "aggregator": _aggregator(run),
        "fitted": {name: _fitted(one) for name, one in trained.fitted.items()},
        "scores": {
            one.place: {name: scores.to_dict() for name, scores in one.by_predicate.items()}
            for one in trained.scores
        },
        "model": trained.config.to_dict(),
    }


def domains_document(runs: Mapping[str, Run]) -> dict[str, Any]:
    """What ``domains.json`` holds, in the order of the figures."""
    return {
        "format": FORMAT,
        "domains": [
            {
                "domain": name,
                "seeds": [seed.number for seed in run.seeds],
                "selected": run.selected.number,
                "spread": spreads(run),
                "train_minus_validation_accuracy": gap(run),
                "mean_best_epoch": epochs_to_best(run),
                "mean_epochs": epochs_trained(run),
                "converged_share": run.converged_share,
            }
            for name, run in runs.items()
        ],
    }


def spreads(run: Run) -> dict[str, dict[str, float]]:
    """Mean, standard deviation and the selected seed's value, of each field of an epoch."""
    return {name: asdict(run.spread(name)) for name in asdict(run.selected.best)}


def as_json(document: Mapping[str, Any]) -> bytes:
    """JSON knows no infinity: such a number stands as null. ``not_finite`` says which."""
    text = json.dumps(_without(document), indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def not_finite(value: object, path: str = "") -> Iterator[str]:
    """Where numbers are infinite or none at all."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    for name, inner in _inside(value):
        yield from not_finite(inner, f"{path}.{name}" if path else str(name))


def _seed(seed: Seed) -> dict[str, Any]:
    best = seed.best
    return {
        **seed.history.to_dict(),
        "standing": seed.standing,
        "epochs_trained": len(seed.history.epochs),
        "weighted_kl": weighted_kl(best.validation_loss, best.validation_cross_entropy),
    }


def _aggregator(run: Run) -> list[dict[str, Any]]:
    if not run.trained.aggregator:
        return []
    members = zip(run.trained.config.seeds, run.trained.aggregator, strict=True)
    return [
        {"seed": seed, "epochs": [asdict(epoch) for epoch in epochs]} for seed, epochs in members
    ]


def _fitted(one: FittedParameters) -> dict[str, Any]:
    return {**one.robust.to_dict(), "learned_temperature": one.learned_temperature}


def _inside(value: object) -> Iterator[tuple[object, object]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
