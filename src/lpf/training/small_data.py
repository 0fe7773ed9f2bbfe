"""Training on a data set that is too small to hold entities back.

Models are trained without each fold in turn. Their answers about the fold choose the number of
epochs and the model (networks or linear), fit its parameters and give its scores. The model itself
is then trained on everything.

Where verdicts can be given without labels, a few labels must not make answers worse. So they are
kept unless a fit starting from them is better by two standard errors, and that one unless any other
model is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from lpf.combine.calibration import CalibrationFit, fit_robust, robust_answers
from lpf.combine.robust import RobustParameters
from lpf.metrics import nll
from lpf.model.config import PredicateHead
from lpf.model.held_out import HeldOutAnswers
from lpf.model.runtime import Runtime
from lpf.reading.pair import stance_start, text_part
from lpf.training.assembly import Trained, finish
from lpf.training.config import TrainingConfig, check_seeds
from lpf.training.examples import Examples
from lpf.training.fitting import (
    SUBSETS_SEED,
    FittedParameters,
    Scores,
    class_shares,
    familiarity_of_texts,
    item_factors,
    labelled_entities,
    labelled_factors,
    score,
)
from lpf.training.folds import FoldNetworks, Folds
from lpf.training.held_out import held_out_answers
from lpf.training.linear import (
    VERDICTS,
    HeldOutFactors,
    LabelSource,
    LinearSearch,
    LinearSettings,
    LinearTrainer,
)
from lpf.training.model_choice import ModelChoice, mean_nll
from lpf.training.stage_one import EpochCallback
from lpf.training.threads import one_thread
from lpf.training.trainer import StatusCallback
from lpf.types import FloatArray

# With fewer, a split has too few entities for early stopping, fitting or scoring.
FEWEST_FOR_SPLITS = 60
STANDARD_ERRORS = 2.0  # by which a model must be better than one that needs fewer labels


@dataclass(frozen=True)
class FoldResult:
    """Parameters fitted on the out-of-fold factors of one predicate, the scores of the answers, and
    the answers. The parameters of an answer were fitted without its entity, if there are enough
    entities."""

    fit: CalibrationFit
    scores: Scores
    held_out: HeldOutAnswers | None = None


@one_thread()
def train_small(
    examples: Examples,
    reader_id: str,
    predicates: tuple[str, ...],
    config: TrainingConfig,
    seeds: Sequence[int],
    *,
    on_epoch: EpochCallback | None = None,
    on_status: StatusCallback | None = None,
) -> Trained:
    """Train a model whose members are the first ``config.members`` seeds, without a learned
    aggregator, which needs more entities. Nothing is stored: it takes seconds."""
    status = on_status or (lambda step: None)
    seeds = check_seeds(seeds)[: config.members]
    folds = Folds(examples, predicates)
    networks = FoldNetworks(folds, reader_id, config, seeds)
    status("training on folds")
    out_of_fold = networks.train_out_of_fold(on_epoch)
    familiarity = _familiarity(folds, reader_id) if config.unfamiliar == "less" else None
    schema = examples.dataset.schema
    heads = {
        name: PredicateHead(name, schema[name].values, tuple(out_of_fold.shares[name]))
        for name in predicates
    }
    factors = {name: HeldOutFactors(one, None) for name, one in out_of_fold.factors.items()}
    results = _fold_results(folds, factors, heads, familiarity)
    choice: ModelChoice | None = None
    runtime: Runtime | None = None
    if config.model == "best":
        status("comparing with a linear model")
        linear = _train_linear(folds, reader_id, seeds, familiarity)
        choice = ModelChoice(_mean_nll(results), _mean_nll(linear.results), linear.settings)
        if choice.is_linear:
            runtime, results = linear.runtime, linear.results
        verdicts = _from_verdicts(folds, reader_id, seeds)
        if verdicts is not None and not is_better(results, verdicts.results):
            runtime, results = verdicts.runtime, verdicts.results
            choice = replace(
                choice,
                linear=verdicts.settings,
                verdicts_nll=_mean_nll(verdicts.results),
                keeps_verdicts=verdicts.is_unfitted,
            )
    if runtime is None:
        status("training on everything")
        runtime = networks.train_on_everything(out_of_fold.epochs)
    return finish(
        runtime,
        examples,
        predicates,
        config,
        histories=out_of_fold.histories,
        fitted={
            name: FittedParameters(one.fit, None, held_out=one.held_out)
            for name, one in results.items()
        },
        fold_scores={name: one.scores for name, one in results.items()},
        choice=choice,
    )


class _LinearResult(NamedTuple):
    """A linear model trained on everything, its out-of-fold results, and its settings.
    ``is_unfitted`` if it is used as it was given."""

    runtime: Runtime
    results: dict[str, FoldResult]
    settings: Mapping[str, LinearSettings]
    is_unfitted: bool = False


def _train_linear(
    folds: Folds,
    reader_id: str,
    seeds: tuple[int, ...],
    familiarity: FloatArray | None,
    sources: Collection[LabelSource] = (),
) -> _LinearResult:
    """Fitted to one of ``sources`` (none given: to any)."""
    examples = folds.examples
    stance = stance_start(reader_id, examples.features.shape[1])
    trainers = [LinearTrainer(examples.select(places), stance) for places in folds.training]
    search = LinearSearch(examples, trainers, folds.held_out)
    settings = {name: search.best_settings(name, sources).settings for name in folds.predicates}
    runtime = LinearTrainer(examples, stance).runtime(settings, seeds, reader_id)
    heads = {head.name: head for head in runtime.config.predicates}
    factors = search.factors(settings, seeds, reader_id)
    return _LinearResult(runtime, _fold_results(folds, factors, heads, familiarity), settings)


def _from_verdicts(folds: Folds, reader_id: str, seeds: tuple[int, ...]) -> _LinearResult | None:
    """The verdicts without labels or, if that is better beyond chance, a fit starting from them.
    None unless every predicate has them. Where nothing is fitted, there is nothing to hold out."""
    examples = folds.examples
    trainer = LinearTrainer(examples, stance_start(reader_id, examples.features.shape[1]))
    if any(trainer.verdicts(name) is None for name in folds.predicates):
        return None
    settings = {name: LinearSettings(VERDICTS, inf) for name in folds.predicates}
    runtime = trainer.runtime(settings, seeds, reader_id)
    results = {name: unfitted_result(runtime, examples, name) for name in folds.predicates}
    fitted = _train_linear(folds, reader_id, seeds, None, [VERDICTS])
    given = _LinearResult(runtime, results, settings, is_unfitted=True)
    return fitted if is_better(fitted.results, results) else given


def unfitted_result(runtime: Runtime, examples: Examples, name: str) -> FoldResult:
    """The result of a model that is used as it is."""
    known = labelled_entities(examples, name)
    predicate, labels = examples.dataset.schema[name], known.dataset.labels(name)
    factors, head = item_factors(runtime, name, known), runtime.config.head(name)
    data = labelled_factors(known, predicate, factors, head)
    parameters = RobustParameters(rho=1.0, epsilon=0.0, fitted=True)
    answers = robust_answers(data, parameters)
    loss = nll(answers, labels)
    fit = CalibrationFit(
        parameters, len(labels), loss, loss, loss, converged=True, fitted="nothing",
        held_out=answers,
    )  # fmt: skip
    of_entities = class_shares(labels, len(predicate.values))
    held_out = held_out_answers("shared", answers, known.dataset, name)
    return FoldResult(fit, score(answers, known.dataset, predicate, of_entities), held_out)


def is_better(results: Mapping[str, FoldResult], rival: Mapping[str, FoldResult]) -> bool:
    """True if the answers about held-out entities are better by more than two standard errors. The
    best of many fits looks good by luck: with one, it was often worse elsewhere."""
    gains = np.array(
        [
            rival[name].scores.losses[entity] - loss
            for name, one in results.items()
            for entity, loss in one.scores.losses.items()
        ]
    )
    return bool(gains.mean() > STANDARD_ERRORS * gains.std() / np.sqrt(len(gains)))


def _familiarity(folds: Folds, reader_id: str) -> FloatArray | None:
    """How like the texts outside of its fold each item is, [N]; None if they are too few."""
    examples = folds.examples
    part = text_part(reader_id, examples.features.shape[1])
    weights: FloatArray | None = None
    for training, held_out in zip(folds.training, folds.held_out, strict=True):
        known = familiarity_of_texts(examples.select(training), part, everything=True)
        if known is not None:
            weights = np.ones(len(examples.features)) if weights is None else weights
            rows = examples.rows(held_out)
            weights[rows] = known(examples.features[rows])
    return weights


def _fold_results(
    folds: Folds,
    factors: Mapping[str, HeldOutFactors],
    heads: Mapping[str, PredicateHead],
    familiarity: FloatArray | None,
) -> dict[str, FoldResult]:
    """Results by predicate; ``factors`` and ``familiarity`` are those of models not trained on the
    item's fold."""
    return {
        name: _fold_result(
            folds.examples,
            factors[name],
            heads[name],
            # Verdicts take a text of any kind at its full weight.
            None if heads[name].silent else familiarity,
        )
        for name in folds.predicates
    }


def _fold_result(
    examples: Examples,
    found: HeldOutFactors,
    head: PredicateHead,
    familiarity: FloatArray | None,
) -> FoldResult:
    predicate, labels = examples.dataset.schema[head.name], examples.dataset.labels(head.name)
    places = np.flatnonzero(labels >= 0)
    known = examples.select(places)
    rows = examples.rows(places)
    weights = None if familiarity is None else familiarity[rows]
    ratios = None if found.ratios is None else found.ratios[places]
    data = labelled_factors(known, predicate, found.factors[rows], head, weights, ratios)
    fit = fit_robust(data, generator=np.random.default_rng(SUBSETS_SEED))
    # With very few entities there is no cross-fitting; the fit on all of them answers instead.
    answers = robust_answers(data, fit.parameters) if fit.held_out is None else fit.held_out
    # Folds have every value in about the same shares, so those of all entities are theirs.
    of_entities = class_shares(labels, len(predicate.values))
    held_out = held_out_answers("shared", answers, known.dataset, head.name)
    return FoldResult(fit, score(answers, known.dataset, predicate, of_entities), held_out)


def _mean_nll(results: Mapping[str, FoldResult]) -> float:
    return mean_nll([one.fit for one in results.values()])
