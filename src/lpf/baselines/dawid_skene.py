"""Dawid and Skene (1979): each source has a confusion matrix, estimated without labels.

Items vote through the deterministic classifier. Class shares and matrices are estimated from the
votes on training and validation entities by expectation-maximisation, and stay fixed afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.baselines.interface import FittedMethod, value_count
from lpf.baselines.item_models import ItemModel, ItemModels
from lpf.combine import Segments
from lpf.factors.distributions import softmax
from lpf.training.examples import Examples
from lpf.types import FloatArray

MAX_ROUNDS = 200
TOLERANCE = 1e-6
# Votes that a source's matrix borrows from the matrix of all sources: a source with few votes is
# treated as average, and no entry is ever zero.
BORROWED = 10.0


@dataclass(frozen=True)
class Votes:
    """Votes of N items: the value, the worker (a number below W, or W for an unknown one), and the
    entity of each item."""

    values: NDArray[np.intp]
    workers: NDArray[np.intp]
    segments: Segments


@dataclass(frozen=True)
class Confusions:
    """log P(y) [V] and log P(vote | y, worker) [W + 1, vote, y]; the last matrix is that of all
    workers together, used for unknown ones."""

    log_shares: FloatArray
    log_chances: FloatArray

    def posterior(self, votes: Votes) -> FloatArray:
        """P(y | votes), [E, V]."""
        log_votes = self.log_chances[votes.workers, votes.values]
        return softmax(self.log_shares + votes.segments.sum(log_votes))


def fit_confusions(
    votes: Votes, workers: int, values: int, *, borrowed: float = BORROWED
) -> Confusions:
    """Expectation-maximisation from the shares of the votes, until posteriors stop changing. With
    ``borrowed=0``, a worker's matrix comes from its own votes only, as in Dawid and Skene; a value
    that it never votes for then has log probability minus infinity."""
    counted = votes.segments.sum(np.eye(values)[votes.values])
    posterior = counted / counted.sum(axis=1, keepdims=True)
    for _ in range(MAX_ROUNDS):
        confusions = _maximised(votes, posterior, workers, borrowed)
        before, posterior = posterior, confusions.posterior(votes)
        if np.abs(posterior - before).max() < TOLERANCE:
            break
    return confusions


def _maximised(votes: Votes, posterior: FloatArray, workers: int, borrowed: float) -> Confusions:
    values = posterior.shape[1]
    counts = np.zeros((workers + 1, values, values))
    np.add.at(counts, (votes.workers, votes.values), posterior[votes.segments.owner])
    pooled = counts.sum(axis=0) + 1.0
    pooled /= pooled.sum(axis=0)
    chances = counts + borrowed * pooled
    chances[-1] = pooled  # for unknown workers only
    shares = posterior.sum(axis=0) + 1.0
    return Confusions(
        np.log(shares / shares.sum()), np.log(chances / chances.sum(axis=1, keepdims=True))
    )


@dataclass(frozen=True)
class FittedDawidSkene:
    """A fitted ``DawidSkene``. ``sources`` numbers the sources seen in training."""

    items: ItemModel
    sources: Mapping[str, int]
    confusions: Confusions

    def predict_proba(self, examples: Examples) -> FloatArray:
        voted = self.items.probabilities(examples).argmax(axis=1)
        return self.confusions.posterior(
            Votes(voted, _workers(examples, self.sources), examples.segments)
        )


@dataclass(frozen=True)
class DawidSkene:
    """Training items vote through classifiers that have not seen their entity; otherwise every
    source would look better than it is."""

    name: str
    items: ItemModels
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        classifier = self.items.model(train, validation, predicate, seed).best()
        unseen = self.items.out_of_fold(train, validation, predicate, seed)
        outputs = np.concatenate([unseen, classifier.probabilities(validation)])
        sources = _sources(train, validation)
        workers = np.concatenate([_workers(part, sources) for part in (train, validation)])
        counts = np.concatenate([part.segments.counts for part in (train, validation)])
        votes = Votes(outputs.argmax(axis=1), workers, Segments.of_counts(counts))
        fitted = fit_confusions(votes, len(sources), value_count(train, predicate))
        return FittedDawidSkene(classifier, sources, fitted)


def _sources(*parts: Examples) -> dict[str, int]:
    """A number for every named source."""
    seen = {item.source for part in parts for item in part.dataset.items}
    named = sorted(source for source in seen if source is not None)
    return {source: number for number, source in enumerate(named)}


def _workers(examples: Examples, sources: Mapping[str, int]) -> NDArray[np.intp]:
    """The number of each item's source; the last one if it is unknown."""
    unknown = len(sources)
    return np.array(
        [
            unknown if item.source is None else sources.get(item.source, unknown)
            for item in examples.dataset.items
        ],
        dtype=np.intp,
    )
