"""What a training run came to, as one JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lpf.cli.fitted_words import fitted_lines
from lpf.datasets import SPLITS
from lpf.training.history import ranked, spread

if TYPE_CHECKING:
    from lpf.training import Scores, Trained
    from lpf.training.fitting import Fitted
    from lpf.training.history import SeedHistory
    from lpf.training.reading_choice import ReadingChoice
    from lpf.workspace.earlier import Earlier
    from lpf.workspace.training_runs import TrainingOutcome, TrainingRun

SPREAD = {
    "accuracy": "validation_accuracy",
    "loss": "validation_loss",
    "cross_entropy": "validation_cross_entropy",
    "kl": "validation_kl",
}


def document_of(outcome: TrainingOutcome) -> dict[str, Any]:
    run, trained = outcome.run, outcome.trained
    return {
        "version": outcome.version,
        "active": outcome.active,
        "name": trained.card.name,
        "report": None if outcome.report is None else str(outcome.report),
        "data": _data(run),
        "predicates": list(run.predicates),
        "reader": trained.config.reader_id,
        "config": run.config.to_dict(),
        "reading": _reading(trained.reading),
        "grid": [asdict(tried) for tried in run.tried],
        "seeds": _seeds(trained),
        "spread": {
            name: asdict(spread(trained.histories, field)) for name, field in SPREAD.items()
        },
        "fitted": {name: _fitted(found) for name, found in trained.fitted.items()},
        "scores": {
            place: {name: _scores(found) for name, found in by_predicate.items()}
            for place, by_predicate in trained.scores.items()
        },
        "cautions": list(trained.cautions),
        "earlier": None if outcome.earlier is None else _earlier(outcome.earlier),
    }


def _earlier(model: Earlier) -> dict[str, Any]:
    return {
        "version": model.version,
        "judged_on": model.place,
        "same_data": model.same_data,
        "nll": {name: {"earlier": was, "now": now} for name, (was, now) in model.nll.items()},
    }


def _reading(choice: ReadingChoice | None) -> dict[str, Any] | None:
    """What was compared, and what came of it; None where nothing was."""
    if choice is None:
        return None
    return {
        "chosen": "linear" if choice.is_linear else "networks",
        "networks_nll": choice.networks_nll,
        "linear_nll": choice.linear_nll,
        "linear": {
            name: {"labels": recipe.source, "penalty": recipe.penalty}
            for name, recipe in choice.linear.items()
        },
        "told": choice.told(),
    }


def _data(run: TrainingRun) -> dict[str, Any]:
    dataset = run.dataset
    counts = {split: len(dataset.positions(split)) for split in SPLITS}
    return {
        "name": dataset.name,
        "entities": len(dataset),
        "items": int(dataset.offsets[-1]),
        "splits": {split: number for split, number in counts.items() if number},
        "few": run.few,
        "claims": {
            "entities": sum(entity.claim is not None for entity in dataset),
            "read": run.claims_read,
        },
        "digest": dataset.digest,
    }


def _seeds(trained: Trained) -> list[dict[str, Any]]:
    """Best first."""
    members = trained.networks_in_it
    histories = [trained.histories[place] for place in ranked(trained.histories)]
    return [_seed(history, history.seed in members) for history in histories]


def _seed(history: SeedHistory, member: bool) -> dict[str, Any]:
    return {
        "seed": history.seed,
        "member": member,
        **{name: getattr(history.best, field) for name, field in SPREAD.items()},
        "best_epoch": history.best_epoch,
        "epochs": len(history.epochs),
        "converged": history.converged,
    }


def _fitted(found: Fitted) -> dict[str, Any]:
    robust = found.robust
    numbers = robust.parameters.to_dict() | {"learned_temperature": found.learned_temperature}
    return {
        "entities": robust.entities,
        "nll_before": robust.nll_before,
        "nll_after": robust.nll_after,
        "nll_cross_fitted": robust.nll_cross_fitted,
        "converged": robust.converged,
        "numbers": numbers,
        "meaning": {name: sentence for name, _, sentence in fitted_lines(numbers)},
    }


def _scores(found: Scores) -> dict[str, Any]:
    return {**found.to_dict(), "calibrated": found.ece <= found.ece_null}
