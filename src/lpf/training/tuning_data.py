"""What the pair encoder is tuned on: the claims and texts of training entities, and their labels.

Labels count as in the linear model (``linear.LabelSource``): items with labels of their own have
those; otherwise the logits of an entity's items are pooled by relevance, so that texts that say
nothing about the claim do not learn the entity's label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpf.model.linear_shape import LinearHead
from lpf.reading.stance import HIDDEN_WIDTH, STANCE_WIDTH, Pair, StanceReader
from lpf.training.examples import Examples, item_requests
from lpf.training.linear import BY_RELEVANCE, WHOLE, LabelSource, LinearSearch, LinearTrainer
from lpf.training.softmax_regression import SoftmaxRegression, fit_regression
from lpf.types import Float32Array, FloatArray

Places = NDArray[np.intp]
MOST_ITEMS = 8  # of an entity that is tuned on; those with the largest weights
DEFAULT_PENALTY = 1.0  # of the heads, where none can be chosen
POOL = 40  # batches whose entities are sorted by length together


@dataclass(frozen=True)
class TuningHead:
    """The labels of one predicate, and the head that tuning starts from.

    Items with the same ``units`` [N] (-1: none) are pooled with ``weights`` [N]; each unit has a
    label and a weight [U], and log-probabilities that are added to its logits [U, V]. ``start`` is
    ``weight`` [387, V] and ``bias`` [V] of the best regression on untuned features.
    """

    name: str
    units: Places
    weights: Float32Array
    labels: Places
    unit_weights: Float32Array
    offsets: Float32Array
    start: LinearHead


@dataclass(frozen=True)
class TuningData:
    """Pairs [N] of the entities that lie between consecutive ``offsets`` [E + 1], with the logits
    of the untuned reader's stances [N, 3]."""

    pairs: Sequence[Pair]
    offsets: Places
    stances: Float32Array
    heads: tuple[TuningHead, ...]

    @property
    def entities(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> Places:
        """Tokens of each pair, [N]."""
        return np.array([len(claim) + len(text) + 3 for claim, text in self.pairs], np.intp)

    def batches(self, tokens: int, generator: np.random.Generator) -> list[Places]:
        """Rows of all pairs, in batches of whole entities of similar length, of at most ``tokens``
        with padding unless a single entity has more."""
        lengths, counts = self.lengths, np.diff(self.offsets)
        longest = np.maximum.reduceat(lengths, self.offsets[:-1])
        order = generator.permutation(self.entities)
        pool = POOL * max(1, int(tokens // (counts * longest).mean()))
        found: list[list[int]] = []
        for start in range(0, len(order), pool):
            part = order[start : start + pool]
            current: list[int] = []
            size = 0
            for entity in part[np.argsort(longest[part], kind="stable")].tolist():
                if current and (size + counts[entity]) * longest[entity] > tokens:
                    found.append(current)
                    current, size = [], 0
                current.append(entity)
                size += int(counts[entity])
            found.append(current)
        return [self._rows(found[place]) for place in generator.permutation(len(found))]

    def sample(self, share: float, generator: np.random.Generator) -> TuningData:
        """A random ``share`` of the entities."""
        if share == 1.0:
            return self
        count = max(1, round(share * self.entities))
        entities = np.sort(generator.permutation(self.entities)[:count])
        rows = self._rows(entities.tolist())
        sizes = np.diff(self.offsets)[entities]
        return TuningData(
            [self.pairs[row] for row in rows],
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp),
            self.stances[rows],
            tuple(
                replace(one, units=one.units[rows], weights=one.weights[rows]) for one in self.heads
            ),
        )

    def _rows(self, entities: Sequence[int]) -> Places:
        spans = [np.arange(self.offsets[one], self.offsets[one + 1]) for one in entities]
        return np.concatenate(spans).astype(np.intp)


def tuning_data(
    train: Examples, validation: Examples, predicates: Sequence[str], stance: StanceReader
) -> TuningData:
    """On the entities of ``train``, which have the features of the untuned reader; the last are
    those of ``stance``. The validation entities among them, or else ``validation``, choose the
    penalty of the heads."""
    train, validation = (_stances_only(one) for one in (train, validation))
    kept = _kept_rows(train)
    owner = train.segments.owner[kept]
    offsets = np.append(np.flatnonzero(np.diff(owner, prepend=-1)), len(kept)).astype(np.intp)
    requests = item_requests(train.dataset)
    return TuningData(
        stance.token_pairs([requests[row] for row in kept]),
        offsets,
        train.features[kept, HIDDEN_WIDTH:],
        tuple(_head(train, validation, name, kept) for name in predicates),
    )


def _stances_only(examples: Examples) -> Examples:
    return replace(examples, features=examples.features[:, -STANCE_WIDTH:])


def _kept_rows(train: Examples) -> Places:
    """Items with a claim of labelled entities; of an entity with many, the most relevant ones."""
    weights = LinearTrainer(train, HIDDEN_WIDTH).item_weights(BY_RELEVANCE)
    kept: list[Places] = []
    for place, entity in enumerate(train.dataset):
        if entity.claim is None or not (entity.labels or any(i.labels for i in entity.evidence)):
            continue
        rows = np.arange(*train.dataset.offsets[place : place + 2])
        best = np.argsort(-weights[rows], kind="stable")[:MOST_ITEMS]
        kept.append(rows[np.sort(best)])
    return np.concatenate([np.empty(0, np.intp), *kept]).astype(np.intp)


def _head(train: Examples, validation: Examples, name: str, kept: Places) -> TuningHead:
    trainer = LinearTrainer(train, HIDDEN_WIDTH)
    source = _source(trainer.sources(name))
    rows = trainer.rows(name, source)
    penalty = _penalty(train, validation, name, source)
    values = len(rows.head.values)
    fitted = fit_regression(rows.rows, penalty, SoftmaxRegression.empty(STANCE_WIDTH, values))
    units = np.full(len(train.features), -1, np.intp)
    if source in (WHOLE, BY_RELEVANCE):
        weights = _rescaled(trainer.item_weights(source), train, kept)
        of_entity = np.full(len(train.dataset), -1, np.intp)
        of_entity[rows.owners] = np.arange(len(rows.owners))
        units = of_entity[train.segments.owner]
    else:
        weights = np.ones(len(train.features))
        units[trainer.places(name, source)] = np.arange(len(rows.owners))
    offsets = np.broadcast_to(rows.rows.offsets, (len(rows.owners), values))
    return TuningHead(
        name,
        units[kept],
        weights[kept].astype(np.float32),
        np.asarray(rows.rows.labels, np.intp),
        rows.rows.weights.astype(np.float32),
        offsets.astype(np.float32),
        fitted.unscaled(trainer.scaling),
    )


def _penalty(train: Examples, validation: Examples, name: str, source: LabelSource) -> float:
    """Chosen on validation entities by fits to training entities. Those of ``train`` are taken if
    it has any: nothing about other entities may reach a reader that will read them."""
    own, held_out = train.split("train"), train.split("validation")
    if held_out is None or own is None:
        own, held_out = train, validation
    fitted = LinearTrainer(own, HIDDEN_WIDTH)
    if source not in fitted.sources(name):
        return DEFAULT_PENALTY
    search = LinearSearch(held_out, [fitted], [np.arange(len(held_out.dataset))])
    return search.best_settings(name, [source]).settings.penalty


def _source(offered: Sequence[LabelSource]) -> LabelSource:
    for source in ("items", BY_RELEVANCE):
        if source in offered:
            return source
    return "entities"


def _rescaled(weights: FloatArray, train: Examples, kept: Places) -> FloatArray:
    """Weights of the ``kept`` items, which count as much in all as those of all items."""
    segments = train.segments
    present = np.zeros(len(weights))
    present[kept] = weights[kept]
    before, after = segments.sum(weights), segments.sum(present)
    scale = np.divide(before, after, out=np.ones_like(before), where=after > 0)
    return np.asarray(weights * scale[segments.owner])
