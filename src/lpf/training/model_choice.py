"""Which model answers: the networks or a linear model, without words or with them.

All are fitted to training entities, and validation entities decide between networks and linear
model. A hundred validation entities choose the many settings of a linear model badly: if there are
few, folds of training and validation entities choose them. What is said about an entity outside of
its fold then takes the place of what would be said about a validation entity: parameters are fitted
to that, and scores are computed from it.

Either way the linear model that answers is fitted to training and validation entities.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lpf.combine.calibration import (
    CalibrationFit,
    LabelledFactors,
    choose_threshold,
    fit_robust,
    robust_answers,
)
from lpf.datasets import Split, grouped_folds
from lpf.errors import ConfigError, DatasetError
from lpf.metrics import log_losses
from lpf.metrics.groups import few_groups, standard_error
from lpf.model.runtime import Runtime
from lpf.reading.fitted_words import FittedWords
from lpf.reading.pair import is_pair, stance_start
from lpf.reading.tuned import NAME as TUNED
from lpf.training.examples import Examples
from lpf.training.fitting import (
    SUBSETS_SEED,
    FittedParameters,
    Scores,
    class_shares,
    labelled_factors,
    robust_fit,
    score,
    shared_answers,
    validation_answers,
)
from lpf.training.held_out import is_learned
from lpf.training.lexical import fit_words, with_logits
from lpf.training.linear import (
    VERDICTS,
    HeldOutFactors,
    LabelSource,
    LinearSearch,
    LinearSettings,
    LinearTrainer,
    Places,
)
from lpf.types import FloatArray

# With fewer validation entities, folds of training and validation entities choose the settings.
ENOUGH_VALIDATION = 1_000
FOLDS, FOLDS_SEED = 5, 0
SOURCES_IN_FOLDS = 2  # the best on validation entities; folds choose from these


@dataclass(frozen=True)
class ModelChoice:
    """Held-out NLL of networks and linear model, each a mean over the predicates (see
    ``mean_nll``), and the linear model's settings by predicate. The lower NLL wins, but networks
    only if the difference is above its standard error ``networks_error``: the linear model is
    simpler, and fitted to more entities in the end. Networks that were not trained have no NLL.

    ``has_words`` is True if the linear model has the logits of words among its features. The one
    that does not (or does) was worse by ``words_gain`` in NLL where settings are chosen; None if
    words could not be fitted. ``verdicts_nll`` is that of the verdicts without labels, or of a fit
    starting from them, if it replaced the better of the two, which was not better by two standard
    errors; ``linear`` then has its settings, and ``keeps_verdicts`` is True if nothing was fitted.
    """

    networks_nll: float | None
    linear_nll: float
    linear: Mapping[str, LinearSettings]
    has_words: bool = False
    words_gain: float | None = None
    verdicts_nll: float | None = None
    keeps_verdicts: bool = False
    networks_error: float = 0.0

    @property
    def is_linear(self) -> bool:
        return (
            self.verdicts_nll is not None
            or self.networks_nll is None
            or self.linear_nll - self.networks_nll < self.networks_error
            or self.linear_nll < self.networks_nll
        )

    def describe(self) -> str:
        """Which model was chosen and why, in one sentence."""
        if self.networks_nll is None:
            return self._with_settings(f"{self._linear}, held-out NLL {self.linear_nll:.4f}")
        if self.verdicts_nll is not None:
            chosen = (
                "verdicts without labels"
                if self.keeps_verdicts
                else "linear, starting from the verdicts without labels"
            )
            others = (
                f"networks {self.networks_nll:.4f} and linear model {self.linear_nll:.4f} are not "
                "better by two standard errors"
            )
            settings = [one.describe(name) for name, one in self.linear.items()]
            return "; ".join([f"{chosen}, held-out NLL {self.verdicts_nll:.4f}", others, *settings])
        if not self.is_linear:
            return (
                f"networks, held-out NLL {self.networks_nll:.4f} against {self.linear_nll:.4f} of "
                f"the {self._linear}"
            )
        sentence = (
            f"{self._linear}, held-out NLL {self.linear_nll:.4f} against {self.networks_nll:.4f} "
            "of the networks"
        )
        if self.networks_nll < self.linear_nll:
            sentence += f", which is less than a standard error ({self.networks_error:.4f}) lower"
        return self._with_settings(sentence)

    @property
    def _linear(self) -> str:
        return "linear with words" if self.has_words else "linear"

    def _with_settings(self, sentence: str) -> str:
        if self.words_gain is not None:
            without = "without" if self.has_words else "with"
            sentence += f", and lower by {self.words_gain:.4f} than {without} words"
        return "; ".join([sentence, *(one.describe(name) for name, one in self.linear.items())])


@dataclass(frozen=True)
class Refit:
    """A linear model fitted to the training and validation entities, which has the settings and
    parameters of one that was fitted to training entities."""

    runtime: Runtime


@dataclass(frozen=True)
class RefitInFolds(Refit):
    """One whose settings and parameters come from folds of the entities ``known``. ``factors``, by
    predicate, are those of their items from fits without the fold of their entity."""

    known: Examples
    factors: Mapping[str, HeldOutFactors]

    @property
    def nll(self) -> float:
        """Mean over the predicates of the NLL of validation entities, whose fold was not fitted
        to."""
        losses = [self._scores(name, self._robust(name)).nll for name in self.factors]
        return sum(losses) / len(losses)

    def fitted(self, before: Mapping[str, FittedParameters]) -> dict[str, FittedParameters]:
        """Parameters fitted to the factors of held-out entities; the temperatures of LPF-Learned
        stay as they were ``before``."""
        return {name: self._fitted(name, one) for name, one in before.items()}

    def validation_scores(self, fitted: Mapping[str, FittedParameters]) -> dict[str, Scores]:
        """The scores of answers about validation entities, whose fold was not fitted to."""
        return {name: self._scores(name, one.robust) for name, one in fitted.items()}

    def _fitted(self, name: str, before: FittedParameters) -> FittedParameters:
        data, robust = self._data(name), self._robust(name)
        threshold = choose_threshold(data, robust.parameters, np.random.default_rng(SUBSETS_SEED))
        known = self.known.dataset.select(self._labelled(name).tolist())
        answers = shared_answers(robust, data, known, name)
        return replace(before, robust=robust, min_credibility=threshold, held_out=answers)

    def _robust(self, name: str) -> CalibrationFit:
        return fit_robust(self._data(name), generator=np.random.default_rng(SUBSETS_SEED))

    def known_losses(self, name: str) -> FloatArray:
        """The log losses of all entities labelled with the predicate, whose fold was not fitted to,
        [E]."""
        fit, data = self._robust(name), self._data(name)
        answers = robust_answers(data, fit.parameters) if fit.held_out is None else fit.held_out
        return log_losses(answers, data.labels)

    def held_out_answers(self, name: str) -> FloatArray:
        """Answers about the validation entities that are labelled with the predicate [E, V]."""
        return self._answers(name, self._robust(name))

    def _answers(self, name: str, fit: CalibrationFit) -> FloatArray:
        answers = fit.held_out
        if answers is None:
            answers = robust_answers(self._data(name), fit.parameters)
        dataset = self.known.dataset.select(self._labelled(name).tolist())
        return answers[dataset.positions("validation")]

    def _scores(self, name: str, fit: CalibrationFit) -> Scores:
        dataset = self.known.dataset.select(self._labelled(name).tolist())
        places = dataset.positions("validation")
        predicate, train = dataset.schema[name], dataset.labels(name)[dataset.positions("train")]
        shares = class_shares(train, len(predicate.values))
        held_out = dataset.select(places.tolist())
        return score(self._answers(name, fit), held_out, predicate, shares)

    def _labelled(self, name: str) -> Places:
        return np.flatnonzero(self.known.dataset.labels(name) >= 0)

    def _data(self, name: str) -> LabelledFactors:
        labelled = self._labelled(name)
        rows, held_out = self.known.rows(labelled), self.factors[name]
        return labelled_factors(
            self.known.select(labelled),
            self.known.dataset.schema[name],
            held_out.factors[rows],
            self.runtime.config.head(name),
            ratios=None if held_out.ratios is None else held_out.ratios[labelled],
        )


@dataclass(frozen=True)
class ChosenModel:
    """The better model, fitted to training entities. ``examples`` have the features that it takes,
    those of words included. ``refit`` is the model to use in its place, if there is one.
    ``seconds`` are those that linear models took, without folds."""

    runtime: Runtime
    choice: ModelChoice | None  # None if there are networks only
    examples: Examples
    refit: Refit | None = None
    seconds: float = 0.0

    @property
    def in_folds(self) -> RefitInFolds | None:
        return self.refit if isinstance(self.refit, RefitInFolds) else None

    def held_out_losses(self, predicates: Sequence[str]) -> FloatArray:
        """The log loss of each validation entity, predicate by predicate."""
        validation = _part(self.examples, "validation")
        found = []
        for name in predicates:
            labels = validation.dataset.labels(name)
            if self.in_folds is not None:
                answers = self.in_folds.held_out_answers(name)
            else:
                answers = validation_answers(
                    self.runtime, validation.dataset.schema[name], validation
                )
            found.append(log_losses(answers, labels[labels >= 0]))
        return np.concatenate(found)

    def known_losses(self, predicates: Sequence[str]) -> FloatArray:
        """The log loss of each training and validation entity, predicate by predicate, in folds."""
        assert self.in_folds is not None  # or this is not asked for
        return np.concatenate([self.in_folds.known_losses(name) for name in predicates])


@dataclass(frozen=True)
class _Linear:
    """The best linear model on features without words, or on those with them. ``search_nll`` is the
    mean over the predicates of the NLL that its settings were chosen by, in ``folds`` if there were
    few validation entities. ``gain`` is how far it is below that of the other one, if there is
    one."""

    runtime: Runtime
    settings: Mapping[str, LinearSettings]
    search_nll: float
    examples: Examples
    folds: LinearSearch | None
    seconds: float
    gain: float | None = None


def choose_model(networks: Runtime, examples: Examples, predicates: tuple[str, ...]) -> ChosenModel:
    """The better of ``networks`` and linear models with as many members."""
    linear = _LinearModels(networks.config.reader_id, networks.config.seeds, predicates)
    found = linear.chosen(examples)
    trained, folds, choice = ChosenModel(networks, None, examples), found.in_folds, found.choice
    assert choice is not None  # a linear model has settings
    if folds is None or few_groups([one.group_id for one in folds.known.dataset]) is None:
        gain = found.held_out_losses(predicates) - trained.held_out_losses(predicates)
        choice = replace(
            choice,
            networks_nll=_held_out_nll(networks, examples, predicates),
            networks_error=standard_error(gain, np.ones(len(gain)), None),
        )
    # Otherwise validation entities are of too few groups to choose networks.
    if choice.is_linear:
        return replace(found, choice=choice)
    return replace(trained, choice=choice, seconds=found.seconds)


def choose_linear(
    reader_id: str, seeds: Sequence[int], examples: Examples, predicates: tuple[str, ...]
) -> ChosenModel:
    """The best linear model on features of a tuned reader. Networks are not trained on them: it
    would take too long."""
    return _LinearModels(reader_id, tuple(seeds), predicates).chosen(examples)


@dataclass(frozen=True)
class _LinearModels:
    """Linear models with one member per seed, on features of one reader."""

    reader_id: str
    seeds: tuple[int, ...]
    predicates: tuple[str, ...]

    def chosen(self, examples: Examples) -> ChosenModel:
        """The best one, compared with no networks."""
        best = self._best_of_both(examples)
        known = _learned(self._read(examples))
        refit: Refit | None = None
        if best.folds is not None:
            runtime = self._fitted_to_all(known, best)
            factors = best.folds.factors(best.settings, self.seeds, self.reader_id)
            refit = RefitInFolds(runtime, best.folds.held_out, factors)
            nll = refit.nll
        else:
            nll = _held_out_nll(best.runtime, best.examples, self.predicates)
            if len(examples.dataset.positions("validation")) >= ENOUGH_VALIDATION:
                refit = Refit(self._fitted_to_all(known, best))
        has_words = best.runtime.words is not None
        choice = ModelChoice(None, nll, best.settings, has_words, best.gain)
        taken = replace(best.examples, dataset=examples.dataset)
        return ChosenModel(best.runtime, choice, taken, refit, best.seconds)

    def _best_of_both(self, examples: Examples) -> _Linear:
        """Without words or with them."""
        read = self._read(examples)
        tried = [self._best(read, None)]
        began = time.monotonic()
        fit = fit_words(_part(read, "train"), self.predicates)
        seconds = time.monotonic() - began
        if fit is not None:
            tried.append(self._best(fit.extend(read), fit.words))
        best, *others = sorted(tried, key=lambda one: one.search_nll)
        return replace(
            best,
            seconds=seconds + sum(one.seconds for one in tried),
            gain=others[0].search_nll - best.search_nll if others else None,
        )

    def _fitted_to_all(self, known: Examples, best: _Linear) -> Runtime:
        """``best`` fitted to training and validation entities, ``known``, which have no words."""
        trainer = self._trainer(known)
        if best.runtime.words is not None:
            fit = fit_words(known, tuple(best.settings))
            assert fit is not None  # some of these entities could be fitted to
            trainer = self._trainer(fit.extend_fitted(known), fit.words)
        return trainer.runtime(best.settings, self.seeds, self.reader_id)

    def _read(self, examples: Examples) -> Examples:
        """Words of claims are used only where the reader reads claims. What a fit has not seen gets
        no weight, so claims need not be left out of answers too."""
        return examples if is_pair(self.reader_id) else _without_claims(examples)

    def _trainer(self, examples: Examples, words: FittedWords | None = None) -> LinearTrainer:
        width = examples.features.shape[1] - (0 if words is None else words.width)
        return LinearTrainer(examples, stance_start(self.reader_id, width), words)

    def _best(self, examples: Examples, words: FittedWords | None) -> _Linear:
        began = time.monotonic()
        trainer = self._trainer(_part(examples, "train"), words)
        validation = _part(examples, "validation")
        search = LinearSearch(validation, [trainer], [np.arange(len(validation.dataset))])
        found = {
            name: search.best_by_source(name, self._sources(trainer, name))
            for name in self.predicates
        }
        seconds, folds = time.monotonic() - began, None
        if len(validation.dataset) < ENOUGH_VALIDATION:
            folds = self._fold_search(examples, words)
        best = {name: one[0] for name, one in found.items()}
        if folds is not None:
            best = {
                name: folds.best_settings(
                    name, [two.settings.source for two in one[:SOURCES_IN_FOLDS]]
                )
                for name, one in found.items()
            }
        settings = {name: one.settings for name, one in best.items()}
        began = time.monotonic()
        runtime = trainer.runtime(settings, self.seeds, self.reader_id)
        seconds += time.monotonic() - began
        nll = sum(one.nll for one in best.values()) / len(best)
        return _Linear(runtime, settings, nll, examples, folds, seconds)

    def _sources(self, trainer: LinearTrainer, name: str) -> tuple[LabelSource, ...]:
        """All but verdicts without labels, if the reader is tuned: their numbers are for its
        untuned stances."""
        offered = trainer.sources(name)
        return tuple(one for one in offered if one != VERDICTS or TUNED not in self.reader_id)

    def _fold_search(self, examples: Examples, words: FittedWords | None) -> LinearSearch | None:
        """Training and validation entities in folds, without the ``words`` that are fitted to some
        of them: words are fitted without each fold instead. None if a value's entities are of so
        few groups that a fold would have all of them."""
        known = _learned(examples)
        first, *others = self.predicates
        try:
            folds = grouped_folds(known.dataset, first, FOLDS, FOLDS_SEED, others)
        except (ConfigError, DatasetError):
            return None
        if words is None:
            trainers = [self._trainer(one) for one in _outside(known, folds)]
            return LinearSearch(known, trainers, folds)
        plain = replace(known, features=known.features[:, : -words.width])
        features, trainers = known.features.copy(), []
        for places, part in zip(folds, _outside(plain, folds), strict=True):
            fit = fit_words(part, self.predicates)
            if fit is None:
                return None
            features[known.rows(places)] = with_logits(plain.select(places), fit.words).features
            trainers.append(self._trainer(fit.extend_fitted(part), fit.words))
        return LinearSearch(replace(known, features=features), trainers, folds)


def _without_claims(examples: Examples) -> Examples:
    dataset = examples.dataset
    entities = tuple(replace(entity, claim=None) for entity in dataset)
    return replace(examples, dataset=replace(dataset, entities=entities))


def _learned(examples: Examples) -> Examples:
    return examples.select(np.flatnonzero([is_learned(entity) for entity in examples.dataset]))


def _outside(examples: Examples, folds: Sequence[Places]) -> Iterator[Examples]:
    everyone = np.arange(len(examples.dataset))
    return (examples.select(np.setdiff1d(everyone, places)) for places in folds)


def _held_out_nll(runtime: Runtime, examples: Examples, predicates: tuple[str, ...]) -> float:
    validation = _part(examples, "validation")
    schema = validation.dataset.schema
    return mean_nll([robust_fit(runtime, schema[name], validation) for name in predicates])


def _part(examples: Examples, split: Split) -> Examples:
    part = examples.split(split)
    assert part is not None  # a data set without it was refused
    return part


def mean_nll(fits: Sequence[CalibrationFit]) -> float:
    """Mean over the predicates of the NLL after the fit; on entities that the fit did not see, if
    there are so few that it was cross-fitted."""
    losses = [
        one.nll_after if one.nll_cross_fitted is None else one.nll_cross_fitted for one in fits
    ]
    return sum(losses) / len(losses)
