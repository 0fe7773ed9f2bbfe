"""Simple ways to combine items, and reference methods.

Averages (VAE-Only of the paper, and the same with the deterministic classifier), votes, SPN-Only
(the deterministic classifier in the circuit, without robust mode), and the references: the class
shares, a perfect reader and an oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.baselines.interface import FittedMethod, entity_labels, value_count
from lpf.baselines.item_models import ItemModel, ItemModels, natural_shares
from lpf.circuits import CompiledCircuit
from lpf.combine import RobustParameters, combine_average, combine_robust
from lpf.domains import perfect_answers
from lpf.engine import Background
from lpf.errors import ConfigError
from lpf.factors.convert import ConversionConfig
from lpf.model.runtime import Runtime
from lpf.training.examples import Examples
from lpf.training.material import training_shares
from lpf.types import FloatArray

PAPER_SAMPLES = 16


@dataclass(frozen=True)
class Averaged:
    """(1/K)·Σ pᵢ over the K items of an entity."""

    items: ItemModel

    def predict_proba(self, examples: Examples) -> FloatArray:
        return combine_average(self.items.probabilities(examples), examples.segments).distribution


@dataclass(frozen=True)
class FactorAverage:
    """Averaged factors of a trained model: its best member with sixteen samples, as published, or
    (``ensemble``) all members, each decoding at the mean."""

    name: str
    model: Runtime
    ensemble: bool = False
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        natural = natural_shares(train, predicate)
        if self.ensemble:
            return Averaged(ItemModel(self.model, predicate, natural))
        conversion = ConversionConfig("plain", PAPER_SAMPLES, seed=seed)
        return Averaged(ItemModel(self.model.member(0), predicate, natural, conversion))


@dataclass(frozen=True)
class ClassifierAverage:
    """Averaged probabilities of the deterministic classifier, of its best member or of all."""

    name: str
    items: ItemModels
    ensemble: bool = False
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        found = self.items.model(train, validation, predicate, seed)
        return Averaged(found if self.ensemble else found.best())


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
    """Votes of the best deterministic classifier."""

    name: str
    items: ItemModels
    weighted: bool
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        found = self.items.model(train, validation, predicate, seed)
        return Counted(found.best(), self.weighted)


# P ∝ P_circuit(y)·Π Φᵢ(y)/π(y): every item counts fully.
PLAIN = RobustParameters(rho=0.0, epsilon=0.0)


@dataclass(frozen=True)
class ItemProduct:
    """A fitted ``CircuitOnly``."""

    items: ItemModel
    log_prior: FloatArray

    def predict_proba(self, examples: Examples) -> FloatArray:
        return combine_robust(
            self.items.factors(examples),
            np.full(len(examples.features), np.nan),
            self.items.shares,
            self.log_prior,
            examples.segments,
            PLAIN,
        ).distribution


@dataclass(frozen=True)
class CircuitOnly:
    """The product of the best deterministic classifier's outputs and the circuit's prior."""

    name: str
    items: ItemModels
    circuit: CompiledCircuit | None = None
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        background = Background(train.dataset.schema, self.circuit)
        found = self.items.model(train, validation, predicate, seed).best()
        return ItemProduct(found, background.log_prior(predicate))


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
class StoredPosteriors:
    """The exact posteriors that a generated data set contains."""

    def predict_proba(self, examples: Examples) -> FloatArray:
        return perfect_answers(examples.dataset)


@dataclass(frozen=True)
class PerfectReader:
    """The exact posterior of generated data. Other data has none, and neither has a predicate
    that the evidence is not about."""

    name: str
    is_reference: bool = True

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        first = next(iter(train.dataset.schema)).name
        if predicate != first:
            raise ConfigError(
                f"has the answers for {first!r} only, not for {predicate!r}.",
                field=self.name,
                hint="Leave the method out.",
            )
        perfect_answers(validation.dataset)  # raises for data without posteriors
        return StoredPosteriors()


@dataclass(frozen=True)
class LabelLookup:
    """The label, with probability 1."""

    predicate: str

    def predict_proba(self, examples: Examples) -> FloatArray:
        labels = entity_labels(examples, self.predicate)
        return np.eye(value_count(examples, self.predicate))[labels]


@dataclass(frozen=True)
class Oracle:
    """Looks up the label: the upper bound of every table, and a check of its columns."""

    name: str
    is_reference: bool = True

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        return LabelLookup(predicate)
