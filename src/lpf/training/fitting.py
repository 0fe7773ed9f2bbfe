"""What is fitted once the networks are trained: robust mode, and LPF-Learned's temperature.

How a trained model does on labelled entities it has not seen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from lpf import metrics
from lpf.combine.calibration import CalibrationFit, LabelledFactors, fit_robust, fit_temperature
from lpf.combine.learned import LearnedCombiner
from lpf.datasets import Split
from lpf.engine import Engine
from lpf.factors.convert import ConversionConfig, Converter
from lpf.metrics import LabelArray
from lpf.model.runtime import Runtime
from lpf.schema import Predicate, Schema
from lpf.training.examples import Examples
from lpf.types import FloatArray, QueryOptions, Variant

SUBSETS_SEED = 20_240  # draws the subsets of evidence; any would do, one must be fixed


@dataclass(frozen=True)
class FittedParameters:
    """Of one predicate: robust mode's parameters with what they gained, and the temperature of
    the learned variant (None without an aggregator)."""

    robust: CalibrationFit
    learned_temperature: float | None


def fit_predicate(runtime: Runtime, predicate: Predicate, validation: Examples) -> FittedParameters:
    """Fits on validation entities that are labelled with ``predicate``."""
    labelled = labelled_entities(validation, predicate.name)
    robust = robust_fit(runtime, predicate, labelled)
    return FittedParameters(robust, _learned_temperature(runtime, predicate.name, labelled))


def robust_fit(runtime: Runtime, predicate: Predicate, validation: Examples) -> CalibrationFit:
    """Robust mode's own numbers alone."""
    labelled = labelled_entities(validation, predicate.name)
    factors = labelled_factors(
        labelled,
        predicate,
        item_factors(runtime, predicate.name, labelled),
        shares(runtime, predicate),
    )
    return fit_robust(factors, generator=np.random.default_rng(SUBSETS_SEED))


def labelled_entities(examples: Examples, predicate: str) -> Examples:
    """Those that have a value of ``predicate``."""
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


def shares(runtime: Runtime, predicate: Predicate) -> FloatArray:
    return np.array(runtime.config.head(predicate.name).training_shares)


def calibrated(runtime: Runtime, fitted: dict[str, FittedParameters]) -> Runtime:
    """The same model with what was fitted in its config."""
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


def _learned_temperature(runtime: Runtime, predicate: str, validation: Examples) -> float | None:
    if runtime.config.aggregator is None:
        return None
    posteriors = runtime.encode(validation.features)
    combined = LearnedCombiner(runtime).combine(posteriors, validation.segments, predicate)
    return fit_temperature(combined.distribution, validation.dataset.labels(predicate))


HELD_OUT: tuple[Split, ...] = ("validation", "test")
NULL_SEED = 7  # draws what a perfectly calibrated predictor would show


@dataclass(frozen=True)
class Scores:
    """``ece_null`` is the 95 % quantile of what a perfectly calibrated predictor with the same
    confidences would show: an ECE below it cannot be told from perfect. ``prior_nll`` is what
    knowing nothing but the prior costs."""

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


def answers(
    runtime: Runtime, schema: Schema, predicate: str, examples: Examples, options: QueryOptions
) -> FloatArray:
    """One distribution an entity, [E, V], from all its items."""
    return Engine(runtime, schema).answer(examples.items, predicate, options).distribution


def evaluate(
    runtime: Runtime,
    schema: Schema,
    predicate: str,
    examples: Examples,
    variant: Variant = "spn",
) -> Scores:
    """Of the entities labelled with the predicate."""
    labels = examples.dataset.labels(predicate)
    known = np.flatnonzero(labels >= 0)
    chosen = examples.select(known)
    found = answers(runtime, schema, predicate, chosen, QueryOptions(variant=variant))
    return score(found, labels[known], schema[predicate].prior)


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
