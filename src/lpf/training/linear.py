"""The linear model: a penalised regression on the features, compared with the networks in training.

With few labels and varied texts, networks memorise the training items; a regression with a strong
penalty then answers better. Held-out entities choose its penalty and labels (``LinearSearch``), and
whether it replaces the networks (``model_choice``).

It is stored in the networks' shape (``model/linear_shape.py``). Its members are fits under random
weights of the entities, so that an answer still shows how far it depends on which entities were
trained on. Over all members every entity has the same weight, so the ensemble answers like one fit
to all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lpf.combine.calibration import fit_robust
from lpf.combine.occurrence import fit_ratios, log_occurrence, occurrences
from lpf.combine.robust import copy_discount, exponents
from lpf.factors.distributions import apply_channel, label_channel, softmax
from lpf.metrics.groups import few_groups, group_weights
from lpf.model.config import PredicateHead
from lpf.model.familiarity import without_wordless
from lpf.model.layout import words_tensors
from lpf.model.linear_shape import LinearHead, linear_config, linear_tensors
from lpf.model.runtime import Runtime
from lpf.model.zero_label import VerdictHead, installed_head
from lpf.reading.fitted_words import FittedWords
from lpf.reading.stance import STANCES, relevance, stances_of
from lpf.training.examples import Examples
from lpf.training.fitting import SUBSETS_SEED, item_factors, labelled_factors
from lpf.training.material import (
    channel_between,
    entity_labels_of,
    head_through,
    labels_of,
    training_shares,
)
from lpf.training.softmax_regression import (
    PENALTIES,
    RegressionRows,
    Scaling,
    SoftmaxRegression,
    fit_path,
    fit_regression,
    is_past_the_best,
)
from lpf.types import Float32Array, FloatArray

Places = NDArray[np.intp]
# What the regression is fitted to: items with their own labels, items with the labels of their
# entities, or whole entities. A whole entity is the mean of its items: one whose items mostly say
# nothing is still learned from, because no item has to explain the label alone. By relevance, the
# mean is weighted by how much each item says about its claim. By occurrence, it also counts which
# stances occur among the items (``combine.occurrence``); the regression then fits the rest.
# Verdicts are fitted to the stance logits alone, pulled towards those given without labels.
LabelSource = Literal[
    "items",
    "entities",
    "whole entities",
    "whole entities by relevance",
    "whole entities by relevance and occurrence",
    "verdicts",
]
WHOLE: Final = "whole entities"
BY_RELEVANCE: Final = "whole entities by relevance"
BY_OCCURRENCE: Final = "whole entities by relevance and occurrence"  # of stances
VERDICTS: Final = "verdicts"
PULLS: Final = (inf, *PENALTIES)  # towards the verdicts without labels; infinite: unchanged
# With words there is something left to answer from if all other features are all but left out.
WORDS_STRETCH = 4.0
WORDS_PENALTIES: Final = (300.0, 100.0, *PENALTIES)


@dataclass(frozen=True)
class LinearSettings:
    """How the regression of one predicate is fitted."""

    source: LabelSource
    penalty: float

    @property
    def is_without_labels(self) -> bool:
        return self.source == VERDICTS and self.penalty == inf

    def describe(self, predicate: str) -> str:
        fitted_to = {
            "items": "the items' own labels",
            "entities": "the entities' labels, item by item",
            WHOLE: "whole entities",
            BY_RELEVANCE: "whole entities, whose items count by what they say about the claim",
            BY_OCCURRENCE: "whole entities, whose items count by what they say about the claim, "
            "and to which stances occur among them",
            VERDICTS: "whole entities, starting from the verdicts without labels",
        }[self.source]
        if self.is_without_labels:
            return f"{predicate}: the verdicts without labels"
        return f"{predicate}: fitted to {fitted_to}, penalty {self.penalty:g}"


class HeldOutFactors(NamedTuple):
    """Φ of every held-out item [N, V], and the ``occurrence_ratios`` [E, 4, V] of the model that
    answers each held-out entity; None if it has none."""

    factors: FloatArray
    ratios: FloatArray | None


class FoundSettings(NamedTuple):
    """Settings with their held-out NLL."""

    settings: LinearSettings
    nll: float


@dataclass(frozen=True)
class LinearRows:
    """Training data of one predicate: ``rows`` are the labelled items or entities, ``owners`` the
    positions of their entities. With ``towards``, they have the stance logits alone, unscaled, and
    the fit is pulled towards it."""

    head: PredicateHead
    rows: RegressionRows
    owners: Places
    towards: SoftmaxRegression | None = None

    @property
    def start(self) -> SoftmaxRegression:
        """Where the first fit begins."""
        values = len(self.head.values)
        return self.towards or SoftmaxRegression.empty(self.rows.scaled.shape[1], values)


@dataclass(frozen=True)
class LinearTrainer:
    """Fits linear models to all of ``examples``. ``stance`` is the column of the first stance
    logit; None if the features have none. ``words`` gave the last features, if it is not None."""

    examples: Examples
    stance: int | None = None
    words: FittedWords | None = None

    @cached_property
    def scaling(self) -> Scaling:
        scaling = Scaling.of(self.examples.features)
        if self.stance is not None:
            scaling = scaling.with_narrow_block(slice(self.stance, self.stance + len(STANCES)))
        if self.words is not None:
            # The logits are cross-fitted already: the penalty should hardly shrink them again.
            words = slice(-self.words.width, None)
            scaling = scaling.with_narrow_block(words, WORDS_STRETCH)
        return scaling

    @cached_property
    def scaled(self) -> Float32Array:
        return self.scaling.apply(self.examples.features)

    @property
    def penalties(self) -> Sequence[float]:
        """What to choose from, from strong to weak."""
        return PENALTIES if self.words is None else WORDS_PENALTIES

    def sources(self, name: str) -> tuple[LabelSource, ...]:
        """What to choose from. Without labels of their own, items are fitted with their entities';
        with one item each, whole entities are the same as items. Relevance needs a stance towards
        a claim."""
        own, of_entities = self._labels("items", name), self._labels("entities", name)
        several = bool((np.diff(self.examples.dataset.offsets) > 1).any())
        differs = self._relevance is not None and bool((self._relevance < 1.0).any())
        return (
            *(() if (own == of_entities).all() else ("items",)),
            "entities",
            *((WHOLE,) if several else ()),
            *((BY_RELEVANCE, BY_OCCURRENCE) if several and differs else ()),
            *(() if self.verdicts(name) is None else (VERDICTS,)),
        )

    def verdicts(self, name: str) -> VerdictHead | None:
        """The verdicts without labels; None if values or features do not admit them. With words,
        they would be the same as without."""
        if self.stance is None or self.words is not None:
            return None
        return installed_head(self._values(name))

    def rows(self, name: str, source: LabelSource) -> LinearRows:
        if source in (WHOLE, BY_RELEVANCE, BY_OCCURRENCE):
            return self._whole_rows(name, source)
        if source == VERDICTS:
            return self._verdict_rows(name)
        labels, places = self._labels(source, name), self.places(name, source)
        weights = self._weights(name, source)[places]
        rows = RegressionRows(self.scaled[places], labels[places], weights)
        values = self._values(name)
        shares = training_shares(rows.labels, len(values), rows.weights)
        channel = self._channel(name) if source == "items" else None
        head = head_through(name, values, shares, channel)
        return LinearRows(head, rows, self.examples.segments.owner[places])

    def places(self, name: str, source: LabelSource) -> Places:
        """The rows of the items that are labelled, for the two sources that do not pool items."""
        return np.flatnonzero(self._labels(source, name) >= 0)

    def _whole_rows(self, name: str, source: LabelSource) -> LinearRows:
        """One row per labelled entity. Robust mode with ρ = 1 and π equal to the prior multiplies
        the items' factors to exactly the regression's answer about their mean. If the items of an
        entity count for less than one item in all, the rest of the answer is the prior."""
        labels = self.examples.dataset.labels(name)
        entities = np.flatnonzero((labels >= 0) & (self.examples.segments.counts > 0))
        predicate = self.examples.dataset.schema[name]
        head = PredicateHead(name, predicate.values, tuple(predicate.prior), trained_rho=1.0)
        weights = self._entity_weights(name)[entities]
        if source == WHOLE:
            rows = RegressionRows(self._pooled[entities], labels[entities], weights)
            return LinearRows(head, rows, entities)
        pooled, amounts = self._pooled_by_relevance
        head = replace(head, relevance_start=self.stance)
        offsets = (1.0 - amounts[entities])[:, None] * np.log(np.array(predicate.prior))
        if source == BY_OCCURRENCE:
            ratios, logs = self._occurrence(labels, entities, np.array(predicate.prior))
            head = replace(head, occurrence_ratios=tuple(map(tuple, ratios.tolist())))
            offsets = offsets + logs
        rows = RegressionRows(
            pooled[entities], labels[entities], weights, amounts[entities], offsets
        )
        return LinearRows(head, rows, entities)

    def _occurrence(
        self, labels: Places, entities: Places, prior: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Which values go with which stances: ratios [4, V] fitted to ``entities``, and the log of
        what follows from them for each."""
        assert self.stance is not None  # without one the source is not offered
        stances = stances_of(self.examples.features, self.stance)
        shares = without_wordless(self._copy_discount, self.examples.wordless)
        assert shares is not None  # a discount was given
        segments = self.examples.segments
        cases = occurrences(stances, shares, segments)
        ratios = fit_ratios(cases[entities], labels[entities], prior)
        return ratios, log_occurrence(stances, shares, segments, ratios)[entities]

    def _verdict_rows(self, name: str) -> LinearRows:
        """As by relevance, but texts that say nothing about the claim have an answer of their
        own."""
        verdicts = self.verdicts(name)
        assert verdicts is not None  # otherwise the source is not offered
        labels = self.examples.dataset.labels(name)
        entities = np.flatnonzero((labels >= 0) & (self.examples.segments.counts > 0))
        predicate = self.examples.dataset.schema[name]
        head = PredicateHead(
            name,
            predicate.values,
            tuple(predicate.prior),
            trained_rho=1.0,
            relevance_start=self.stance,
            silent=tuple(verdicts.silent.tolist()),
        )
        logits = self.stances(self.examples.features)
        pooled, amounts = self._pool(self.item_weights(BY_RELEVANCE), logits)
        rows = RegressionRows(
            pooled[entities],
            labels[entities],
            self._entity_weights(name)[entities],
            amounts[entities],
            (1.0 - amounts[entities])[:, None] * np.log(verdicts.silent),
        )
        towards = SoftmaxRegression(verdicts.weight, verdicts.bias)
        return LinearRows(head, rows, entities, towards)

    def stances(self, features: Float32Array) -> Float32Array:
        """The stance logits among features [N, d], [N, 3]."""
        assert self.stance is not None  # only asked for if there are some
        return features[:, self.stance : self.stance + len(STANCES)]

    @cached_property
    def _pooled(self) -> Float32Array:
        """The mean of each entity's items [E, d]; copies count as one item together."""
        return self._pool(self.item_weights(WHOLE), self.scaled)[0]

    @cached_property
    def _pooled_by_relevance(self) -> tuple[Float32Array, FloatArray]:
        """The same, with each item counted by its relevance, and a text without a word not at
        all."""
        return self._pool(self.item_weights(BY_RELEVANCE), self.scaled)

    def _pool(self, weights: FloatArray, features: Float32Array) -> tuple[Float32Array, FloatArray]:
        """Weighted sums of each entity's ``features`` [E, d], and of the weights [E]: 1, or less if
        the items count for less than one item in all."""
        segments = self.examples.segments
        pooled = segments.sum(weights[:, None] * features).astype(np.float32)
        return pooled, segments.sum(weights)

    def item_weights(self, source: LabelSource) -> FloatArray:
        """The weight of each item in its whole entity [N], for the two sources that pool items."""
        discount = self._copy_discount
        if source == BY_RELEVANCE:
            shares = without_wordless(self._relevance, self.examples.wordless)
            assert shares is not None  # without a stance the source is not offered
            discount = discount * shares
        return exponents(discount, 1.0, self.examples.segments)

    @property
    def _copy_discount(self) -> FloatArray:
        examples = self.examples
        return copy_discount(examples.groups, examples.segments, len(examples.features))

    @cached_property
    def _relevance(self) -> FloatArray | None:
        """How much each item says about its claim [N]; None if the features do not tell."""
        return None if self.stance is None else relevance(self.examples.features, self.stance)

    def runtime(
        self, settings: Mapping[str, LinearSettings], seeds: Sequence[int], reader_id: str
    ) -> Runtime:
        """A model with one member per seed; a single member is the unweighted fit."""
        rows = {name: self.rows(name, one.source) for name, one in settings.items()}
        width = self.scaled.shape[1]
        members: list[dict[str, LinearHead]] = [{} for _ in seeds]
        for name, one in rows.items():
            penalty = settings[name].penalty
            plain = fit_regression(one.rows, penalty, one.start, one.towards)
            for member, drawn in zip(members, self.reweighted(one, seeds), strict=True):
                fit = fit_regression(drawn, penalty, plain, one.towards)
                member[name] = self._stored(fit, one)
        config = linear_config([one.head for one in rows.values()], seeds, reader_id, width)
        # Stances are read alike in texts of every kind: none is unfamiliar.
        everywhere = [name for name, one in settings.items() if one.source == VERDICTS]
        config = replace(config, head_familiarity=dict.fromkeys(everywhere))
        shared: dict[str, Float32Array] = {}
        if self.words is not None:
            config = replace(
                config, words=tuple(self.words.models), reader_id=reader_id + self.words.suffix
            )
            shared = words_tensors(self.words)
        return Runtime(config, linear_tensors(config, members) | shared)

    def _stored(self, fit: SoftmaxRegression, one: LinearRows) -> LinearHead:
        """What gives the same logits for unscaled features."""
        if one.towards is None:
            return fit.unscaled(self.scaling)
        assert self.stance is not None  # verdicts are fitted to stances
        weight = np.zeros((self.examples.features.shape[1], len(one.head.values)))
        weight[self.stance : self.stance + len(STANCES)] = fit.weight
        return LinearHead(weight, fit.bias)

    def factor_path(
        self, one: LinearRows, features: Float32Array
    ) -> Iterator[tuple[float, FloatArray]]:
        """Φ of items with ``features`` [N, V] under each penalty, from strong to weak."""
        pulled = one.towards is not None
        asked = self.stances(features) if pulled else self.scaling.apply(features)
        penalties = PULLS if pulled else self.penalties
        for penalty, fit in fit_path(one.rows, len(one.head.values), penalties, one.towards):
            yield penalty, apply_channel(label_channel(one.head), softmax(fit.logits(asked)))

    def reweighted(self, one: LinearRows, seeds: Sequence[int]) -> Iterator[RegressionRows]:
        """For each seed the rows with a random weight per entity: exponential, as in the Bayesian
        bootstrap, with mean 1 over the seeds."""
        count = len(self.examples.dataset)
        drawn = np.stack([np.random.default_rng(seed).exponential(size=count) for seed in seeds])
        for weights in drawn / drawn.mean(axis=0):
            yield replace(one.rows, weights=one.rows.weights * weights[one.owners])

    def _weights(self, name: str, source: LabelSource) -> FloatArray:
        """Items' own labels count equally; an entity's label counts once, however many items it
        has."""
        counts = np.diff(self.examples.dataset.offsets)
        shares = self._entity_weights(name)
        if source != "items":
            shares = shares / np.maximum(counts, 1)
        return np.repeat(shares, counts)

    def _entity_weights(self, name: str) -> FloatArray:
        """What each entity counts [E]: the same, unless they are of few groups."""
        dataset = self.examples.dataset
        labels, weights = dataset.labels(name), np.ones(len(dataset))
        groups, known = few_groups([entity.group_id for entity in dataset]), labels >= 0
        if groups is not None:
            weights[known] = group_weights(labels[known], groups[known])
        return weights

    def _channel(self, name: str) -> FloatArray | None:
        own, of_entities = self._labels("items", name), self._labels("entities", name)
        return channel_between(own, of_entities, len(self._values(name)))

    def _labels(self, source: LabelSource, name: str) -> Places:
        of = labels_of if source == "items" else entity_labels_of
        return of(self.examples.dataset, [name])[name]

    def _values(self, name: str) -> tuple[str, ...]:
        return self.examples.dataset.schema[name].values


