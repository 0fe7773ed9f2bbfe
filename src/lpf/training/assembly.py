"""The end of every training run: fitted parameters, scores, warnings and model card become a model.

``Trainer`` and ``train_small`` both end in ``finish``; ``train_head`` ends in ``assemble``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lpf.datasets import Dataset
from lpf.model.artefact import HELD_OUT, WARNING_PREFIX, HeldOutData, ModelCard, save_model
from lpf.model.config import DecoderConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.model.held_out import HeldOutAnswers
from lpf.model.layout import of_members
from lpf.model.runtime import Runtime
from lpf.reading.tuned import TunedReader
from lpf.training.claim_alone import compared_with_claims, fit_claims_alone, with_claims_alone
from lpf.training.config import TrainingConfig
from lpf.training.examples import Examples
from lpf.training.fitting import (
    FittedParameters,
    HeldOutScores,
    Scores,
    answers,
    calibrated,
    refuse_unstable,
    score_splits,
    with_familiarity,
)
from lpf.training.held_out import answers_apart, apart, as_given, with_held_out
from lpf.training.history import SeedHistory, ranked, spread
from lpf.training.model_choice import ModelChoice
from lpf.training.reader_choice import ReaderChoice
from lpf.training.stage_two import AggregatorHistory
from lpf.training.training_warnings import (
    answer_warnings,
    balancing_may_help,
    choice_warnings,
    data_warnings,
    group_warnings,
    prior_warnings,
    seed_warnings,
    size_warnings,
    small_data_warnings,
    unlearned_warnings,
)
from lpf.types import Float32Array, QueryOptions, Variant

# A model's version is a hash that covers its card: a change of wording changes the version of new
# models, but not their answers.
INTENDED = (
    "Turning short texts like those it was trained on into probabilities for the predicates below, "
    "together with other items about the same entity."
)
UNSUITABLE = (
    "Texts of another kind or language, predicates it was not trained on, decisions about people "
    "without a person who reads the evidence."
)
CARD_METRICS = (
    *("accuracy", "nll", "prior_nll", "class_shares_nll", "class_shares_accuracy"),
    *("nll_gain", "nll_gain_low", "nll_gain_high", "beats_class_shares"),
    *("brier", "ece", "ece_null", "entities"),
    *("claim_nll", "claim_accuracy", "claim_gain", "claim_gain_low", "claim_gain_high"),
    "beats_claim",
)


@dataclass(frozen=True)
class Trained:
    """A model that is ready to be saved, and everything that is known about its training."""

    config: ModelConfig
    tensors: Mapping[str, Float32Array]
    card: ModelCard
    histories: tuple[SeedHistory, ...]
    aggregator: AggregatorHistory
    fitted: Mapping[str, FittedParameters]
    scores: tuple[HeldOutScores, ...]
    warnings: tuple[str, ...]
    choice: ModelChoice | None = None  # None if the networks were not compared with a linear model
    reader_choice: ReaderChoice | None = None  # None if there is nothing that could be tuned
    tuned: TunedReader | None = None  # the model's reader, if it was tuned

    @property
    def is_linear(self) -> bool:
        """True if the linear model was better than the networks and replaced them."""
        return self.choice is not None and self.choice.is_linear

    @property
    def network_seeds(self) -> frozenset[int]:
        """Seeds whose networks are in the model; empty if it is linear."""
        return frozenset() if self.is_linear else frozenset(self.config.seeds)

    @property
    def in_folds(self) -> bool:
        """True if there were too few entities for splits, so that folds were used."""
        return any(one.data == "out of fold" for one in self.scores)

    @property
    def held_out(self) -> HeldOutScores:
        """LPF-SPN's scores on the entities that are the most independent of training."""
        return most_independent(self.scores)

    def scores_on(self, data: HeldOutData, variant: Variant = "spn") -> Mapping[str, Scores]:
        """Scores by predicate. KeyError if the model was not scored there."""
        for one in self.scores:
            if (one.data, one.variant) == (data, variant):
                return one.by_predicate
        raise KeyError(f"{data}/{variant}")

    def save(self, models: Path) -> str:
        """Write the model to ``models/<version>`` and return the version."""
        return save_model(models, self.config, self.tensors, self.card, self.tuned)

    def runtime(self) -> Runtime:
        return Runtime(self.config, self.tensors)


