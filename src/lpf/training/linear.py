"""Linear reading: where texts are many-sided and labels few, networks learn them by heart.

A regression on the features, penalised as strongly as entities ask for that it did not see
(``linear_choice``), takes the networks' place. It is written in their shape, so that everything
that answers with a model answers with it: the latent code is the logits, σ is 0, and the decoder's
one hidden layer holds them twice, for relu(x) - relu(-x) = x. Members are fits under random weights
of the entities, so that answers still tell how much they hang on who was learned from; over the
members every entity weighs the same, so that together they say what one fit to all would say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lpf.model.config import DecoderConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.model.runtime import Runtime
from lpf.training.examples import Examples
from lpf.training.material import (
    channel_between,
    entity_labels_of,
    head_through,
    labels_of,
    training_shares,
)
from lpf.training.softmax_regression import Regression, Rows, Scaling, fit_regression
from lpf.types import Float32Array, FloatArray

Places = NDArray[np.intp]
# Whose labels the items are read by: their own, or those of their entities.
Source = Literal["items", "entities"]


@dataclass(frozen=True)
class LinearRecipe:
    """How a predicate is read linearly."""

    source: Source
    penalty: float


@dataclass(frozen=True)
class LinearRows:
    """What a predicate is read by: ``rows`` are the items at ``places`` that have a label."""

    head: PredicateHead
    rows: Rows
    places: Places


@dataclass(frozen=True)
class LinearLearner:
    """Fits on all of ``examples``."""

    examples: Examples

    @cached_property
    def scaling(self) -> Scaling:
        return Scaling.of(self.examples.features)

    @cached_property
    def scaled(self) -> Float32Array:
        return self.scaling.apply(self.examples.features)

    def sources(self, name: str) -> tuple[Source, ...]:
        """Only one where items have no labels but those of their entities."""
        own, of_entities = self._labels("items", name), self._labels("entities", name)
        return ("entities",) if (own == of_entities).all() else ("items", "entities")

    def rows(self, name: str, source: Source) -> LinearRows:
        labels = self._labels(source, name)
        places = np.flatnonzero(labels >= 0)
        rows = Rows(self.scaled[places], labels[places], self._weights(source)[places])
        values = self._values(name)
        shares = training_shares(rows.labels, len(values), rows.weights)
        channel = self._channel(name) if source == "items" else None
        return LinearRows(head_through(name, values, shares, channel), rows, places)

    def runtime(
        self, recipes: Mapping[str, LinearRecipe], seeds: Sequence[int], reader_id: str
    ) -> Runtime:
        """One member a seed; a single one is the plain fit."""
        rows = {name: self.rows(name, recipe.source) for name, recipe in recipes.items()}
        width = self.scaled.shape[1]
        members: list[dict[str, Regression]] = [{} for _ in seeds]
        for name, one in rows.items():
            penalty, empty = recipes[name].penalty, Regression.empty(width, len(one.head.values))
            plain = fit_regression(one.rows, penalty, empty)
            for member, drawn in zip(members, self.drawn(one, seeds), strict=True):
                member[name] = fit_regression(drawn, penalty, plain)
        config = _config([one.head for one in rows.values()], seeds, reader_id, width)
        return Runtime(config, _tensors(config, members, self.scaling))

    def drawn(self, one: LinearRows, seeds: Sequence[int]) -> Iterator[Rows]:
        """For each seed every entity with a random weight, exponential as in the Bayesian
        bootstrap, its mean over the seeds 1."""
        dataset = self.examples.dataset
        drawn = np.stack(
            [np.random.default_rng(seed).exponential(size=len(dataset)) for seed in seeds]
        )
        for weights in drawn / drawn.mean(axis=0):
            of_items = np.repeat(weights, np.diff(dataset.offsets))[one.places]
            yield replace(one.rows, weights=one.rows.weights * of_items)

    def _weights(self, source: Source) -> FloatArray:
        """An item's own label counts like any other's; an entity's once, however many items say
        it."""
        counts = np.diff(self.examples.dataset.offsets)
        if source == "items":
            return np.ones(int(counts.sum()))
        return np.repeat(1.0 / np.maximum(counts, 1), counts)

    def _channel(self, name: str) -> FloatArray | None:
        own, of_entities = self._labels("items", name), self._labels("entities", name)
        return channel_between(own, of_entities, len(self._values(name)))

    def _labels(self, source: Source, name: str) -> Places:
        of = labels_of if source == "items" else entity_labels_of
        return of(self.examples.dataset, [name])[name]

    def _values(self, name: str) -> tuple[str, ...]:
        return self.examples.dataset.schema[name].values


def _config(
    heads: Sequence[PredicateHead], seeds: Sequence[int], reader_id: str, width: int
) -> ModelConfig:
    logits = sum(len(head.values) for head in heads)
    return ModelConfig(
        tuple(heads),
        EncoderConfig(width, (), logits, 0.0, deterministic=True),
        DecoderConfig((2 * logits,), 1, 0.0),
        None,
        len(seeds),
        tuple(seeds),
        reader_id,
    )


def _tensors(
    config: ModelConfig, members: Sequence[Mapping[str, Regression]], scaling: Scaling
) -> dict[str, Float32Array]:
    """The heads' logits side by side as the latent code, and how each head finds its own."""
    count, latent = len(members), config.encoder.latent_width
    plain = [
        [member[head.name].unscaled(scaling) for head in config.predicates] for member in members
    ]
    both = np.concatenate([np.eye(latent), -np.eye(latent)], axis=1)  # relu(x) and relu(-x)
    trunk = np.concatenate([both, np.zeros((1, 2 * latent))])  # the predicate's embedding is 0
    tensors = {
        "encoder.mu.weight": np.stack([np.hstack([one.weight for one in row]) for row in plain]),
        "encoder.mu.bias": np.stack([np.hstack([one.bias for one in row]) for row in plain]),
        "decoder.trunk.0.weight": np.stack([trunk] * count),
        "decoder.trunk.0.bias": np.zeros((count, 2 * latent)),
    }
    first = 0
    for head in config.predicates:
        last = first + len(head.values)
        tensors[f"decoder.embedding.{head.name}"] = np.zeros((count, 1))
        tensors[f"decoder.head.{head.name}.weight"] = np.stack([both.T[:, first:last]] * count)
        tensors[f"decoder.head.{head.name}.bias"] = np.zeros((count, len(head.values)))
        first = last
    return {name: np.ascontiguousarray(array, np.float32) for name, array in tensors.items()}
