"""The deterministic classifier of single items that several methods share.

It is the paper's encoder and decoder without the variational part, searched like LPF's own model:
seven seeds are trained together, and the best five form an ensemble.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lpf.baselines.interface import value_count
from lpf.datasets import grouped_folds
from lpf.factors.convert import ConversionConfig, Converter
from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.runtime import Runtime
from lpf.training.assembly import model_config, select_members
from lpf.training.config import SEVEN_SEEDS, TrainingConfig
from lpf.training.examples import Examples
from lpf.training.material import Rows, item_weights, labels_of, make_material, training_shares
from lpf.training.search import SearchResult, search_seeds
from lpf.training.stage_one import StageOne
from lpf.types import FloatArray

SEARCHED = len(SEVEN_SEEDS)
FOLDS = 5
SEARCH, FOLDING = 1, 2  # what seeds are drawn for


@dataclass(frozen=True)
class ItemModel:
    """A model's predictions for single items. ``natural`` [V] are the shares of the values among
    training items: a model trained on balanced batches predicts as if all were equally frequent."""

    runtime: Runtime
    predicate: str
    natural: FloatArray
    conversion: ConversionConfig = ConversionConfig()  # noqa: RUF009 - frozen, so safe to share

    def factors(self, examples: Examples) -> FloatArray:
        """Φ of each item, [N, V], under the shares the model was trained with."""
        converter = Converter(self.runtime, self.predicate, self.conversion)
        return converter.from_features(examples.features).potential

    def probabilities(self, examples: Examples) -> FloatArray:
        """The same, adjusted to the natural shares, [N, V]."""
        scaled = self.factors(examples) * (self.natural / self.shares)
        return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))

    @property
    def shares(self) -> FloatArray:
        """π, the shares that the model was trained with, [V]."""
        return np.array(self.runtime.config.head(self.predicate).training_shares)

    def best(self) -> ItemModel:
        """The same with the best member only."""
        return replace(self, runtime=self.runtime.member(0))


def natural_shares(train: Examples, predicate: str) -> FloatArray:
    """The smoothed shares of the values among labelled items, [V]."""
    labels = train.dataset.item_labels(predicate)
    return training_shares(labels, value_count(train, predicate), np.ones(len(labels)))


class ItemModels:
    """Trains the classifier once for all methods that use it on the same data."""

    def __init__(self, config: TrainingConfig | None = None, searched: int = SEARCHED) -> None:
        self._config = config or TrainingConfig(deterministic=True, aggregator=None)
        self._searched = searched
        self._models: dict[str, ItemModel] = {}
        self._outputs: dict[str, FloatArray] = {}

    def model(self, train: Examples, validation: Examples, predicate: str, seed: int) -> ItemModel:
        """The best members of the search as one ensemble; ``best()`` is the single classifier."""
        key = _key(train, validation, predicate, seed)
        if key not in self._models:
            self._models[key] = self._trained(train, validation, predicate, seed)
        return self._models[key]

    def out_of_fold(
        self, train: Examples, validation: Examples, predicate: str, seed: int
    ) -> FloatArray:
        """Probabilities [N, V] of the training items, each from a classifier that did not see its
        entity. A second stage must be trained on these, or it would trust memorised outputs."""
        key = _key(train, validation, predicate, seed)
        if key not in self._outputs:
            self._outputs[key] = self._held_out(train, validation, predicate, seed)
        return self._outputs[key]

    def _trained(
        self, train: Examples, validation: Examples, predicate: str, seed: int
    ) -> ItemModel:
        seeds = drawn_seeds(seed, SEARCH, self._searched)
        all_rows = np.arange(len(train.features))
        model, search = self._search(train, validation, predicate, seeds, [all_rows] * len(seeds))
        best = search.order[: self._config.members]
        config, tensors = select_members(model, search.tensors, best)
        return ItemModel(Runtime(config, tensors), predicate, natural_shares(train, predicate))

    def _held_out(
        self, train: Examples, validation: Examples, predicate: str, seed: int
    ) -> FloatArray:
        folds = [train.rows(fold) for fold in grouped_folds(train.dataset, predicate, FOLDS, seed)]
        others = [np.setdiff1d(np.arange(len(train.features)), rows) for rows in folds]
        seeds = drawn_seeds(seed, FOLDING, FOLDS)
        model, search = self._search(train, validation, predicate, seeds, others)
        all_members = Runtime(model, search.tensors)
        natural = natural_shares(train, predicate)
        outputs = np.empty((len(train.features), len(natural)))
        for place, rows in enumerate(folds):
            member = ItemModel(all_members.member(place), predicate, natural)
            outputs[rows] = member.probabilities(train)[rows]
        return outputs

    def _search(
        self,
        train: Examples,
        validation: Examples,
        predicate: str,
        seeds: tuple[int, ...],
        rows: list[Rows],
    ) -> tuple[ModelConfig, SearchResult]:
        """One member per seed, trained on its own ``rows`` of the training items."""
        features = np.concatenate([train.features, validation.features])
        labels = np.concatenate(
            [labels_of(part.dataset, [predicate])[predicate] for part in (train, validation)]
        )
        head = self._head(train, predicate, labels[: len(train.features)])
        model = model_config([head], self._config, seeds, "", features.shape[1])
        held = np.arange(len(train.features), len(features))
        material = make_material(
            features, {predicate: labels}, rows, [held] * len(seeds), self._config
        )
        return model, search_seeds(StageOne(model, material, self._config, seeds))

    def _head(self, train: Examples, predicate: str, labels: NDArray[np.intp]) -> PredicateHead:
        values = train.dataset.schema[predicate].values
        weights = item_weights({predicate: labels}, np.arange(len(labels)), self._config)
        shares = training_shares(labels, len(values), weights)
        return PredicateHead(predicate, values, tuple(shares.tolist()))


def drawn_seeds(seed: int, purpose: int, count: int) -> tuple[int, ...]:
    """Different seeds for the networks of one method."""
    drawn = np.random.SeedSequence([seed, purpose]).generate_state(count, np.uint32)
    return tuple(int(number) for number in drawn)


def _key(train: Examples, validation: Examples, predicate: str, seed: int) -> str:
    hashed = hashlib.sha256(f"{predicate}\n{seed}\n".encode())
    for part in (train, validation):
        hashed.update(part.dataset.digest.encode())
        hashed.update(np.ascontiguousarray(part.features).tobytes())
    return hashed.hexdigest()