def most_independent(scores: Sequence[HeldOutScores]) -> HeldOutScores:
    """LPF-SPN's scores on test entities; else on validation entities, else out of fold."""
    spn = [one for one in scores if one.variant == "spn"]
    return min(spn, key=lambda one: HELD_OUT.index(one.data))


def model_config(
    heads: Sequence[PredicateHead],
    config: TrainingConfig,
    seeds: Sequence[int],
    reader_id: str,
    input_width: int,
) -> ModelConfig:
    """The shape of a model with one member per seed."""
    return ModelConfig(
        tuple(heads),
        EncoderConfig(
            input_width, config.hidden, config.latent_width, config.dropout, config.deterministic
        ),
        DecoderConfig(dropout=config.dropout),
        None,
        len(seeds),
        tuple(seeds),
        reader_id,
    )


def select_members(
    model: ModelConfig, tensors: Mapping[str, Float32Array], places: Sequence[int]
) -> tuple[ModelConfig, dict[str, Float32Array]]:
    """The members at ``places``, in this order."""
    seeds = tuple(model.seeds[place] for place in places)
    chosen = of_members(tensors, list(places))
    return replace(model, members=len(seeds), seeds=seeds), chosen


def finish(
    runtime: Runtime,
    examples: Examples,
    predicates: tuple[str, ...],
    config: TrainingConfig,
    *,
    histories: tuple[SeedHistory, ...],
    fitted: Mapping[str, FittedParameters],
    fold_scores: Mapping[str, Scores] | None = None,
    validation_scores: Mapping[Variant, Mapping[str, Scores]] | None = None,
    choice: ModelChoice | None = None,
    aggregator: AggregatorHistory = (),
    reader_choice: ReaderChoice | None = None,
    tuned: TunedReader | None = None,
) -> Trained:
    """Calibrate the model, score it, collect the warnings and write its card.

    ``validation_scores``, by variant and predicate, are given for a model that was fitted to
    validation entities too. ``fold_scores`` are given if there are too few entities for splits;
    otherwise the model is scored on validation and test entities here.
    """
    refuse_unstable(runtime, predicates, examples)
    runtime = calibrated(runtime, fitted)
    in_folds = fold_scores is not None
    claims = fit_claims_alone(examples, runtime.config.reader_id, predicates, everything=in_folds)
    runtime = with_claims_alone(runtime, claims)
    if config.unfamiliar == "less":
        runtime = with_familiarity(runtime, examples, everything=in_folds)
    runtime = with_held_out(runtime, _held_out(runtime, examples, fitted, in_folds))
    if fold_scores is None:
        variants: tuple[Variant, ...] = (
            ("spn",) if runtime.config.aggregator is None else ("spn", "learned")
        )
        scores = score_splits(runtime, examples, predicates, variants, validation_scores)
    else:
        scores = (HeldOutScores("out of fold", "spn", fold_scores),)
    scores = tuple(compared_with_claims(one, claims, examples) for one in scores)
    linear = choice is not None and choice.is_linear
    warnings = [
        *unlearned_warnings(most_independent(scores)),
        *choice_warnings(choice),
        *data_warnings(examples.dataset),
    ]
    if fold_scores is None and not linear:
        warnings += seed_warnings(histories, config.deterministic)
    for name in predicates:
        if fold_scores is None:
            warnings += _split_warnings(runtime, examples, name, config, linear)
        else:
            warnings += small_data_warnings(name, fold_scores[name])
        if choice is None or not choice.keeps_verdicts:
            warnings += size_warnings(name, fitted[name].robust.entities)
            warnings += group_warnings(name, fitted[name].robust)
        labels = examples.dataset.labels(name)
        if fold_scores is None:
            labels = labels[examples.dataset.positions("train")]
        warnings += prior_warnings(examples.dataset.schema[name], labels)
    return assemble(
        runtime,
        examples.dataset,
        config,
        histories=histories,
        fitted=fitted,
        scores=scores,
        warnings=warnings,
        choice=choice,
        aggregator=aggregator,
        reader_choice=reader_choice,
        tuned=tuned,
    )


