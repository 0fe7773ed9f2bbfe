"""A regression on the words of whole entities: hashed n-grams, a ridge penalty, calibrated logits.

An entity is the mean of its items' rows, with copies counted as one item, so its logits are the
mean of its items' logits. Least squares on the labels (``ridge``) gives scores; scale and bias,
fitted to scores of held-out entities, turn them into logits. The lowest held-out NLL also chooses
the penalty and the view of the texts. Folds keep entities of one group together.

With few labels and thousands of n-grams, the penalty that orders entities best is not the one that
gives good probabilities, so the scale is fitted separately. A logistic regression with such a scale
was no better and much slower: see docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from lpf.combine.robust import copy_discount, exponents
from lpf.datasets.splits import grouped_folds
from lpf.errors import TrainingError
from lpf.reading.fitted_words import FittedWords, LexicalModel
from lpf.reading.lexical import (
    PARTS,
    Part,
    inverse_frequencies,
    ngram_counts,
    part_range,
    weighted_rows,
)
from lpf.training.examples import Examples, item_requests
from lpf.training.material import training_shares
from lpf.training.ridge import (
    MOST_ROWS,
    RidgeScores,
    RidgeSpectrum,
    ScoreScale,
    fit_scale,
    fit_without_folds,
    mean_spread,
)
from lpf.types import Float32Array, FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Places = NDArray[np.intp]
PENALTIES: Final = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
FOLDS = 8
FOLDS_SEED = 0  # draws the folds of the regressions that become part of a model


@dataclass(frozen=True)
class LexicalView:
    """Which parts of the texts are used, and how much more rare n-grams count (``exponent`` of
    ``inverse_frequencies``)."""

    name: str
    parts: tuple[Part, ...]
    exponent: float

    def idf(self, counts: csr_matrix) -> Float32Array:
        """The weight of each bucket; 0 outside the parts."""
        weights = inverse_frequencies(counts, self.exponent)
        for part in set(PARTS) - set(self.parts):
            weights[part_range(part)] = 0.0
        return weights


# Opinions are in frequent words ("good", "not"), topics and names in rare ones.
VIEWS: Final = (
    LexicalView("words", ("words",), 0.0),
    LexicalView("words, characters and claims", PARTS, 0.0),
    LexicalView("words, characters and claims, weighted by rarity", PARTS, 1.0),
)


@dataclass(frozen=True)
class LexicalFit:
    """``cross_fitted`` [N, V] are logits of the training items, each from a fit without the fold of
    its entity, and ``nll`` is that of the training entities under such fits."""

    model: LexicalModel
    view: LexicalView
    penalty: float
    nll: float
    cross_fitted: FloatArray

    def describe(self) -> str:
        return f"{self.view.name}, penalty {self.penalty:g}, cross-fitted NLL {self.nll:.4f}"


def item_weights(examples: Examples) -> FloatArray:
    """The weight of each item in the mean of its entity, [N]; copies count as one item together."""
    segments = examples.segments
    discount = copy_discount(examples.groups, segments, len(segments.owner))
    return exponents(discount, 1.0, segments)


def fit_lexical(
    examples: Examples,
    predicate: str,
    *,
    seed: int,
    views: Sequence[LexicalView] = VIEWS,
    penalties: Sequence[float] = PENALTIES,
) -> LexicalFit:
    """Fit to the entities that have items and a value of ``predicate``. ``seed`` draws the folds
    and, if there are more than MOST_ROWS entities, those that choose view and penalty.

    TrainingError if fewer than two groups of entities can be fitted to."""
    trainer = _LexicalTrainer(examples, predicate, seed)
    tried = [one for view in views for one in trainer.try_penalties(view, penalties)]
    return trainer.fit(min(tried, key=lambda one: one.nll))


def entity_logits(model: LexicalModel, examples: Examples) -> FloatArray:
    """[E, V], the mean over each entity's items; the bias for an entity without items."""
    words = FittedWords({"": model})
    items = words.logits(item_requests(examples.dataset)) - model.bias
    return examples.segments.sum(item_weights(examples)[:, None] * items) + model.bias


@dataclass(frozen=True)
class WordsFit:
    """Regressions on words of several predicates. ``cross_fitted`` [N, width] are the logits of the
    training items, each from fits without the fold of its entity."""

    words: FittedWords
    cross_fitted: FloatArray

    def extend_fitted(self, examples: Examples) -> Examples:
        """The entities that the regressions were fitted to, with cross-fitted logits as their last
        features."""
        logits = self.cross_fitted.astype(np.float32)
        return replace(examples, features=np.hstack([examples.features, logits]))

    def extend(self, examples: Examples) -> Examples:
        """Entities of all splits with logits as their last features: cross-fitted for those of
        the training split, which the regressions were fitted to."""
        extended = with_logits(examples, self.words)
        rows = examples.rows(examples.dataset.positions("train"))
        extended.features[rows, -self.words.width :] = self.cross_fitted
        return extended


def fit_words(examples: Examples, predicates: Sequence[str]) -> WordsFit | None:
    """Fit to all of ``examples``. None if the entities of a predicate are all of one group: then no
    fold can be held out."""
    if any(_groups(examples, name) < 2 for name in predicates):
        return None
    fits = {name: fit_lexical(examples, name, seed=FOLDS_SEED) for name in predicates}
    words = FittedWords({name: one.model for name, one in fits.items()})
    return WordsFit(words, np.hstack([one.cross_fitted for one in fits.values()]))


