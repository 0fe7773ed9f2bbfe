"""What is fitted once the networks are trained: robust mode, and LPF-Learned's temperature."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lpf.calibration import CalibrationFit, LabelledFactors, fit_robust, fit_temperature
from lpf.combine.learned import LearnedCombiner
from lpf.factors.convert import ConversionConfig, Converter
from lpf.model.runtime import Runtime
from lpf.schema import Predicate
from lpf.training.examples import Examples
from lpf.types import FloatArray

SUBSETS_SEED = 20_240  # draws the subsets of evidence; any would do, one must be fixed


@dataclass(frozen=True)
class Fitted:
    """Of one predicate: robust mode's parameters with what they gained, and the temperature of
    the learned variant (None without an aggregator)."""

    robust: CalibrationFit
    learned_temperature: float | None


def fit_predicate(runtime: Runtime, predicate: Predicate, validation: Examples) -> Fitted:
    """Fits on validation entities that are labelled with ``predicate``."""
    labelled = labelled_entities(validation, predicate.name)
    robust = robust_fit(runtime, predicate, labelled)
    return Fitted(robust, _learned_temperature(runtime, predicate.name, labelled))


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


def calibrated(runtime: Runtime, fitted: dict[str, Fitted]) -> Runtime:
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
