"""Linear reading: where texts are many-sided and labels few, networks learn them by heart.

A regression on the features, penalised as strongly as validation entities ask for, takes the
networks' place. It is written in their shape, so that everything that answers with a model answers
with it: the latent code is the logits, σ is 0, and the decoder's one hidden layer holds them twice,
for relu(x) - relu(-x) = x. Members are fits under random weights of the entities, so that answers
still tell how much they hang on who was learned from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lpf.calibration import fit_robust
from lpf.factors.channel import channel_of, through
from lpf.factors.tempering import softmax
from lpf.model.config import DecoderConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.model.runtime import Runtime
from lpf.schema import Predicate
from lpf.training.examples import Examples
from lpf.training.fitting import SUBSETS_SEED, labelled_entities, labelled_factors
from lpf.training.material import (
    channel_between,
    entity_labels_of,
    head_through,
    labels_of,
    training_shares,
)
from lpf.training.softmax_regression import Regression, Rows, Scaling, fit_path, fit_regression
from lpf.types import Float32Array, FloatArray

Places = NDArray[np.intp]
# Whose labels the items are read by: their own, or those of their entities.
Source = Literal["items", "entities"]
# So often may a weaker penalty be worse than the one before, until none weaker is tried.
MOST_WORSE = 2


@dataclass(frozen=True)
class LinearHead:
    """The reading of one predicate: ``rows`` it is fitted on, and which items of the training
    entities these are, ``places``."""

    source: Source
    penalty: float
    head: PredicateHead
    rows: Rows
    places: Places
    regression: Regression
    nll: float


@dataclass(frozen=True)
class LinearReading:
    """Fits on ``train``, chooses on ``validation``; both have their labels."""

    train: Examples
    validation: Examples
    predicates: tuple[str, ...]

    @cached_property
    def scaling(self) -> Scaling:
        return Scaling.of(self.train.features)

    @cached_property
    def scaled(self) -> Float32Array:
        return self.scaling.apply(self.train.features)

    @cached_property
    def heads(self) -> dict[str, LinearHead]:
        """For each predicate whose labels and what penalty give validation entities the lowest
        NLL, robust mode fitted to each."""
        return {name: self._best(name) for name in self.predicates}

    def runtime(self, seeds: Sequence[int], reader_id: str) -> Runtime:
        """One member a seed."""
        members = [self._drawn(seed) for seed in seeds]
        config = _config(list(self.heads.values()), seeds, reader_id, self.scaled.shape[1])
        return Runtime(config, _tensors(config, members, self.scaling))

    def _best(self, name: str) -> LinearHead:
        own, of_entities = self._labels("items", name), self._labels("entities", name)
        alike = channel_between(own, of_entities, len(self._predicate(name).values)) is None
        sources: tuple[Source, ...] = ("entities",) if alike else ("items", "entities")
        found = [one for source in sources for one in self._path(name, source)]
        return min(found, key=lambda one: one.nll)

    def _path(self, name: str, source: Source) -> list[LinearHead]:
        labels = self._labels(source, name)
        places = np.flatnonzero(labels >= 0)
        rows = Rows(self.scaled[places], labels[places], self._weights(source)[places])
        head = self._head(name, source, rows, places)
        found: list[LinearHead] = []
        for penalty, regression in fit_path(rows, len(head.values)):
            nll = self._judged(head, regression)
            found.append(LinearHead(source, penalty, head, rows, places, regression, nll))
            if _is_past_the_best(found):
                break
        return found

    def _head(self, name: str, source: Source, rows: Rows, places: Places) -> PredicateHead:
        values = self._predicate(name).values
        shares = training_shares(rows.labels, len(values), rows.weights)
        channel = None
        if source == "items":
            of_entities = self._labels("entities", name)[places]
            channel = channel_between(rows.labels, of_entities, len(values))
        return head_through(name, values, shares, channel)

    def _weights(self, source: Source) -> FloatArray:
        """An item's own label counts like any other's; an entity's once, however many items say
        it."""
        counts = np.diff(self.train.dataset.offsets)
        if source == "items":
            return np.ones(int(counts.sum()))
        return np.repeat(1.0 / np.maximum(counts, 1), counts)

    def _judged(self, head: PredicateHead, regression: Regression) -> float:
        """NLL of the validation entities, robust mode fitted to them."""
        held = labelled_entities(self.validation, head.name)
        said = softmax(regression.logits(self.scaling.apply(held.features)))
        data = labelled_factors(
            held,
            self._predicate(head.name),
            through(channel_of(head), said),
            np.array(head.training_shares),
        )
        generator = np.random.default_rng(SUBSETS_SEED)
        return fit_robust(data, generator=generator, cross_fit=False).nll_after

    def _drawn(self, seed: int) -> dict[str, Regression]:
        """Every entity with a random weight, exponential as in the Bayesian bootstrap."""
        dataset = self.train.dataset
        drawn = np.random.default_rng(seed).exponential(size=len(dataset))
        weights = np.repeat(drawn, np.diff(dataset.offsets))
        members = {}
        for name, one in self.heads.items():
            rows = Rows(one.rows.scaled, one.rows.labels, one.rows.weights * weights[one.places])
            members[name] = fit_regression(rows, one.penalty, one.regression)
        return members

    def _labels(self, source: Source, name: str) -> Places:
        of = labels_of if source == "items" else entity_labels_of
        return of(self.train.dataset, [name])[name]

    def _predicate(self, name: str) -> Predicate:
        return self.train.dataset.schema[name]


def _is_past_the_best(found: Sequence[LinearHead]) -> bool:
    before, last = found[:-MOST_WORSE], found[-MOST_WORSE:]
    return bool(before) and min(one.nll for one in last) > min(one.nll for one in before)


def _config(
    heads: Sequence[LinearHead], seeds: Sequence[int], reader_id: str, width: int
) -> ModelConfig:
    logits = sum(len(one.head.values) for one in heads)
    return ModelConfig(
        tuple(one.head for one in heads),
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
