"""Fit parameters of a trained model on held-out entities, and score it.

Robust mode's parameters and LPF-Learned's temperature are fitted on validation entities. Scores
are those of whole entities, each answered from all its items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import numpy as np

from lpf import metrics
from lpf.combine.calibration import (
    CalibrationFit,
    LabelledFactors,
    choose_threshold,
    fit_robust,
    fit_temperature,
    robust_answers,
)
from lpf.combine.learned import LearnedCombiner
from lpf.datasets import Dataset
from lpf.engine import Engine
from lpf.errors import TrainingError
from lpf.factors.convert import LARGEST_SHIFT, ConversionConfig, Converter, shift_under_noise
from lpf.metrics import LabelArray
from lpf.metrics.groups import few_groups
from lpf.metrics.intervals import LEVEL
from lpf.model.artefact import HeldOutData, score_place
from lpf.model.config import PredicateHead
from lpf.model.familiarity import Familiarity, fit_familiarity, without_wordless
from lpf.model.held_out import HeldOutAnswers
from lpf.model.runtime import Runtime
from lpf.reading.pair import text_part
from lpf.reading.stance import relevance, stances_of
from lpf.schema import Predicate, Schema
from lpf.training.examples import Examples
from lpf.training.held_out import held_out_answers, is_learned
from lpf.types import FloatArray, QueryOptions, Variant

HELD_OUT_SPLITS: tuple[Literal["validation", "test"], ...] = ("validation", "test")
STABILITY_ITEMS = 256  # the model is tested with noise on this many items at most
SUBSETS_SEED = 20_240  # draws the subsets of evidence that robust mode is fitted on
GAIN_DRAWS = 2000  # of the bootstrap that compares a model with class shares or claims
FEWEST_COMPARED = 6  # with fewer entities or groups, an interval says nothing
NULL_SEED = 7  # draws the ECE that a perfectly calibrated predictor would have


@dataclass(frozen=True)
class FittedParameters:
    """Fitted parameters of one predicate: robust mode's, with the NLL before and after, the
    temperature of the learned variant (None without an aggregator), the credibility below which
    items are left out, and the answers about held-out entities."""

    robust: CalibrationFit
    learned_temperature: float | None
    min_credibility: float = 0.0
    held_out: HeldOutAnswers | None = field(default=None, compare=False, repr=False)


def fit_predicate(runtime: Runtime, predicate: Predicate, validation: Examples) -> FittedParameters:
    """Fit everything on the validation entities that are labelled with ``predicate``."""
    labelled = labelled_entities(validation, predicate.name)
    factors = _labelled_factors(runtime, predicate, labelled)
    robust = fit_robust(factors, generator=np.random.default_rng(SUBSETS_SEED))
    generator = np.random.default_rng(SUBSETS_SEED)
    return FittedParameters(
        robust,
        _learned_temperature(runtime, predicate.name, labelled),
        choose_threshold(factors, robust.parameters, generator),
        shared_answers(robust, factors, labelled.dataset, predicate.name),
    )


def shared_answers(
    fit: CalibrationFit, factors: LabelledFactors, dataset: Dataset, predicate: str
) -> HeldOutAnswers:
    """The answers about the entities that the parameters were fitted to; without the entity's fold,
    if they were cross-fitted."""
    found = robust_answers(factors, fit.parameters) if fit.held_out is None else fit.held_out
    return held_out_answers("shared", found, dataset, predicate)


def refuse_unstable(runtime: Runtime, predicates: Sequence[str], examples: Examples) -> None:
    """TrainingError if noise, not the features, decides what the model says."""
    for name in predicates:
        shift = shift_under_noise(runtime, name, examples.features[:STABILITY_ITEMS])
        if shift > LARGEST_SHIFT:
            raise TrainingError(
                f"the model of {name!r} is not stable: noise of a thousandth of the features' "
                f"spread moves a probability by {100 * shift:.0f} points on average. Nothing was "
                "saved.",
                hint="Look for features that are constant or differ in scale by orders of "
                "magnitude; if the reader is one of lpf's own, report this as a bug.",
            )


def robust_fit(runtime: Runtime, predicate: Predicate, validation: Examples) -> CalibrationFit:
    """Fit robust mode's parameters alone."""
    labelled = labelled_entities(validation, predicate.name)
    factors = _labelled_factors(runtime, predicate, labelled)
    return fit_robust(factors, generator=np.random.default_rng(SUBSETS_SEED))


