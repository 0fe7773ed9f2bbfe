"""Multinomial logistic regression, its L2 penalty chosen on validation entities.

Used on mean features, on summaries of the item classifier's outputs (stacking) and on claims alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.baselines.interface import FittedMethod, entity_labels, value_count
from lpf.baselines.item_models import ItemModel, ItemModels
from lpf.combine import Segments
from lpf.errors import DatasetError, MissingPackageError, TrainingError
from lpf.factors.distributions import softmax
from lpf.reading import Reader, ReadRequest
from lpf.training.examples import Examples
from lpf.training.softmax_regression import Scaling
from lpf.types import LOG_EPSILON, FloatArray

CLAIM_ONLY = "claim_only"
# sklearn's C: the inverse of the penalty, for inputs with mean 0 and standard deviation 1.
INVERSE_PENALTIES = tuple(10.0**power for power in range(-5, 3))
MAX_ITERATIONS = 5000


@dataclass(frozen=True)
class LogisticModel:
    """softmax(((x - centre)/scale)·weight + bias): ``weight`` [d, V], the others [d] and [V]."""

    centre: FloatArray
    scale: FloatArray
    weight: FloatArray
    bias: FloatArray

    def probabilities(self, inputs: FloatArray) -> FloatArray:
        """[E, d] -> [E, V]."""
        return softmax(((inputs - self.centre) / self.scale) @ self.weight + self.bias)


@dataclass(frozen=True)
class Labelled:
    """Data that a regression is fitted on: ``inputs`` [E, d], ``labels`` [E]."""

    inputs: FloatArray
    labels: NDArray[np.intp]


def fit_regression(train: Labelled, validation: Labelled, values: int) -> LogisticModel:
    """Fits with the penalty of lowest validation NLL. TrainingError if a value has no training
    entity."""
    absent = sorted(set(range(values)) - set(train.labels.tolist()))
    if absent:
        raise TrainingError(
            f"logistic regression: no training entity has the value at position {absent[0]}, so it "
            "would get probability zero. Nothing was fitted.",
            hint="Add entities that have it.",
        )
    scaling = Scaling.of(train.inputs)
    fits = [_fitted(train, scaling, strength) for strength in INVERSE_PENALTIES]
    losses = [metrics.nll(one.probabilities(validation.inputs), validation.labels) for one in fits]
    return fits[int(np.argmin(losses))]


def _fitted(train: Labelled, scaling: Scaling, strength: float) -> LogisticModel:
    try:
        from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingPackageError(
            "a logistic regression needs the package scikit-learn.",
            hint="Install it: `pip install 'lpf[baselines]'`.",
        ) from error
    model = LogisticRegression(C=strength, max_iter=MAX_ITERATIONS, tol=1e-5)
    model.fit((train.inputs - scaling.centre) / scaling.scale, train.labels)
    weight, bias = model.coef_.T, model.intercept_
    if weight.shape[1] == 1:  # for two values, sklearn has the log-odds of the second only
        weight = np.concatenate([np.zeros_like(weight), weight], axis=1)
        bias = np.concatenate([np.zeros_like(bias), bias])
    return LogisticModel(scaling.centre, scaling.scale, np.asarray(weight), np.asarray(bias))


@dataclass(frozen=True)
class OnMeanFeatures:
    """A regression on the mean of an entity's features."""

    regression: LogisticModel

    def predict_proba(self, examples: Examples) -> FloatArray:
        return self.regression.probabilities(mean_features(examples))


def mean_features(examples: Examples) -> FloatArray:
    """[E, width]."""
    total = examples.segments.sum(examples.features.astype(np.float64))
    return np.asarray(total / examples.segments.counts[:, None])


@dataclass(frozen=True)
class LogisticMean:
    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        known, held = (
            Labelled(mean_features(part), entity_labels(part, predicate))
            for part in (train, validation)
        )
        return OnMeanFeatures(fit_regression(known, held, value_count(train, predicate)))


def summaries(probabilities: FloatArray, segments: Segments) -> FloatArray:
    """[mean log p, max p, min p] of each value and log K: [N, V] -> [E, 3V + 1]."""
    counts = segments.counts[:, None].astype(np.float64)
    starts = segments.offsets[:-1]
    mean_log = segments.sum(np.log(probabilities + LOG_EPSILON)) / counts
    largest = np.maximum.reduceat(probabilities, starts, axis=0)
    smallest = np.minimum.reduceat(probabilities, starts, axis=0)
    return np.concatenate([mean_log, largest, smallest, np.log(counts)], axis=1)


@dataclass(frozen=True)
class Stacked:
    """A fitted ``Stacking``."""

    items: ItemModel
    regression: LogisticModel

    def predict_proba(self, examples: Examples) -> FloatArray:
        found = summaries(self.items.probabilities(examples), examples.segments)
        return self.regression.probabilities(found)


@dataclass(frozen=True)
class Stacking:
    """A regression on outputs of the best deterministic classifier. It is trained on outputs for
    entities that the classifier has not seen."""

    name: str
    items: ItemModels
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        found = self.items.model(train, validation, predicate, seed).best()
        unseen = self.items.out_of_fold(train, validation, predicate, seed)
        known = Labelled(summaries(unseen, train.segments), entity_labels(train, predicate))
        held = Labelled(
            summaries(found.probabilities(validation), validation.segments),
            entity_labels(validation, predicate),
        )
        return Stacked(found, fit_regression(known, held, value_count(train, predicate)))


@dataclass(frozen=True)
class ClaimRegression:
    """A fitted ``ClaimOnly``."""

    regression: LogisticModel
    reader: Reader

    def predict_proba(self, examples: Examples) -> FloatArray:
        return self.regression.probabilities(claim_features(examples, self.reader))


@dataclass(frozen=True)
class ClaimOnly:
    """A regression on the claim that never sees the evidence.

    The wording of a claim often gives its label away. A method that is no better than this one has
    learned nothing from evidence.
    """

    name: str
    reader: Reader
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        known, held = (
            Labelled(claim_features(part, self.reader), entity_labels(part, predicate))
            for part in (train, validation)
        )
        fitted = fit_regression(known, held, value_count(train, predicate))
        return ClaimRegression(fitted, self.reader)


def claim_features(examples: Examples, reader: Reader) -> FloatArray:
    """[E, width]; DatasetError if an entity has no claim."""
    claims = [entity.claim for entity in examples.dataset]
    if None in claims:
        raise DatasetError(
            f"dataset {examples.dataset.name!r}: entity {claims.index(None)} has no claim, which "
            f"the method {CLAIM_ONLY!r} needs.",
            hint="Leave the method out.",
        )
    requests = [ReadRequest(claim) for claim in claims if claim is not None]
    return np.asarray(reader.read_many(requests), np.float64)
