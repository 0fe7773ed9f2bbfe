"""Stacking: logistic regression on summaries of what the items' classifier says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.baselines.interface import FittedMethod, entity_labels, value_count
from lpf.baselines.item_models import ItemModel, ItemModels
from lpf.baselines.logistic import Labelled, Regression, fit_regression
from lpf.combine import Segments
from lpf.training.examples import Examples
from lpf.types import LOG_EPSILON, FloatArray


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
    """What ``Stacking`` learns."""

    items: ItemModel
    regression: Regression

    def predict_proba(self, examples: Examples) -> FloatArray:
        found = summaries(self.items.probabilities(examples), examples.segments)
        return self.regression.probabilities(found)


@dataclass(frozen=True)
class Stacking:
    """Over the best deterministic classifier. The regression learns from outputs on entities that
    their classifier had not seen."""

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
