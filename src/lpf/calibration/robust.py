"""The fit of robust mode's parameters: T, ρ and ε together, by maximum a posteriori."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.calibration.subsets import draw_subsets
from lpf.combine.combined import Segments
from lpf.combine.robust import (
    CREDIBILITY_BOUNDS,
    DEFAULT_EPSILON,
    DEFAULT_RHO,
    RobustParameters,
    combine_robust,
    expit,
    logit,
)
from lpf.errors import EvidenceError
from lpf.factors.tempering import log_tempered
from lpf.types import FloatArray

# Priors of the fit. Without them it diverges where nearly every answer is right.
LOG_TEMPERATURE_SD = 0.5
LOGIT_RHO_SD = 1.0
LOGIT_EPSILON_SD = 1.0
SLOPE_SD = 1.0  # half-normal: credibility may count for nothing, but never against an item

CROSS_FIT_BELOW = 500  # with fewer entities, what the fit gains is measured on held-out folds
FOLDS = 5


@dataclass(frozen=True)
class LabelledFactors:
    """Validation entities: Φ at T = 1 [N, V], credibility [N] (NaN unknown), segments, the label
    of each entity [E], the model's π [V], the prior as logarithms ([V], or [E, V] where known
    facts differ), groups of copies [N]."""

    potential: FloatArray
    credibility: FloatArray
    segments: Segments
    labels: NDArray[np.intp]
    shares: FloatArray
    log_prior: FloatArray
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        self.segments.check(len(self.potential))
        if len(self.labels) != len(self.segments) or len(self.segments) == 0:
            raise EvidenceError(
                f"calibration: {len(self.labels)} labels for {len(self.segments)} entities; it "
                "needs one for each, and at least one entity."
            )
        if self.labels.min() < 0 or self.labels.max() >= self.potential.shape[1]:
            raise EvidenceError(
                f"calibration: labels must lie in 0 to {self.potential.shape[1] - 1}, got "
                f"{int(self.labels.min())} to {int(self.labels.max())}."
            )
        if (self.segments.counts == 0).any():
            empty = np.flatnonzero(self.segments.counts == 0)[:10].tolist()
            raise EvidenceError(f"calibration: entities at positions {empty} have no evidence.")

    def select(self, entities: NDArray[np.intp]) -> LabelledFactors:
        """Some of the entities, with their items."""
        starts, counts = self.segments.offsets[entities], self.segments.counts[entities]
        rows = np.concatenate(
            [np.arange(s, s + c) for s, c in zip(starts, counts, strict=True)]
        ).astype(np.intp)
        return self._rows(rows, Segments.of_counts(counts), entities)

    def subsets(self, generator: np.random.Generator) -> LabelledFactors:
        """Every entity once with each number of its items."""
        rows, segments, owners = draw_subsets(self.segments, generator)
        return self._rows(rows, segments, owners)

    def _rows(
        self, rows: NDArray[np.intp], segments: Segments, entities: NDArray[np.intp]
    ) -> LabelledFactors:
        prior = self.log_prior
        return replace(
            self,
            potential=self.potential[rows],
            credibility=self.credibility[rows],
            segments=segments,
            labels=self.labels[entities],
            log_prior=prior[entities] if prior.ndim == 2 else prior,
            groups=None if self.groups is None else self.groups[rows],
        )


@dataclass(frozen=True)
class CalibrationFit:
    """What was fitted and what it gained: mean NLL of whole entities before and after, and after
    on held-out folds where there are few entities (None otherwise), with the answers about those,
    ``held_out`` [E, V]. ``converged`` is the optimiser's own word."""

    parameters: RobustParameters
    entities: int
    nll_before: float
    nll_after: float
    nll_cross_fitted: float | None
    converged: bool
    held_out: FloatArray | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, without the answers."""
        plain = asdict(replace(self, held_out=None))
        del plain["held_out"]
        return plain


def fit_robust(
    data: LabelledFactors, *, generator: np.random.Generator, cross_fit: bool = True
) -> CalibrationFit:
    """Fits on random subsets of every size. The generator draws subsets and folds. ``cross_fit``
    may be left out where only the fit is wanted: it costs five more."""
    _refuse_impossible(data)
    parameters, converged = _maximise(data.subsets(generator))
    few = cross_fit and FOLDS <= len(data.labels) < CROSS_FIT_BELOW
    held_out = _cross_fitted(data, generator) if few else None
    return CalibrationFit(
        parameters,
        len(data.labels),
        mean_nll(data, RobustParameters()),
        mean_nll(data, parameters),
        None if held_out is None else _summed_loss(held_out, data.labels) / len(data.labels),
        converged,
        held_out,
    )


def mean_nll(data: LabelledFactors, parameters: RobustParameters) -> float:
    """Mean negative log-likelihood of the labels."""
    return _summed_loss(answered(data, parameters), data.labels) / len(data.labels)


def answered(data: LabelledFactors, parameters: RobustParameters) -> FloatArray:
    """Of whole entities, [E, V]."""
    return _answered(data, _safe_log(data.potential), parameters)


def _cross_fitted(data: LabelledFactors, generator: np.random.Generator) -> FloatArray:
    """Every entity answered with what was fitted to others."""
    folds = generator.permutation(len(data.labels)) % FOLDS
    answers = np.empty((len(data.labels), data.potential.shape[1]))
    for fold in range(FOLDS):
        kept, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        fitted, _ = _maximise(data.select(kept).subsets(generator))
        answers[held] = answered(data.select(held), fitted)
    return answers


def _refuse_impossible(data: LabelledFactors) -> None:
    """No parameter can give probability to a label whose prior is zero."""
    prior = np.broadcast_to(data.log_prior, (len(data.labels), data.potential.shape[1]))
    zero = np.flatnonzero(np.isneginf(prior[np.arange(len(data.labels)), data.labels]))
    if len(zero):
        raise EvidenceError(
            f"calibration: the prior gives the labels at positions {zero[:10].tolist()} "
            "probability zero; correct the labels or the prior."
        )


def _maximise(data: LabelledFactors) -> tuple[RobustParameters, bool]:
    from scipy.optimize import minimize

    logs = _safe_log(data.potential)
    seen = _seen_credibility(data.credibility)
    start = np.array([0.0, float(logit(np.float64(DEFAULT_RHO))), _prior_epsilon(), 0.5])

    def loss(point: FloatArray) -> float:
        found = _answered(data, logs, _parameters(point, seen))
        return _summed_loss(found, data.labels) + _penalty(point)

    known = bool(np.isfinite(data.credibility).any())
    bounds = [(-3.0, 3.0), (-9.0, 9.0), (-9.0, 9.0), (0.0, 5.0 if known else 0.0)]
    result = minimize(loss, start, method="L-BFGS-B", bounds=bounds)
    return _parameters(result.x, seen), bool(result.success)


def _parameters(point: FloatArray, seen: Mapping[str, float]) -> RobustParameters:
    return RobustParameters(
        temperature=float(np.exp(point[0])),
        rho=float(expit(point[1])),
        epsilon=float(expit(point[2])),
        slope=float(point[3]),
        fitted=True,
        **seen,
    )


def _penalty(point: FloatArray) -> float:
    """Minus the logarithm of the prior."""
    deviations = (
        point[0] / LOG_TEMPERATURE_SD,
        (point[1] - float(logit(np.float64(DEFAULT_RHO)))) / LOGIT_RHO_SD,
        (point[2] - _prior_epsilon()) / LOGIT_EPSILON_SD,
        point[3] / SLOPE_SD,
    )
    return float(0.5 * sum(deviation**2 for deviation in deviations))


def _answered(data: LabelledFactors, logs: FloatArray, parameters: RobustParameters) -> FloatArray:
    return combine_robust(
        np.exp(log_tempered(logs, parameters.temperature)),
        data.credibility,
        data.shares,
        data.log_prior,
        data.segments,
        parameters,
        data.groups,
    ).distribution


def _summed_loss(answers: FloatArray, labels: NDArray[np.intp]) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.log(answers[np.arange(len(labels)), labels]).sum())


def _prior_epsilon() -> float:
    return float(logit(np.float64(DEFAULT_EPSILON)))


def _seen_credibility(credibility: FloatArray) -> dict[str, float]:
    """Its centre and the highest, as parameters."""
    known = np.clip(credibility[np.isfinite(credibility)], *CREDIBILITY_BOUNDS)
    if not len(known):
        return {}
    return {"centre": float(logit(known).mean()), "highest": float(known.max())}


def _safe_log(potential: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(potential)