def validation_answers(runtime: Runtime, predicate: Predicate, validation: Examples) -> FloatArray:
    """Robust mode's answers about the validation entities labelled with ``predicate`` [E, V]. Its
    parameters are fitted to these; without the entity's fold, if there are so few that they are
    cross-fitted."""
    labelled = labelled_entities(validation, predicate.name)
    factors = _labelled_factors(runtime, predicate, labelled)
    fit = fit_robust(factors, generator=np.random.default_rng(SUBSETS_SEED))
    return robust_answers(factors, fit.parameters) if fit.held_out is None else fit.held_out


def _labelled_factors(
    runtime: Runtime, predicate: Predicate, labelled: Examples
) -> LabelledFactors:
    known, head = runtime.familiarity_of(predicate.name), runtime.config.head(predicate.name)
    return labelled_factors(
        labelled,
        predicate,
        item_factors(runtime, predicate.name, labelled),
        head,
        None if known is None else known(labelled.features),
    )


def labelled_entities(examples: Examples, predicate: str) -> Examples:
    """The entities that are labelled with ``predicate``."""
    return examples.select(np.flatnonzero(examples.dataset.labels(predicate) >= 0))


def item_factors(runtime: Runtime, predicate: str, examples: Examples) -> FloatArray:
    """Φ of each item at T = 1, decoded at the posterior's mean, [N, V]."""
    converter = Converter(runtime, predicate, ConversionConfig("mean"))
    return converter.from_features(examples.features).potential


def labelled_factors(
    examples: Examples,
    predicate: Predicate,
    potential: FloatArray,
    head: PredicateHead,
    familiarity: FloatArray | None = None,
    ratios: FloatArray | None = None,
) -> LabelledFactors:
    """``potential`` [N, V] are the factors of the items of ``examples`` under ``head``. ``ratios``
    [E, 4, V] take the place of the head's, if given."""
    start = head.relevance_start
    if ratios is None and head.occurrence_ratios:
        ratios = np.array(head.occurrence_ratios)
    return LabelledFactors(
        potential,
        examples.credibility,
        examples.segments,
        examples.dataset.labels(predicate.name),
        np.array(head.training_shares),
        np.log(np.array(predicate.prior)),
        examples.groups,
        without_wordless(familiarity, examples.wordless),
        head.trained_rho,
        None if start is None else relevance(examples.features, start),
        np.array(head.silent) if head.silent else None,
        None if ratios is None or start is None else stances_of(examples.features, start),
        ratios,
        few_groups([entity.group_id for entity in examples.dataset]),
    )


def calibrated(runtime: Runtime, fitted: Mapping[str, FittedParameters]) -> Runtime:
    """The same model with the fitted parameters in its config."""
    config = replace(
        runtime.config,
        calibration={name: one.robust.parameters.to_dict() for name, one in fitted.items()},
        learned_temperature={
            name: one.learned_temperature
            for name, one in fitted.items()
            if one.learned_temperature is not None
        },
        calibrated_on={name: one.robust.entities for name, one in fitted.items()},
        min_credibility={name: one.min_credibility for name, one in fitted.items()},
    )
    return Runtime(config, runtime.tensors, runtime.version)


def with_familiarity(runtime: Runtime, examples: Examples, *, everything: bool) -> Runtime:
    """The same model, which now also knows how far a text is from the texts it was trained on.

    Fitted to training and validation entities, in folds, or to ``everything``. Entities of one
    group stay together. A model of very few items stays as it is.
    """
    part = text_part(runtime.config.reader_id, runtime.config.encoder.input_width)
    fitted = familiarity_of_texts(examples, part, everything=everything)
    if fitted is None:
        return runtime
    config = replace(runtime.config, familiarity=fitted.config)
    return Runtime(config, {**runtime.tensors, **fitted.tensors()}, runtime.version)