@dataclass(frozen=True)
class LinearSearch:
    """Finds the settings of a linear model on entities that it is not fitted to.

    Each of ``trainers`` is tested on the entities at its ``places`` of ``held_out``, none of which
    it is fitted to. Together the places are all of ``held_out``.
    """

    held_out: Examples
    trainers: Sequence[LinearTrainer]
    places: Sequence[Places]

    def best_settings(self, name: str, sources: Collection[LabelSource] = ()) -> FoundSettings:
        """The settings with the lowest held-out NLL, with robust mode fitted to each, from all
        ``sources`` (none given: from every one)."""
        return self.best_by_source(name, sources)[0]

    def best_by_source(
        self, name: str, sources: Collection[LabelSource] = ()
    ) -> list[FoundSettings]:
        """The best settings of each source, the best source first."""
        offered = {source for one in self.trainers for source in one.sources(name)}
        chosen = sorted(offered & set(sources) or offered)
        found = [min(self._try_penalties(name, one), key=lambda tried: tried.nll) for one in chosen]
        return sorted(found, key=lambda one: one.nll)

    def factors(
        self, settings: Mapping[str, LinearSettings], seeds: Sequence[int], reader_id: str
    ) -> dict[str, HeldOutFactors]:
        """By predicate, from models with one member per seed."""
        models = [one.runtime(settings, seeds, reader_id) for one in self.trainers]
        parts = [self.held_out.select(places) for places in self.places]
        return {
            name: HeldOutFactors(
                self._in_order(
                    [item_factors(one, name, part) for one, part in zip(models, parts, strict=True)]
                ),
                self._ratios([one.config.head(name) for one in models]),
            )
            for name in settings
        }

    def _try_penalties(self, name: str, source: LabelSource) -> list[FoundSettings]:
        """Held-out NLL from strong penalties to weak ones, until these only get worse."""
        rows = [one.rows(name, source) for one in self.trainers]
        shares = np.mean([one.head.training_shares for one in rows], axis=0)
        head = replace(rows[0].head, training_shares=tuple(shares))
        ratios = self._ratios([one.head for one in rows])
        tried: list[FoundSettings] = []
        for penalty, factors in self._path(rows):
            settings = LinearSettings(source, penalty)
            tried.append(FoundSettings(settings, self._nll(head, HeldOutFactors(factors, ratios))))
            if is_past_the_best([one.nll for one in tried]):
                break
        return tried

    def _path(self, rows: Sequence[LinearRows]) -> Iterator[tuple[float, FloatArray]]:
        """Φ of every held-out item [N, V], under each penalty."""
        parts = [self.held_out.features[self.held_out.rows(places)] for places in self.places]
        paths = [
            trainer.factor_path(one, features)
            for one, trainer, features in zip(rows, self.trainers, parts, strict=True)
        ]
        for steps in zip(*paths, strict=True):
            yield steps[0][0], self._in_order([factors for _, factors in steps])

    def _in_order(self, parts: Sequence[FloatArray]) -> FloatArray:
        """The results of all trainers, in the order of the held-out items."""
        rows = np.concatenate([self.held_out.rows(places) for places in self.places])
        return np.asarray(np.concatenate(parts)[np.argsort(rows)])

    def _ratios(self, heads: Sequence[PredicateHead]) -> FloatArray | None:
        """Those of the trainer that does not know the entity, [E, 4, V]."""
        if not heads[0].occurrence_ratios:
            return None
        found = np.empty((len(self.held_out.dataset), *np.shape(heads[0].occurrence_ratios)))
        for places, head in zip(self.places, heads, strict=True):
            found[places] = head.occurrence_ratios
        return found

    def _nll(self, head: PredicateHead, found: HeldOutFactors) -> float:
        dataset = self.held_out.dataset
        labelled = np.flatnonzero(dataset.labels(head.name) >= 0)
        data = labelled_factors(
            self.held_out.select(labelled),
            dataset.schema[head.name],
            found.factors[self.held_out.rows(labelled)],
            head,
            ratios=None if found.ratios is None else found.ratios[labelled],
        )
        generator = np.random.default_rng(SUBSETS_SEED)
        return fit_robust(data, generator=generator, cross_fit=False).nll_after
