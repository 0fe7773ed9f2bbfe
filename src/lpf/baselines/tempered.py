"""A temperature for every method, fitted after training.

Without it, a comparison of probabilities would mostly compare how well scaled they are.

    P_T = normalise(P^(1/T))     log T = a + b·log K     a, b ~ N(0, 1)

If all entities have the same number K of items, b is 0. Fitted on validation entities; if their
numbers of items differ, on random subsets of every size, like robust mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lpf.baselines.interface import FittedMethod, entity_labels, labelled
from lpf.combine.calibration import draw_subsets, fit_temperature
from lpf.errors import EvidenceError
from lpf.factors.distributions import log_tempered
from lpf.training.examples import Examples
from lpf.types import FloatArray


def every_size(examples: Examples, generator: np.random.Generator) -> Examples:
    """Every entity once per number of items, from one to all of them."""
    rows, segments, owners = draw_subsets(examples.segments, generator)
    items = list(examples.dataset.items)
    spans = zip(segments.offsets[:-1], segments.offsets[1:], strict=True)
    entities = tuple(
        replace(
            examples.dataset.entities[owner],
            evidence=tuple(items[row] for row in rows[start:stop]),
        )
        for owner, (start, stop) in zip(owners, spans, strict=True)
    )
    return Examples(
        replace(examples.dataset, entities=entities),
        examples.features[rows],
        examples.credibility[rows],
        examples.groups[rows],
        None if examples.wordless is None else examples.wordless[rows],
    )


TEMPERING = 77  # separates the draws of subsets from those of training with the same seed
# Wider than in robust mode: averages and paper mode are far from their right scale, and a
# narrow prior would not let the fit correct that.
PRIOR_SD = 1.0
_BOUNDS = ((-3.0, 3.0), (-3.0, 3.0))


@dataclass(frozen=True)
class Temperature:
    """log T = intercept + slope·log K for an entity of K items."""

    intercept: float
    slope: float = 0.0

    def apply(self, distribution: FloatArray, counts: NDArray[np.intp]) -> FloatArray:
        """``distribution`` [E, V] of entities with ``counts`` [E] items; zeros stay zeros."""
        with np.errstate(divide="ignore"):
            logs = np.log(distribution)
        return np.exp(self.log_applied(logs, np.log(counts)))

    def log_applied(self, logs: FloatArray, log_counts: FloatArray) -> FloatArray:
        """The same on logarithms."""
        temperature = np.exp(self.intercept + self.slope * log_counts)
        return log_tempered(logs / temperature[:, None], 1.0)


@dataclass(frozen=True)
class Tempered:
    """A fitted method with its temperature."""

    method: FittedMethod
    temperature: Temperature

    def predict_proba(self, examples: Examples) -> FloatArray:
        distribution = self.method.predict_proba(examples)
        return self.temperature.apply(distribution, examples.segments.counts)


def with_temperature(
    fitted: FittedMethod,
    validation: Examples,
    predicate: str,
    *,
    generator: np.random.Generator,
    by_count: bool | None = None,
) -> Tempered:
    """``by_count`` makes the temperature depend on the number of items; None does so if validation
    entities differ in it. The generator draws subsets."""
    known = labelled(validation, predicate)
    if by_count is None:
        by_count = len(np.unique(known.segments.counts)) > 1
    if by_count:
        known = every_size(known, generator)
    labels = entity_labels(known, predicate)
    distribution = fitted.predict_proba(known)
    if not by_count:
        alone = fit_temperature(distribution, labels, PRIOR_SD)
        return Tempered(fitted, Temperature(float(np.log(alone))))
    return Tempered(fitted, fit_by_count(distribution, labels, known.segments.counts))


def fit_by_count(
    distribution: FloatArray, labels: NDArray[np.intp], counts: NDArray[np.intp]
) -> Temperature:
    """The temperature that [E, V] distributions from ``counts`` [E] items need to fit ``labels``
    [E], by maximum a posteriori."""
    from scipy.optimize import minimize

    rows = np.arange(len(labels))
    with np.errstate(divide="ignore"):
        logs = np.log(distribution)
    _require_possible(logs[rows, labels])
    log_counts = np.log(counts)

    def loss(point: FloatArray) -> float:
        scored = Temperature(*point).log_applied(logs, log_counts)[rows, labels]
        return float(-scored.sum() + 0.5 * ((point / PRIOR_SD) ** 2).sum())

    found = minimize(loss, np.zeros(2), method="L-BFGS-B", bounds=_BOUNDS)
    return Temperature(*map(float, found.x))


def _require_possible(scored: FloatArray) -> None:
    impossible = np.flatnonzero(np.isneginf(scored))
    if len(impossible):
        raise EvidenceError(
            f"predictions at positions {impossible[:10].tolist()} give their label probability "
            "zero; no temperature can change that."
        )