def with_head_familiarity(runtime: Runtime, examples: Examples, predicate: str) -> Runtime:
    """The same model, whose head ``predicate`` now knows its own training texts: those of the
    entities labelled with it. If they are very few, it takes every text at its full weight."""
    part = text_part(runtime.config.reader_id, runtime.config.encoder.input_width)
    fitted = familiarity_of_texts(labelled_entities(examples, predicate), part)
    own = {predicate: None if fitted is None else fitted.config}
    tensors = {} if fitted is None else fitted.tensors(predicate)
    config = replace(runtime.config, head_familiarity={**runtime.config.head_familiarity, **own})
    return Runtime(config, {**runtime.tensors, **tensors}, runtime.version)


def familiarity_of_texts(
    examples: Examples, part: slice, *, everything: bool = False
) -> Familiarity | None:
    """Fitted to training and validation entities, or to ``everything``, without the texts
    that have no word. ``part`` has the features of the text alone. None if there are too few
    texts."""
    dataset = examples.dataset
    names = [entity.group_id or entity.entity_id for entity in dataset]
    held_back = [not everything and not is_learned(entity) for entity in dataset]
    places = np.flatnonzero(~np.array(held_back))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    groups = np.repeat([numbers[name] for name in names], examples.segments.counts)
    rows = examples.rows(places)
    if examples.wordless is not None:
        rows = rows[~examples.wordless[rows]]
    return fit_familiarity(examples.features[rows], groups[rows], part)


def _learned_temperature(runtime: Runtime, predicate: str, validation: Examples) -> float | None:
    if runtime.config.aggregator is None:
        return None
    posteriors = runtime.encode(validation.features)
    combined = LearnedCombiner(runtime).combine(posteriors, validation.segments, predicate)
    return fit_temperature(combined.distribution, validation.dataset.labels(predicate))


@dataclass(frozen=True)
class Scores:
    """Metrics of the answers about whole entities.

    ``ece_null`` is the 95 % quantile of the ECE of a perfectly calibrated predictor with the same
    confidences: an ECE below it is consistent with perfect calibration. ``prior_nll`` is the NLL
    of always answering with the schema's prior, ``class_shares_nll`` that of always answering with
    the shares of the values among training entities. ``nll_gain`` is how far the model's NLL is
    below the latter, with a 95 % interval over entities (paired bootstrap; entities of a group are
    drawn together). The model beats the class shares if the whole interval is above 0.

    The fields of the claim say the same about what the claim alone says (``claim_alone``); None if
    that was not fitted. ``losses`` are the log losses by entity ID.
    """

    entities: int
    accuracy: float
    macro_f1: float
    nll: float
    brier: float
    ece: float
    ece_null: float
    prior_nll: float
    class_shares_nll: float
    class_shares_accuracy: float
    nll_gain: float
    nll_gain_low: float
    nll_gain_high: float
    beats_class_shares: bool
    claim_nll: float | None = None
    claim_accuracy: float | None = None
    claim_gain: float | None = None
    claim_gain_low: float | None = None
    claim_gain_high: float | None = None
    beats_claim: bool | None = None
    losses: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)

    def to_dict(self) -> dict[str, float]:
        """The metrics, without those of the claim if there are none, and without ``losses``."""
        plain = asdict(replace(self, losses={}))
        del plain["losses"]
        return {name: number for name, number in plain.items() if number is not None}


@dataclass(frozen=True)
class HeldOutScores:
    """Scores by predicate, on one kind of held-out entities and with one variant."""

    data: HeldOutData
    variant: Variant
    by_predicate: Mapping[str, Scores]

    @property
    def place(self) -> str:
        """What model cards and JSON documents call it, such as ``test/spn``."""
        return score_place(self.data, self.variant)


def answers(
    runtime: Runtime, schema: Schema, predicate: str, examples: Examples, options: QueryOptions
) -> FloatArray:
    """One distribution per entity [E, V], from all its items that the model's threshold admits."""
    engine, items = Engine(runtime, schema), examples.items
    rows = engine.countable(items, predicate, options)
    used = items if rows is None else items.select(rows)
    return engine.answer(used, predicate, options).distribution


def class_shares(labels: LabelArray, values: int, weights: FloatArray | None = None) -> FloatArray:
    """Shares of the values among labels (-1 for none), [V], which may have ``weights``; one is
    added to each count."""
    known = labels >= 0
    counts = np.bincount(labels[known], None if weights is None else weights[known], values) + 1.0
    return np.asarray(counts / counts.sum())


