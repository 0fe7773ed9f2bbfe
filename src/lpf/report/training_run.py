"""A training run as a report tells it: its seeds in order, and what became of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from lpf.training.assembly import Trained
    from lpf.training.history import Epoch, SeedHistory, SeedSpread


Standing = Literal["selected", "member", "other"]


@dataclass(frozen=True)
class Seed:
    """``selected`` is the best seed, a ``member`` another one that is part of the model; neither
    where a linear reading is."""

    history: SeedHistory
    standing: Standing

    @property
    def number(self) -> int:
        return self.history.seed

    @property
    def best(self) -> Epoch:
        return self.history.best

    @property
    def name(self) -> str:
        return f"★ {self.number}" if self.standing == "selected" else str(self.number)


@dataclass(frozen=True)
class Run:
    """``seeds`` are the best first."""

    trained: Trained
    seeds: tuple[Seed, ...]

    @classmethod
    def of(cls, trained: Trained) -> Run:
        from lpf.training.history import ranked  # with torch, which whoever trained has loaded

        ordered = [trained.histories[place] for place in ranked(trained.histories)]
        members = trained.network_seeds
        return cls(
            trained,
            tuple(
                Seed(history, _standing(place, history.seed in members))
                for place, history in enumerate(ordered)
            ),
        )

    @property
    def selected(self) -> Seed:
        return self.seeds[0]

    @property
    def judged_items(self) -> str:
        """What the figures called validation are of."""
        return "held-out items of folds" if self.trained.in_folds else "single validation items"

    @property
    def converged_share(self) -> float:
        return self.mean(lambda seed: seed.history.converged)

    def spread(self, name: str) -> SeedSpread:
        """Of a field of each seed's best epoch."""
        from lpf.training.history import spread

        return spread(self.trained.histories, name)

    def mean(self, of: Callable[[Seed], float]) -> float:
        return float(np.mean([of(seed) for seed in self.seeds]))


def weighted_kl(loss: float, cross_entropy: float) -> float:
    """What KL adds to a loss once it is weighted: all of it that is not cross-entropy."""
    return loss - cross_entropy


def _standing(place: int, is_member: bool) -> Standing:
    if not is_member:
        return "other"
    return "selected" if place == 0 else "member"
