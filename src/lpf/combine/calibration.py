"""What is fitted on validation data: robust mode's T, ρ and ε, and a temperature for any other.

Validation entities seen with fewer items than they have.

A fit on whole entities alone cannot tell "each item is overconfident" from "the items share their
errors". Random subsets of every size can.

The fit of robust mode's parameters: T, ρ and ε together, by maximum a posteriori.

One temperature after the fact, for any predictor: the fair comparison, and LPF-Learned's.

How rough probabilities are that were fitted on a few entities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from lpf.items import Segments
from lpf.types import FloatArray

MAX_SIZES = 20  # of an entity with more items, that many sizes spread evenly from 1 to K


def draw_subsets(
    segments: Segments, generator: np.random.Generator
) -> tuple[NDArray[np.intp], Segments, NDArray[np.intp]]:
    """One random subset of every size of every entity.

    Returns the rows of all subsets in turn, their segments, and the entity of each subset.
    """
    rows: list[NDArray[np.intp]] = []
    owners: list[int] = []
    for entity, (start, count) in enumerate(
        zip(segments.offsets[:-1], segments.counts, strict=True)
    ):
        for size in _sizes(int(count)):
            rows.append(start + np.sort(generator.permutation(count)[:size]))
            owners.append(entity)
    counts = np.array([len(chosen) for chosen in rows], dtype=np.intp)
    flat = np.concatenate(rows) if rows else np.empty(0, dtype=np.intp)
    return flat.astype(np.intp), Segments.of_counts(counts), np.array(owners, dtype=np.intp)


def _sizes(count: int) -> NDArray[np.intp]:
    if count <= MAX_SIZES:
        return np.arange(1, count + 1)
    return np.unique(np.linspace(1, count, MAX_SIZES).round().astype(np.intp))


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


LOG_TEMPERATURE_SD_TEMPERATURE = (
    0.5  # prior: log T ~ N(0, 0.5²); without it a fit near the ceiling runs away
)
_LOG_BOUNDS = (-5.0, 5.0)


def fit_temperature(
    distribution: FloatArray,
    labels: NDArray[np.intp],
    prior_sd: float = LOG_TEMPERATURE_SD_TEMPERATURE,
) -> float:
    """The temperature [E, V] distributions need to fit the labels [E], by maximum a posteriori.
    ``prior_sd`` is that of log T: answers known to be on another scale need a wide one."""
    from scipy.optimize import minimize_scalar

    if len(distribution) != len(labels) or not len(labels):
        raise EvidenceError(
            f"{len(labels)} labels for {len(distribution)} answers; a temperature needs as many "
            "of one as of the other, and at least one."
        )
    with np.errstate(divide="ignore"):
        logs = np.log(distribution)
    rows = np.arange(len(labels))

    def loss(log_temperature: float) -> float:
        scored = log_tempered(logs, float(np.exp(log_temperature)))[rows, labels]
        return float(-scored.sum() + 0.5 * (log_temperature / prior_sd) ** 2)

    if not np.isfinite(loss(0.0)):
        impossible = np.flatnonzero(np.isneginf(logs[rows, labels]))[:10].tolist()
        raise EvidenceError(
            f"answers at positions {impossible} give their label probability zero; no temperature "
            "can mend that."
        )
    return float(np.exp(minimize_scalar(loss, bounds=_LOG_BOUNDS, method="bounded").x))


__all__ = ["CalibrationFit", "LabelledFactors", "answered", "fit_robust", "fit_temperature"]


# Fewer than this cannot tell a calibrated model from one that is off by 15 points.
FEW_ENTITIES = 40


def rough_error(entities: int) -> float:
    """Half the width of a 95 % interval for a share of about one half: what so few can tell."""
    return min(0.5, 0.98 / math.sqrt(max(1, entities)))