def evaluate(
    runtime: Runtime,
    schema: Schema,
    predicate: str,
    examples: Examples,
    variant: Variant = "spn",
    shares: FloatArray | None = None,
) -> Scores:
    """Score the answers about the entities that are labelled with the predicate. ``shares`` are the
    class shares of the training entities; by default those of ``examples``."""
    chosen = labelled_entities(examples, predicate)
    labels = chosen.dataset.labels(predicate)
    distribution = answers(runtime, schema, predicate, chosen, QueryOptions(variant=variant))
    if shares is None:
        shares = class_shares(labels, len(schema[predicate].values))
    return score(distribution, chosen.dataset, schema[predicate], shares)


def score_splits(
    runtime: Runtime,
    examples: Examples,
    predicates: Sequence[str],
    variants: Sequence[Variant],
    validation_scores: Mapping[Variant, Mapping[str, Scores]] | None = None,
) -> tuple[HeldOutScores, ...]:
    """Scores on validation and test entities; a split without entities is left out.
    ``validation_scores``, by variant and predicate, are used if given."""
    shares = shares_of_training(examples.dataset, predicates)
    parts = {split: examples.split(split) for split in HELD_OUT_SPLITS}
    given = {"validation": validation_scores or {}, "test": {}}
    return tuple(
        HeldOutScores(
            split,
            variant,
            given[split].get(variant) or evaluate_all(runtime, part, shares, variant),
        )
        for split, part in parts.items()
        if part is not None
        for variant in variants
    )


def shares_of_training(dataset: Dataset, predicates: Sequence[str]) -> dict[str, FloatArray]:
    """The class shares of the training entities, by predicate."""
    train = dataset.positions("train")
    return {
        name: class_shares(dataset.labels(name)[train], len(dataset.schema[name].values))
        for name in predicates
    }


def evaluate_all(
    runtime: Runtime, examples: Examples, shares: Mapping[str, FloatArray], variant: Variant
) -> dict[str, Scores]:
    """Scores by predicate; ``shares`` are the class shares of the training entities."""
    schema = examples.dataset.schema
    return {
        name: evaluate(runtime, schema, name, examples, variant, one)
        for name, one in shares.items()
    }


def score(
    distribution: FloatArray, dataset: Dataset, predicate: Predicate, shares: FloatArray
) -> Scores:
    """Scores of answers [E, V] about the entities of ``dataset``, which are all labelled."""
    labels = dataset.labels(predicate.name)
    null = metrics.ece_null(distribution, np.random.default_rng(NULL_SEED), draws=500)
    constant = np.tile(shares, (len(labels), 1))
    losses = metrics.log_losses(distribution, labels)
    gain, beats = gain_over(constant, losses, dataset, labels)
    return Scores(
        len(labels),
        metrics.accuracy(distribution, labels),
        metrics.macro_f1(distribution, labels),
        metrics.nll(distribution, labels),
        metrics.brier(distribution, labels),
        metrics.ece(distribution, labels),
        null.quantile_95,
        float(-np.log(np.array(predicate.prior))[labels].mean()),
        metrics.nll(constant, labels),
        metrics.accuracy(constant, labels),
        gain.mean,
        gain.low,
        gain.high,
        beats,
        losses={
            entity.entity_id: loss for entity, loss in zip(dataset, losses.tolist(), strict=True)
        },
    )


def gain_over(
    other: FloatArray, losses: FloatArray, dataset: Dataset, labels: LabelArray
) -> tuple[metrics.Difference, bool]:
    """How far ``losses`` [E] are below the log losses of the answers ``other`` [E, V], and whether
    they are beyond chance. An infinite loss has no interval: the gain is then minus infinity."""
    others = metrics.log_losses(other, labels)
    names = [(entity.group_id, entity.group_id or entity.entity_id) for entity in dataset]
    if not np.isfinite(losses).all():
        return metrics.Difference(-np.inf, -np.inf, -np.inf, LEVEL, 1.0), False
    generator = np.random.default_rng(NULL_SEED)
    (gain,) = metrics.mean_differences(
        [(others - losses)[:, None]], [names], generator, draws=GAIN_DRAWS
    )
    return gain, len(set(names)) >= FEWEST_COMPARED and gain.low > 0.0
