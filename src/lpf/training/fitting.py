"""Fit parameters of a trained model on held-out entities, and score it.

Robust mode's parameters and LPF-Learned's temperature are fitted on validation entities. Scores
are those of whole entities, each answered from all its items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from lpf import metrics
from lpf.combine.calibration import CalibrationFit, LabelledFactors, fit_robust, fit_temperature
from lpf.combine.learned import LearnedCombiner
from lpf.engine import Engine
from lpf.factors.convert import ConversionConfig, Converter
from lpf.metrics import LabelArray
from lpf.model.artefact import HeldOutData, score_place
from lpf.model.familiarity import fit_familiarity
from lpf.model.runtime import Runtime
from lpf.reading.pair import text_part
from lpf.schema import Predicate, Schema
from lpf.training.examples import Examples
from lpf.types import FloatArray, QueryOptions, Variant

HELD_OUT_SPLITS: tuple[Literal["validation", "test"], ...] = ("validation", "test")
SUBSETS_SEED = 20_240  # draws the subsets of evidence that robust mode is fitted on
NULL_SEED = 7  # draws the ECE that a perfectly calibrated predictor would have


@dataclass(frozen=True)
class FittedParameters:
    """Fitted parameters of one predicate: robust mode's, with the NLL before and after, and the
    temperature of the learned variant (None without an aggregator)."""

    robust: CalibrationFit
    learned_temperature: float | None


def fit_predicate(runtime: Runtime, predicate: Predicate, validation: Examples) -> FittedParameters:
    """Fit everything on the validation entities that are labelled with ``predicate``."""
    labelled = labelled_entities(validation, predicate.name)
    robust = robust_fit(runtime, predicate, labelled)
    return FittedParameters(robust, _learned_temperature(runtime, predicate.name, labelled))


def robust_fit(runtime: Runtime, predicate: Predicate, validation: Examples) -> CalibrationFit:
    """Fit robust mode's parameters alone."""
    labelled = labelled_entities(validation, predicate.name)
    factors = labelled_factors(
        labelled,
        predicate,
        item_factors(runtime, predicate.name, labelled),
        np.array(runtime.config.head(predicate.name).training_shares),
    )
    return fit_robust(factors, generator=np.random.default_rng(SUBSETS_SEED))


def labelled_entities(examples: Examples, predicate: str) -> Examples:
    """The entities that are labelled with ``predicate``."""
    return examples.select(np.flatnonzero(examples.dataset.labels(predicate) >= 0))


def item_factors(runtime: Runtime, predicate: str, examples: Examples) -> FloatArray:
    """Φ of each item at T = 1, decoded at the posterior's mean, [N, V]."""
    converter = Converter(runtime, predicate, ConversionConfig("mean"))
    return converter.from_features(examples.features).potential


def labelled_factors(
    examples: Examples, predicate: Predicate, potential: FloatArray, training_shares: FloatArray
) -> LabelledFactors:
    return LabelledFactors(
        potential,
        examples.credibility,
        examples.segments,
        examples.dataset.labels(predicate.name),
        training_shares,
        np.log(np.array(predicate.prior)),
        examples.groups,
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
    )
    return Runtime(config, runtime.tensors, runtime.version)


def with_familiarity(runtime: Runtime, examples: Examples, *, everything: bool) -> Runtime:
    """The same model, which now also knows how far a text is from the texts it was trained on.

    Fitted to all entities but those of the test split, in folds, or to ``everything``. Entities of
    one group stay together. A model of very few items stays as it is.
    """
    dataset = examples.dataset
    names = [entity.group_id or entity.entity_id for entity in dataset]
    held_back = [not everything and entity.split == "test" for entity in dataset]
    places = np.flatnonzero(~np.array(held_back))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    groups = np.repeat([numbers[name] for name in names], examples.segments.counts)
    rows = examples.rows(places)
    part = text_part(runtime.config.reader_id, runtime.config.encoder.input_width)
    fitted = fit_familiarity(examples.features[rows], groups[rows], part)
    if fitted is None:
        return runtime
    config = replace(runtime.config, familiarity=fitted.config)
    return Runtime(config, {**runtime.tensors, **fitted.tensors()}, runtime.version)


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
    of always answering with the prior.
    """

    entities: int
    accuracy: float
    macro_f1: float
    nll: float
    brier: float
    ece: float
    ece_null: float
    prior_nll: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


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
    """One distribution per entity [E, V], from all its items."""
    return Engine(runtime, schema).answer(examples.items, predicate, options).distribution


def evaluate(
    runtime: Runtime,
    schema: Schema,
    predicate: str,
    examples: Examples,
    variant: Variant = "spn",
) -> Scores:
    """Score the answers about the entities that are labelled with the predicate."""
    labels = examples.dataset.labels(predicate)
    known = np.flatnonzero(labels >= 0)
    chosen = examples.select(known)
    distribution = answers(runtime, schema, predicate, chosen, QueryOptions(variant=variant))
    return score(distribution, labels[known], schema[predicate].prior)


def score_splits(
    runtime: Runtime,
    examples: Examples,
    predicates: Sequence[str],
    variants: Sequence[Variant],
) -> tuple[HeldOutScores, ...]:
    """Scores on validation and test entities; a split without entities is left out."""
    schema = examples.dataset.schema
    parts = {split: examples.split(split) for split in HELD_OUT_SPLITS}
    return tuple(
        HeldOutScores(
            split,
            variant,
            {name: evaluate(runtime, schema, name, part, variant) for name in predicates},
        )
        for split, part in parts.items()
        if part is not None
        for variant in variants
    )


def score(distribution: FloatArray, labels: LabelArray, prior: tuple[float, ...]) -> Scores:
    null = metrics.ece_null(distribution, np.random.default_rng(NULL_SEED), draws=500)
    return Scores(
        len(labels),
        metrics.accuracy(distribution, labels),
        metrics.macro_f1(distribution, labels),
        metrics.nll(distribution, labels),
        metrics.brier(distribution, labels),
        metrics.ece(distribution, labels),
        null.quantile_95,
        float(-np.log(np.array(prior))[labels].mean()),
    )
