"""A training run as reports show it: its seeds ranked, and all its numbers as plain data.

JSON has no infinity and no NaN: ``as_json`` writes null for such numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from lpf.training.assembly import Trained
    from lpf.training.history import Epoch, SeedHistory, SeedSpread


SeedRole = Literal["selected", "member", "other"]


FORMAT = 1
MOST_NAMED = 5  # numbers that the warning names


@dataclass(frozen=True)
class RankedSeed:
    """One seed. Its ``role`` is ``selected`` for the best seed, ``member`` for the others in the
    model, ``other`` for the rest; a linear model has no seed's networks in it."""

    history: SeedHistory
    role: SeedRole

    @property
    def number(self) -> int:
        return self.history.seed

    @property
    def best(self) -> Epoch:
        return self.history.best

    @property
    def name(self) -> str:
        return f"★ {self.number}" if self.role == "selected" else str(self.number)

    @property
    def weighted_kl(self) -> float:
        """What KL adds to the validation loss of the best epoch."""
        return self.best.validation_loss - self.best.validation_cross_entropy


@dataclass(frozen=True)
class RankedRun:
    """A training run with its seeds, the best first."""

    trained: Trained
    seeds: tuple[RankedSeed, ...]

    @classmethod
    def of(cls, trained: Trained) -> RankedRun:
        from lpf.training.history import ranked  # imports torch, as training has done already

        seeds = []
        for place, position in enumerate(ranked(trained.histories)):
            history = trained.histories[position]
            role: SeedRole = "other"
            if history.seed in trained.network_seeds:
                role = "selected" if place == 0 else "member"
            seeds.append(RankedSeed(history, role))
        return cls(trained, tuple(seeds))

    @property
    def selected(self) -> RankedSeed:
        return self.seeds[0]

    @property
    def scored_items(self) -> str:
        """The items that validation figures are computed on."""
        return "held-out items of folds" if self.trained.in_folds else "single validation items"

    @property
    def converged_share(self) -> float:
        return self._mean(lambda history: history.converged)

    @property
    def mean_best_epoch(self) -> float:
        return self._mean(lambda history: history.best_epoch)

    @property
    def mean_epochs(self) -> float:
        return self._mean(lambda history: len(history.epochs))

    @property
    def accuracy_gap(self) -> float:
        """Training accuracy minus validation accuracy, means over the seeds."""
        return self.spread("train_accuracy").mean - self.spread("validation_accuracy").mean

    def spread(self, name: str) -> SeedSpread:
        """A field of each seed's best epoch, over all seeds."""
        from lpf.training.history import spread

        return spread(self.trained.histories, name)

    def spreads(self) -> dict[str, dict[str, float]]:
        """Mean, standard deviation and the selected seed's value, of each field of an epoch."""
        return {name: asdict(self.spread(name)) for name in asdict(self.selected.best)}

    def to_dict(self, dataset_name: str) -> dict[str, Any]:
        """The content of ``training.json``. Seeds are best first; shares lie in [0, 1]."""
        trained = self.trained
        aggregator = zip(trained.config.seeds, trained.aggregator, strict=True)
        return {
            "format": FORMAT,
            "beats_class_shares": {
                name: one.beats_class_shares for name, one in trained.held_out.by_predicate.items()
            },
            "beats_claim": {
                name: one.beats_claim for name, one in trained.held_out.by_predicate.items()
            },
            "dataset": dataset_name,
            "card": trained.card.to_dict(),
            "cautions": list(trained.warnings),
            "members": list(trained.config.seeds),
            "seeds": [_seed_document(seed) for seed in self.seeds],
            "spread": self.spreads(),
            "aggregator": [
                {"seed": seed, "epochs": [asdict(epoch) for epoch in epochs]}
                for seed, epochs in (aggregator if trained.aggregator else ())
            ],
            "fitted": {
                name: {
                    **one.robust.to_dict(),
                    "learned_temperature": one.learned_temperature,
                    "min_credibility": one.min_credibility,
                }
                for name, one in trained.fitted.items()
            },
            "scores": {
                one.place: {name: scores.to_dict() for name, scores in one.by_predicate.items()}
                for one in trained.scores
            },
            "model": trained.config.to_dict(),
        }

    def _mean(self, of: Callable[[SeedHistory], float]) -> float:
        return float(np.mean([of(seed.history) for seed in self.seeds]))


def _seed_document(seed: RankedSeed) -> dict[str, Any]:
    return {
        **seed.history.to_dict(),
        "standing": seed.role,
        "epochs_trained": len(seed.history.epochs),
        "weighted_kl": seed.weighted_kl,
    }


def as_json(document: Mapping[str, Any]) -> bytes:
    """UTF-8, with null for every number that is not finite."""
    text = json.dumps(_finite(document), indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def null_warnings(document: Mapping[str, Any], file: str) -> Iterator[str]:
    """A warning if some numbers are null in ``file``, so that nobody takes a gap for a zero."""
    paths = list(_not_finite(document))
    if not paths:
        return
    numbers = "1 number is" if len(paths) == 1 else f"{len(paths)} numbers are"
    more = ", …" if len(paths) > MOST_NAMED else ""
    yield (
        f"{numbers} infinite or undefined and missing from the figures; {file} has null there: "
        f"{', '.join(paths[:MOST_NAMED])}{more}."
    )


def _not_finite(value: object, path: str = "") -> Iterator[str]:
    """Dotted paths of the numbers that are infinite or NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    inner: Iterator[tuple[object, object]] = iter(())
    if isinstance(value, Mapping):
        inner = iter(value.items())
    elif isinstance(value, list | tuple):
        inner = iter(enumerate(value))
    for name, one in inner:
        yield from _not_finite(one, f"{path}.{name}" if path else str(name))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