def with_logits(examples: Examples, words: FittedWords | None) -> Examples:
    """Entities that ``words`` was not fitted to, with its logits as their last features; unchanged
    if it is None."""
    if words is None:
        return examples
    features = words.beside(examples.features, item_requests(examples.dataset))
    return replace(examples, features=features)


def _groups(examples: Examples, predicate: str) -> int:
    """How many groups the entities with items and a value of ``predicate`` belong to."""
    trainer = _LexicalTrainer(examples, predicate, FOLDS_SEED)
    return len(trainer.groups(np.arange(len(trainer.known))))


@dataclass(frozen=True)
class _Tried:
    """Settings with their held-out NLL."""

    view: LexicalView
    penalty: float
    scale: ScoreScale
    nll: float


@dataclass(frozen=True)
class _LexicalTrainer:
    examples: Examples
    predicate: str
    seed: int

    @cached_property
    def counts(self) -> csr_matrix:
        return ngram_counts(item_requests(self.examples.dataset))

    @cached_property
    def known(self) -> Places:
        """The positions of the entities to fit to."""
        labels = self.examples.dataset.labels(self.predicate)
        return np.flatnonzero((labels >= 0) & (self.examples.segments.counts > 0))

    @cached_property
    def searched(self) -> Places:
        """Positions among ``known`` of the entities that choose the settings."""
        if len(self.known) <= MOST_ROWS:
            return np.arange(len(self.known))
        generator = np.random.default_rng(self.seed)
        return np.sort(generator.choice(len(self.known), MOST_ROWS, replace=False))

    @cached_property
    def labels(self) -> Places:
        return np.asarray(self.examples.dataset.labels(self.predicate)[self.known])

    @cached_property
    def shares(self) -> FloatArray:
        values = len(self.examples.dataset.schema[self.predicate].values)
        return training_shares(self.labels, values, np.ones(len(self.labels)))

    @cached_property
    def targets(self) -> FloatArray:
        """One-hot labels without the shares: a score of 0 says nothing."""
        one_hot = np.eye(len(self.shares))[self.labels]
        return np.asarray(one_hot - one_hot.mean(axis=0))

    def groups(self, places: Places) -> set[tuple[bool, str]]:
        """The groups of the entities at ``places``, which are positions among ``known``."""
        part = self.examples.dataset.select(self.known[places].tolist())
        return {(entity.group_id is None, entity.group_id or entity.entity_id) for entity in part}

    def folds(self, places: Places) -> tuple[Places, ...]:
        """Positions among ``places``, which are positions among ``known``."""
        part = self.examples.dataset.select(self.known[places].tolist())
        groups = self.groups(places)
        if len(groups) < 2:
            raise TrainingError(
                f"a regression on words needs two groups of entities with a value of "
                f"{self.predicate!r}, got {len(groups)}. Nothing was fitted.",
                hint="Add entities of another group_id.",
            )
        return grouped_folds(part, self.predicate, min(FOLDS, len(groups)), self.seed)

    def item_rows(self, view: LexicalView) -> csr_matrix:
        return weighted_rows(self.counts, view.idf(self.counts)).astype(np.float64)

    def entity_rows(self, items: csr_matrix) -> csr_matrix:
        """The mean of each known entity's items."""
        from scipy.sparse import csr_matrix as matrix

        segments = self.examples.segments
        count = len(segments.owner)
        mean = matrix(
            (item_weights(self.examples), (segments.owner, np.arange(count))),
            shape=(len(segments), count),
        )
        return (mean @ items)[self.known]

    def try_penalties(self, view: LexicalView, penalties: Sequence[float]) -> list[_Tried]:
        places = self.searched
        rows = self.entity_rows(self.item_rows(view))[places]
        spectrum, spread, folds = RidgeSpectrum.of(rows), mean_spread(rows), self.folds(places)
        tried = []
        for penalty in penalties:
            scores = spectrum.held_out(self.targets[places], penalty * spread, folds)
            scale, nll = fit_scale(scores, self.labels[places], self.shares)
            tried.append(_Tried(view, penalty, scale, nll))
        return tried

    def fit(self, best: _Tried) -> LexicalFit:
        items = self.item_rows(best.view)
        rows = self.entity_rows(items)
        folds = self.folds(np.arange(len(self.known)))
        penalty = best.penalty * mean_spread(rows)
        fitted, without = fit_without_folds(rows, self.targets, penalty, folds)
        # Entities without a label were not fitted to: for them, the fit to all others is held out.
        cross_fitted = best.scale.logits(fitted.of(items))
        for fold, one in zip(folds, without, strict=True):
            places = self.examples.rows(self.known[fold])
            cross_fitted[places] = best.scale.logits(one.of(items[places]))
        model = _model(best.view.idf(self.counts), fitted, best.scale)
        return LexicalFit(model, best.view, best.penalty, best.nll, cross_fitted)


def _model(idf: Float32Array, fitted: RidgeScores, scale: ScoreScale) -> LexicalModel:
    weight, bias = scale.scale * fitted.weight, scale.logits(fitted.offset)
    return LexicalModel(idf, weight.astype(np.float32), bias.astype(np.float32))
