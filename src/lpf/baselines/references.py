"""Bounds: what knowing nothing, reading perfectly and knowing the answer are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.baselines.interface import FittedMethod, entity_labels, value_count
from lpf.domains import perfect_answers
from lpf.errors import ConfigError
from lpf.training.examples import Examples
from lpf.training.material import training_shares
from lpf.types import FloatArray


@dataclass(frozen=True)
class Constant:
    """The same distribution [V] for every entity."""

    distribution: FloatArray

    def predict_proba(self, examples: Examples) -> FloatArray:
        return np.tile(self.distribution, (len(examples.dataset), 1))


@dataclass(frozen=True)
class Prior:
    """The smoothed shares of the values among training entities."""

    name: str
    is_reference: bool = True

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        labels = entity_labels(train, predicate)
        values = value_count(train, predicate)
        return Constant(training_shares(labels, values, np.ones(len(labels))))


@dataclass(frozen=True)
class Stored:
    """The posteriors that a generated data set carries."""

    def predict_proba(self, examples: Examples) -> FloatArray:
        return perfect_answers(examples.dataset)


@dataclass(frozen=True)
class PerfectReader:
    """The exact posterior of generated data; there is none for other data, nor for a predicate
    that the evidence is not about."""

    name: str
    is_reference: bool = True

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        first = next(iter(train.dataset.schema)).name
        if predicate != first:
            raise ConfigError(
                f"{self.name}: knows the answer to {first!r} only, not to {predicate!r}. Nothing "
                "was answered; leave the method out."
            )
        perfect_answers(validation.dataset)  # refuses data without posteriors before it is asked
        return Stored()


@dataclass(frozen=True)
class Known:
    """The label, with certainty."""

    predicate: str

    def predict_proba(self, examples: Examples) -> FloatArray:
        labels = entity_labels(examples, self.predicate)
        return np.eye(value_count(examples, self.predicate))[labels]


@dataclass(frozen=True)
class Oracle:
    """Looks the answer up: the top of every table, and a check of its columns."""

    name: str
    is_reference: bool = True

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        return Known(predicate)