def _held_out(
    runtime: Runtime, examples: Examples, fitted: Mapping[str, FittedParameters], in_folds: bool
) -> dict[str, HeldOutAnswers | None]:
    """By predicate: answers about entities held apart, else those that the fits have."""
    held = None if in_folds else apart(examples)
    schema = examples.dataset.schema
    return {
        name: one.held_out if held is None else answers_apart(runtime, schema, name, held)
        for name, one in fitted.items()
    }


def assemble(
    runtime: Runtime,
    dataset: Dataset,
    config: TrainingConfig,
    *,
    histories: tuple[SeedHistory, ...],
    fitted: Mapping[str, FittedParameters],
    scores: tuple[HeldOutScores, ...],
    warnings: Sequence[str],
    choice: ModelChoice | None = None,
    aggregator: AggregatorHistory = (),
    reader_choice: ReaderChoice | None = None,
    tuned: TunedReader | None = None,
) -> Trained:
    """Put a calibrated model and its results together, with a card named after the data set."""
    blank = ModelCard(dataset.name, "", INTENDED, UNSUITABLE)
    model = runtime.config  # one with an added head keeps its key
    trained = Trained(
        replace(
            model,
            sampling_key=model.sampling_key or _sampling_key(model),
            tuned_reader=model.tuned_reader if tuned is None else tuned.digest,
        ),
        runtime.tensors,
        blank,
        histories,
        aggregator,
        fitted,
        scores,
        tuple(warnings),
        choice,
        reader_choice,
        tuned,
    )
    card = replace(
        blank,
        data=_describe_data(dataset, trained.in_folds),
        metrics=dict(_card_metrics(trained)),
        notes=tuple(_card_notes(trained, config)),
    )
    return replace(trained, card=card)


def _sampling_key(model: ModelConfig) -> str:
    """What the draws of a new model are seeded with, besides reader, item and question."""
    return f"seeds {','.join(map(str, model.seeds))}"


def _split_warnings(
    runtime: Runtime, examples: Examples, name: str, config: TrainingConfig, linear: bool
) -> Iterator[str]:
    """Warnings about the answers on validation entities."""
    validation = examples.split("validation")
    assert validation is not None  # a data set without one was refused
    dataset = examples.dataset
    labels = validation.dataset.labels(name)
    distribution = answers(runtime, dataset.schema, name, validation, QueryOptions())
    known = labels >= 0
    train = dataset.labels(name)[dataset.positions("train")]
    helps = not linear and balancing_may_help(train, config.balance)
    yield from answer_warnings(dataset.schema[name], distribution[known], labels[known], helps)


def _describe_data(dataset: Dataset, in_folds: bool) -> str:
    """``ModelCard`` parses this text (``data_name`` and others), so its form must not change."""
    splits = [entity.split for entity in dataset]
    counts = [f"{splits.count(split)} {split}" for split in ("train", "validation", "test")]
    if not in_folds and None in splits:
        counts.append(f"{splits.count(None)} held apart")
    use = ", all trained on, judged in folds" if in_folds else f" ({', '.join(counts)})"
    return (
        f"{dataset.name}: {len(dataset)} entities{use}, {int(dataset.offsets[-1])} items; sha256 "
        f"{(dataset if in_folds else as_given(dataset)).digest[:16]}."
    )


def _card_notes(trained: Trained, config: TrainingConfig) -> Iterator[str]:
    yield _member_note(trained)
    about = "of networks that are not in the model: " if trained.is_linear else ""
    for note in _network_notes(trained, config):
        yield f"{about}{note}"
    if trained.choice is not None:
        yield f"model: {trained.choice.describe()}"
    if trained.reader_choice is not None:
        yield f"reader: {trained.reader_choice.describe()}"
    if trained.tuned is not None:
        yield f"tuned reader: {trained.tuned.describe()}"
    for name, fitted in trained.fitted.items():
        if trained.choice is not None and trained.choice.keeps_verdicts:
            yield f"{name}: nothing was fitted to the labels: the verdicts without labels answer"
        else:
            yield from _fitted_notes(name, fitted)
    for warning in trained.warnings:
        yield f"{WARNING_PREFIX}{warning}"


