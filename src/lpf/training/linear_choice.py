"""How a linear reading reads: whose labels, and how strongly penalised, as entities tell that the
regression did not see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpf.calibration import fit_robust
from lpf.factors.channel import channel_of, through
from lpf.factors.tempering import softmax
from lpf.training.examples import Examples
from lpf.training.fitting import SUBSETS_SEED, item_factors, labelled_factors
from lpf.training.linear import LinearLearner, LinearRecipe, LinearRows, Places, Source
from lpf.training.softmax_regression import fit_path
from lpf.types import Float32Array, FloatArray

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
        yield penalty, through(channel_of(one.head), softmax(regression.logits(scaled)))


def _is_past_the_best(losses: Sequence[float]) -> bool:
    before, last = losses[:-MOST_WORSE], losses[-MOST_WORSE:]
    return bool(before) and min(last) > min(before)
