"""Training on so few entities that none can be spared.

Folds take the place of splits: models are trained without each fold in turn, and what they say of
the items they did not see tells how to train, which reading to take, what to fit and how far the
result can be trusted. The model itself is then trained on everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpf.calibration import CalibrationFit, answered, fit_robust
from lpf.model.card import OUT_OF_FOLD
from lpf.model.runtime import Runtime
from lpf.training.assembling import Trained, make_card
from lpf.training.cautions import (
    few_cautions,
    prior_cautions,
    reading_cautions,
    size_cautions,
    unlearned_cautions,
)
from lpf.training.evaluation import Scores, score
from lpf.training.examples import Examples
from lpf.training.few_networks import FewNetworks, OutOfFold
from lpf.training.fitting import SUBSETS_SEED, Fitted, calibrated, labelled_factors
from lpf.training.folding import Folded
from lpf.training.linear import LinearLearner, LinearRecipe
from lpf.training.linear_choice import LinearTrials
from lpf.training.reading_choice import ReadingChoice, mean_nll
from lpf.training.search import Watcher
from lpf.training.settings import TrainingConfig, check_seeds
from lpf.training.trainer import Telling
from lpf.types import FloatArray

# Below it, a seventh of the entities is too few to stop by, to fit on or to judge by.
FEWEST_FOR_SPLITS = 60


def train_few(
    examples: Examples,
    reader_id: str,
    predicates: tuple[str, ...],
    config: TrainingConfig,
    seeds: Sequence[int],
    watcher: Watcher | None = None,
    tell: Telling | None = None,
) -> Trained:
    """A model of the first ``config.members`` seeds, without an aggregator, which so few entities
    cannot train. Nothing is kept of it on the way: it takes seconds."""
    say = tell or (lambda what: None)
    chosen = check_seeds(seeds)[: config.members]
    few = _Few(Folded(examples, predicates), reader_id, config, chosen)
    networks = FewNetworks(few.folded, reader_id, config, chosen)
    say("training on folds")
    course = networks.out_of_fold(watcher)
    unseen = few.judged(course.potential, course.shares)
    if config.reading == "networks":
        say("training on everything")
        return few.finished(networks.final(course.epochs), unseen, course, None)
    say("comparing with a linear reading")
    linear, read, recipes = few.linear()
    choice = ReadingChoice(_mean_nll(unseen), _mean_nll(read), recipes)
    if choice.is_linear:
        return few.finished(linear, read, course, choice)
    say("training on everything")
    return few.finished(networks.final(course.epochs), unseen, course, choice)


@dataclass(frozen=True)
class _Judged:
    """Of entities that were not learned from: what was fitted to what was said of their items, and
    how good answers are with what was fitted to others of them."""

    fit: CalibrationFit
    scores: Scores


@dataclass(frozen=True)
class _Few:
    folded: Folded
    reader_id: str
    config: TrainingConfig
    seeds: tuple[int, ...]

    def linear(self) -> tuple[Runtime, dict[str, _Judged], dict[str, LinearRecipe]]:
        """The linear reading of everything, and how those without each fold did."""
        folded = self.folded
        learners = [LinearLearner(folded.examples.select(places)) for places in folded.kept]
        trials = LinearTrials(folded.examples, learners, folded.held)
        recipes = {name: trials.recipe(name) for name in folded.predicates}
        whole = LinearLearner(folded.examples).runtime(recipes, self.seeds, self.reader_id)
        shares = {head.name: np.array(head.training_shares) for head in whole.config.predicates}
        said = trials.potential(recipes, self.seeds, self.reader_id)
        return whole, self.judged(said, shares), recipes

    def judged(
        self, potential: Mapping[str, FloatArray], shares: Mapping[str, FloatArray]
    ) -> dict[str, _Judged]:
        """``potential`` is what was said of items that were not learned from, by predicate."""
        return {
            name: self._judged(name, potential[name], shares[name])
            for name in self.folded.predicates
        }

    def finished(
        self,
        runtime: Runtime,
        unseen: Mapping[str, _Judged],
        course: OutOfFold,
        choice: ReadingChoice | None,
    ) -> Trained:
        fitted = {name: Fitted(one.fit, None) for name, one in unseen.items()}
        runtime = calibrated(runtime, fitted)
        scores = {OUT_OF_FOLD: {name: one.scores for name, one in unseen.items()}}
        cautions = (
            *unlearned_cautions(scores),
            *reading_cautions(choice),
            *self._cautions(scores[OUT_OF_FOLD]),
        )
        dataset = self.folded.examples.dataset
        card = make_card(
            dataset.name,
            dataset,
            self.config,
            course.histories,
            runtime,
            fitted,
            scores,
            cautions,
            choice,
        )
        return Trained(
            runtime.config,
            runtime.tensors,
            card,
            course.histories,
            (),
            fitted,
            scores,
            cautions,
            choice,
        )

    def _judged(self, name: str, potential: FloatArray, shares: FloatArray) -> _Judged:
        examples = self.folded.examples
        predicate, labels = examples.dataset.schema[name], examples.dataset.labels(name)
        places = np.flatnonzero(labels >= 0)
        data = labelled_factors(
            examples.select(places), predicate, potential[examples.rows(places)], shares
        )
        fit = fit_robust(data, generator=np.random.default_rng(SUBSETS_SEED))
        # A handful is not enough to fit to others than those judged.
        answers = answered(data, fit.parameters) if fit.held_out is None else fit.held_out
        return _Judged(fit, score(answers, labels[places], predicate.prior))

    def _cautions(self, scores: Mapping[str, Scores]) -> list[str]:
        dataset = self.folded.examples.dataset
        cautions = list(dataset.exclusions)
        for name, found in scores.items():
            labels = dataset.labels(name)
            cautions += few_cautions(name, found)
            cautions += size_cautions(name, found.entities)
            cautions += prior_cautions(dataset.schema[name], labels[labels >= 0])
        return cautions


def _mean_nll(unseen: Mapping[str, _Judged]) -> float:
    return mean_nll([one.fit for one in unseen.values()])