def _member_note(trained: Trained) -> str:
    members = list(trained.config.seeds)
    if trained.in_folds or trained.is_linear:
        return f"members: one for each of the seeds {members}"
    return f"seeds {[one.seed for one in trained.histories]}; members, best first: {members}"


def _network_notes(trained: Trained, config: TrainingConfig) -> Iterator[str]:
    scored_on = "held-out items of folds" if trained.in_folds else "validation items"
    yield (
        f"accuracy on {scored_on} over all seeds {_spread(trained, 'validation_accuracy')}; loss "
        f"{_spread(trained, 'validation_loss')}"
    )
    # With folds, patience is not used and batches are smaller.
    stopping = (
        "" if trained.in_folds else f"patience {config.patience}, batch {config.batch_size}, "
    )
    yield (
        f"learning rate {config.learning_rate:g}, beta {config.beta:g}, {stopping}weight decay "
        f"{config.weight_decay:g}, hidden {list(config.hidden)}, latent {config.latent_width}"
    )


def _spread(trained: Trained, name: str) -> str:
    """Mean and standard deviation over the seeds; a single seed has no deviation."""
    over_seeds = spread(trained.histories, name)
    if len(trained.histories) == 1:
        return f"{over_seeds.mean:.4f}"
    return f"{over_seeds.mean:.4f} ± {over_seeds.sd:.4f}, selected {over_seeds.selected:.4f}"


def _fitted_notes(name: str, fitted: FittedParameters) -> Iterator[str]:
    robust, numbers = fitted.robust, fitted.robust.parameters
    cross_fitted = robust.nll_cross_fitted
    held_out = "" if cross_fitted is None else f", {cross_fitted:.4f} on held-out folds"
    yield (
        f"{name}: fitted on {robust.entities} entities: temperature {numbers.temperature:.4f}, rho "
        f"{numbers.rho:.4f}, epsilon {numbers.epsilon:.4f}, slope {numbers.slope:.4f} around "
        f"credibility logit {numbers.centre:.4f} up to credibility {numbers.highest:.4f}; NLL "
        f"{robust.nll_before:.4f} before, {robust.nll_after:.4f} after{held_out}"
    )
    if robust.fitted != "everything":
        kept = (
            "only the temperature was kept" if robust.fitted == "temperature" else "none was kept"
        )
        yield f"{name}: of these, {kept}: the rest made answers on held-out folds worse"
    if numbers.trust < 1.0:
        yield f"{name}: trust {numbers.trust:.2f}, since the entities are of {robust.groups} groups"
    if fitted.min_credibility:
        yield f"{name}: items below credibility {fitted.min_credibility:g} are left out"
    if fitted.learned_temperature is not None:
        yield f"{name}: temperature of LPF-Learned {fitted.learned_temperature:.4f}"


def _card_metrics(trained: Trained) -> Iterator[tuple[str, float]]:
    """Names and values as ``card.json`` stores them."""
    if not trained.is_linear:
        best = trained.histories[ranked(trained.histories)[0]].best
        yield "item_validation_accuracy", round(best.validation_accuracy, 6)
    for predicate, fitted in trained.fitted.items():
        yield f"{predicate}/nll_fitted", round(fitted.robust.nll_after, 6)
        if fitted.robust.nll_cross_fitted is not None:
            yield f"{predicate}/nll_cross_fitted", round(fitted.robust.nll_cross_fitted, 6)
    for one in trained.scores:
        for predicate, scores in one.by_predicate.items():
            known = scores.to_dict()
            for name in CARD_METRICS:
                if name in known:
                    yield f"{predicate}/{one.place}/{name}", round(float(known[name]), 6)
