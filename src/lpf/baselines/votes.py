"""Votes: every item names the value it finds likeliest, and the shares are counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.baselines.interface import FittedMethod
from lpf.baselines.item_models import ItemModel, ItemModels
from lpf.training.examples import Examples
from lpf.types import FloatArray


@dataclass(frozen=True)
class Counted:
    """(1 + votes for v)/(V + all votes). A vote counts 1, or ``weighted`` its own probability."""

    items: ItemModel
    weighted: bool

    def predict_proba(self, examples: Examples) -> FloatArray:
        probabilities = self.items.probabilities(examples)
        votes = np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)]
        if self.weighted:
            votes *= probabilities.max(axis=1, keepdims=True)
        smoothed = 1.0 + examples.segments.sum(votes)
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Voting:
    """Over the best deterministic classifier."""

    name: str
    items: ItemModels
    weighted: bool
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        found = self.items.model(train, validation, predicate, seed)
        return Counted(found.best(), self.weighted)
