"""Linear reading: where texts are many-sided and labels few, networks learn them by heart.

A regression on the features, penalised as strongly as entities ask for that it did not see
(``linear_choice``), takes the networks' place. It is written in their shape, so that everything
that answers with a model answers with it: the latent code is the logits, σ is 0, and the decoder's
one hidden layer holds them twice, for relu(x) - relu(-x) = x. Members are fits under random weights
of the entities, so that answers still tell how much they hang on who was learned from; over the
members every entity weighs the same, so that together they say what one fit to all would say.

How a linear reading reads: whose labels, and how strongly penalised, as entities tell that the
regression did not see.

Which reading answers: the networks, or a linear one. Held-out entities decide, the same by
which networks stopped and a penalty was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lpf.combine.calibration import CalibrationFit, fit_robust
from lpf.factors.label_channel import apply_channel, label_channel
from lpf.factors.tempering import softmax
from lpf.model.config import DecoderConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.model.runtime import Runtime
from lpf.training.examples import Examples
from lpf.training.fitting import SUBSETS_SEED, item_factors, labelled_factors, robust_fit
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


# So many weaker penalties in a row may be worse than the best so far, until no other is tried.
MOST_WORSE = 2


@dataclass(frozen=True)
class LinearTrials:
    """Each of ``learners`` is asked about the entities at its ``places`` of ``asked``, of which it
    saw none. Together the places are all of ``asked``."""

    asked: Examples
    learners: Sequence[LinearLearner]
    places: Sequence[Places]

    def recipe(self, name: str) -> LinearRecipe:
        """The one with the lowest NLL of those asked about, robust mode fitted to each."""
        sources = {source for one in self.learners for source in one.sources(name)}
        found = [one for source in sorted(sources) for one in self._judged(name, source)]
        return min(found, key=lambda one: one[1])[0]

    def potential(
        self, recipes: Mapping[str, LinearRecipe], seeds: Sequence[int], reader_id: str
    ) -> dict[str, FloatArray]:
        """Φ of every item asked about [N, V], by predicate, from models with one member a seed."""
        models = [one.runtime(recipes, seeds, reader_id) for one in self.learners]
        asked = [self.asked.select(places) for places in self.places]
        return {
            name: self._joined(
                [item_factors(one, name, part) for one, part in zip(models, asked, strict=True)]
            )
            for name in recipes
        }

    def _judged(self, name: str, source: Source) -> list[tuple[LinearRecipe, float]]:
        """From strong penalties to weak ones, until these only get worse."""
        rows = [one.rows(name, source) for one in self.learners]
        shares = np.mean([one.head.training_shares for one in rows], axis=0)
        found: list[tuple[LinearRecipe, float]] = []
        for penalty, said in self._said(rows):
            nll = self._nll(name, said, shares)
            found.append((LinearRecipe(source, penalty), nll))
            if _is_past_the_best([loss for _, loss in found]):
                break
        return found

    def _said(self, rows: Sequence[LinearRows]) -> Iterator[tuple[float, FloatArray]]:
        """Φ of every item asked about [N, V], under each penalty."""
        asked = [self.asked.features[self.asked.rows(places)] for places in self.places]
        paths = [
            _path(one, learner.scaling.apply(features))
            for one, learner, features in zip(rows, self.learners, asked, strict=True)
        ]
        for steps in zip(*paths, strict=True):
            yield steps[0][0], self._joined([said for _, said in steps])

    def _joined(self, said: Sequence[FloatArray]) -> FloatArray:
        """What each learner said, in the order of the items asked about."""
        rows = np.concatenate([self.asked.rows(places) for places in self.places])
        return np.asarray(np.concatenate(said)[np.argsort(rows)])

    def _nll(self, name: str, said: FloatArray, shares: FloatArray) -> float:
        dataset = self.asked.dataset
        labelled = np.flatnonzero(dataset.labels(name) >= 0)
        data = labelled_factors(
            self.asked.select(labelled),
            dataset.schema[name],
            said[self.asked.rows(labelled)],
            shares,
        )
        generator = np.random.default_rng(SUBSETS_SEED)
        return fit_robust(data, generator=generator, cross_fit=False).nll_after


def _path(one: LinearRows, scaled: Float32Array) -> Iterator[tuple[float, FloatArray]]:
    for penalty, regression in fit_path(one.rows, len(one.head.values)):
        yield penalty, apply_channel(label_channel(one.head), softmax(regression.logits(scaled)))


def _is_past_the_best(losses: Sequence[float]) -> bool:
    before, last = losses[:-MOST_WORSE], losses[-MOST_WORSE:]
    return bool(before) and min(last) > min(before)


@dataclass(frozen=True)
class ReadingChoice:
    """The NLL of held-out entities under each, a mean over the predicates, robust mode fitted to
    others than those judged where they are few. ``linear`` goes by predicate."""

    networks_nll: float
    linear_nll: float
    linear: Mapping[str, LinearRecipe]

    @property
    def is_linear(self) -> bool:
        return self.linear_nll < self.networks_nll

    def told(self) -> str:
        """In a sentence."""
        ours, theirs = sorted((self.linear_nll, self.networks_nll))
        kept, left = ("linear", "networks") if self.is_linear else ("networks", "linear")
        sentence = f"reading: {kept}, held-out NLL {ours:.4f} against {theirs:.4f} of the {left}"
        if not self.is_linear:
            return sentence
        return "; ".join([sentence, *(_told(name, one) for name, one in self.linear.items())])


def choose_reading(
    networks: Runtime,
    train: Examples,
    validation: Examples,
    predicates: tuple[str, ...],
    seeds: Sequence[int],
) -> tuple[Runtime, ReadingChoice]:
    """The better of ``networks`` and a linear reading with one member for each of ``seeds``."""
    learner = LinearLearner(train)
    trials = LinearTrials(validation, [learner], [np.arange(len(validation.dataset))])
    recipes = {name: trials.recipe(name) for name in predicates}
    linear = learner.runtime(recipes, seeds, networks.config.reader_id)
    schema = validation.dataset.schema
    losses = [
        mean_nll([robust_fit(runtime, schema[name], validation) for name in predicates])
        for runtime in (networks, linear)
    ]
    choice = ReadingChoice(losses[0], losses[1], recipes)
    return (linear if choice.is_linear else networks), choice


def mean_nll(fits: Sequence[CalibrationFit]) -> float:
    """Over the predicates, by which readings are compared."""
    losses = [
        one.nll_after if one.nll_cross_fitted is None else one.nll_cross_fitted for one in fits
    ]
    return sum(losses) / len(losses)


def _told(name: str, recipe: LinearRecipe) -> str:
    whose = "the items' own labels" if recipe.source == "items" else "the entities' labels"
    return f"{name}: read by {whose}, penalty {recipe.penalty:g}"
