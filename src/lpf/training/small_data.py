"""Training on a data set that is too small to hold entities back.

Models are trained without each fold in turn. Their answers about the fold choose the number of
epochs and the model (networks or linear), fit its parameters and give its scores. The model itself
is then trained on everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpf.combine.calibration import CalibrationFit, fit_robust, robust_answers
from lpf.model.config import PredicateHead
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
    labelled_factors,
    score,
)
from lpf.training.folds import FoldNetworks, Folds
from lpf.training.linear import LinearSearch, LinearSettings, LinearTrainer
from lpf.training.model_choice import ModelChoice, mean_nll
from lpf.training.stage_one import EpochCallback
from lpf.training.threads import one_thread
from lpf.training.trainer import StatusCallback
from lpf.types import FloatArray

# With fewer, a split has too few entities for early stopping, fitting or scoring.
FEWEST_FOR_SPLITS = 60


@dataclass(frozen=True)
class FoldResult:
    """Parameters fitted on the out-of-fold factors of one predicate, and the scores of the answers.
    The parameters of an answer were fitted without its entity, if there are enough entities."""

    fit: CalibrationFit
    scores: Scores


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
    results = _fold_results(folds, out_of_fold.factors, heads, familiarity)
    choice: ModelChoice | None = None
    runtime: Runtime | None = None
    if config.model == "best":
        status("comparing with a linear model")
        linear, linear_results, settings = _train_linear(folds, reader_id, seeds, familiarity)
        choice = ModelChoice(_mean_nll(results), _mean_nll(linear_results), settings)
        if choice.is_linear:
            runtime, results = linear, linear_results
    if runtime is None:
        status("training on everything")
        runtime = networks.train_on_everything(out_of_fold.epochs)
    return finish(
        runtime,
        examples,
        predicates,
        config,
        histories=out_of_fold.histories,
        fitted={name: FittedParameters(one.fit, None) for name, one in results.items()},
        fold_scores={name: one.scores for name, one in results.items()},
        choice=choice,
    )


def _train_linear(
    folds: Folds, reader_id: str, seeds: tuple[int, ...], familiarity: FloatArray | None
) -> tuple[Runtime, dict[str, FoldResult], dict[str, LinearSettings]]:
    """A linear model trained on everything, the out-of-fold results, and its settings."""
    examples = folds.examples
    stance = stance_start(reader_id, examples.features.shape[1])
    trainers = [LinearTrainer(examples.select(places), stance) for places in folds.training]
    search = LinearSearch(examples, trainers, folds.held_out)
    settings = {name: search.best_settings(name).settings for name in folds.predicates}
    runtime = LinearTrainer(examples, stance).runtime(settings, seeds, reader_id)
    heads = {head.name: head for head in runtime.config.predicates}
    factors = search.factors(settings, seeds, reader_id)
    return runtime, _fold_results(folds, factors, heads, familiarity), settings


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
    factors: Mapping[str, FloatArray],
    heads: Mapping[str, PredicateHead],
    familiarity: FloatArray | None,
) -> dict[str, FoldResult]:
    """Results by predicate; ``factors`` and ``familiarity`` are those of models not trained on the
    item's fold."""
    return {
        name: _fold_result(folds.examples, factors[name], heads[name], familiarity)
        for name in folds.predicates
    }


def _fold_result(
    examples: Examples,
    factors: FloatArray,
    head: PredicateHead,
    familiarity: FloatArray | None,
) -> FoldResult:
    predicate, labels = examples.dataset.schema[head.name], examples.dataset.labels(head.name)
    places = np.flatnonzero(labels >= 0)
    known = examples.select(places)
    rows = examples.rows(places)
    weights = None if familiarity is None else familiarity[rows]
    data = labelled_factors(known, predicate, factors[rows], head, weights)
    fit = fit_robust(data, generator=np.random.default_rng(SUBSETS_SEED))
    # With very few entities there is no cross-fitting; the fit on all of them answers instead.
    answers = robust_answers(data, fit.parameters) if fit.held_out is None else fit.held_out
    # Folds have every value in about the same shares, so those of all entities are theirs.
    of_entities = class_shares(labels, len(predicate.values))
    return FoldResult(fit, score(answers, known.dataset, predicate, of_entities))


def _mean_nll(results: Mapping[str, FoldResult]) -> float:
    return mean_nll([one.fit for one in results.values()])
