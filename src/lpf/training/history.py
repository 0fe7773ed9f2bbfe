"""The history of a training run: every epoch of every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch of one seed. Training figures are running means with dropout and one sample per
    item; validation figures are at the posterior's mean, without dropout. ``kl`` is not multiplied
    by beta."""

    train_loss: float
    train_cross_entropy: float
    train_kl: float
    train_accuracy: float
    validation_loss: float
    validation_cross_entropy: float
    validation_kl: float
    validation_accuracy: float
    mean_sigma: float


EPOCH_FIELDS = tuple(field.name for field in fields(Epoch))


@dataclass(frozen=True)
class SeedHistory:
    """All epochs of a seed. ``best_epoch`` counts from 1 and has the lowest validation loss.
    ``converged`` is True if the loss did not fall during the last ``patience`` epochs; with folds,
    training continues to the last epoch nevertheless."""

    seed: int
    epochs: tuple[Epoch, ...]
    converged: bool

    @property
    def best_epoch(self) -> int:
        losses = [epoch.validation_loss for epoch in self.epochs]
        return int(np.argmin(losses)) + 1

    @property
    def best(self) -> Epoch:
        return self.epochs[self.best_epoch - 1]

    def to_dict(self) -> dict[str, Any]:
        columns = {name: [getattr(one, name) for one in self.epochs] for name in EPOCH_FIELDS}
        return {
            "seed": self.seed,
            "converged": self.converged,
            "best_epoch": self.best_epoch,
            "best": asdict(self.best),
            "epochs": columns,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> SeedHistory:
        columns = [document["epochs"][name] for name in EPOCH_FIELDS]
        epochs = tuple(Epoch(*row) for row in zip(*columns, strict=True))
        return cls(document["seed"], epochs, document["converged"])


def ranked(histories: Sequence[SeedHistory]) -> list[int]:
    """Positions of the seeds, best first: by validation accuracy, then by loss, then as given."""
    return sorted(
        range(len(histories)),
        key=lambda place: (
            -histories[place].best.validation_accuracy,
            histories[place].best.validation_loss,
            place,
        ),
    )


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Mean and standard deviation over the seeds, and the value of the selected seed."""

    mean: float
    sd: float
    selected: float


def spread(histories: Sequence[SeedHistory], name: str) -> SeedSpread:
    """Spread of one field of the seeds' best epochs."""
    values = [getattr(history.best, name) for history in histories]
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return SeedSpread(float(np.mean(values)), deviation, values[ranked(histories)[0]])
