"""Calibration: parameters fitted on validation entities.

`fit_robust` fits the parameters T, ρ and ε of robust mode together (maximum a posteriori). It uses
each entity with random subsets of its items, of every size: with whole entities alone, "each item
is overconfident" and "the items share their errors" look the same. `fit_temperature` fits a single
temperature to the answers of any other method.

If the entities are of few groups, groups count, not entities (see `metrics.groups`), and how far
evidence is trusted is fitted as well: what holds within the groups known so far may not hold in the
next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lpf.combine.combined import normalised
from lpf.combine.occurrence import log_occurrence
from lpf.combine.robust import (
    CREDIBILITY_BOUNDS,
    RobustParameters,
    combine_robust,
    distinctness,
    expit,
    item_contributions,
    logit,
    trusted,
)
from lpf.errors import EvidenceError
from lpf.factors.distributions import log_tempered
from lpf.items import Segments
from lpf.metrics.groups import Groups, group_weights, standard_error, weighted_mean
from lpf.metrics.intervals import mean_differences
from lpf.types import FloatArray

MAX_SIZES = 20  # subset sizes per entity

# Standard deviations of the priors; without priors the fit diverges if almost no answer is wrong.
LOG_TEMPERATURE_SD = 0.5
LOGIT_RHO_SD = 1.0
LOGIT_EPSILON_SD = 1.0
SLOPE_SD = 1.0  # half-normal: a higher credibility never makes an item count less
_LOG_TEMPERATURE_BOUNDS = (-5.0, 5.0)
# Where the priors are centred for factors that were trained to be averaged: they share their errors
# by construction, and items that say nothing were part of their training.
POOLED_RHO = 0.95
POOLED_EPSILON = 0.01

THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(1, 10))  # of credibility, to choose from
# A threshold must leave out items of this many entities: the bootstrap takes the same change in a
# handful of them for certain.
FEWEST_AFFECTED = 10
THRESHOLD_DRAWS = 2000  # of the bootstrap that compares them

CROSS_FIT_BELOW = 500  # with fewer entities, the NLL is also measured on held-out folds
FOLDS = 5
FEWEST_JUDGED = 20  # with fewer entities, held-out folds tell nothing and the priors decide
# What may be fitted, from nothing to everything: temperature, ρ, ε, slope. With few entities, the
# answers on held-out folds decide how much of it is.
Freedom = Literal["nothing", "temperature", "everything"]
_FREE: Mapping[Freedom, tuple[bool, ...]] = {
    "nothing": (False, False, False, False),
    "temperature": (True, False, False, False),
    "everything": (True, True, True, True),
}
TRUSTS = tuple(round(0.05 * step, 2) for step in range(21))  # to choose from
# In simulations with 4 to 20 groups that differ in their shares and in what evidence means there,
# none lost more where evidence says nothing elsewhere, and 1 or 2 lost more where it does.
DOUBT = 0.5


@dataclass(frozen=True)
class LabelledFactors:
    """Factors and labels of validation entities.

    ``potential`` is Φ at T = 1 [N, V], ``credibility`` [N] (NaN if unknown), ``labels`` [E],
    ``shares`` the class shares π of the model [V], ``log_prior`` [V], or [E, V] if it differs by
    entity (known facts), ``groups`` the groups of copies [N], ``familiarity`` how like the training
    texts the items are [N] (None: all have their full weight), ``trained_rho`` 1 for factors that
    were trained to be averaged in log space, 0 for factors trained item by item, ``relevance`` how
    much the items say about their claims [N] (None: they do not count by it), ``silent`` the answer
    if none says anything [V] (None: the prior). With ``stances`` [N, 3] and ``ratios`` ([4, V], or
    [E, 4, V] if they differ by entity), which stances occur is part of the answer.
    ``entity_groups`` [E] are the numbers of the entities' groups, None unless these are few, and
    ``weights`` [E] what each entity counts (None: the same).
    """

    potential: FloatArray
    credibility: FloatArray
    segments: Segments
    labels: NDArray[np.intp]
    shares: FloatArray
    log_prior: FloatArray
    groups: NDArray[np.int64] | None = None
    familiarity: FloatArray | None = None
    trained_rho: float = 0.0
    relevance: FloatArray | None = None
    silent: FloatArray | None = None
    stances: FloatArray | None = None
    ratios: FloatArray | None = None
    entity_groups: Groups | None = None
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        self.segments.check(len(self.potential))
        if len(self.labels) != len(self.segments) or len(self.segments) == 0:
            raise EvidenceError(
                f"calibration: got {len(self.labels)} labels for {len(self.segments)} entities; "
                "needs one label per entity and at least one entity."
            )
        if self.labels.min() < 0 or self.labels.max() >= self.potential.shape[1]:
            raise EvidenceError(
                f"calibration: labels must be 0 to {self.potential.shape[1] - 1}, got "
                f"{int(self.labels.min())} to {int(self.labels.max())}."
            )
        if (self.segments.counts == 0).any():
            empty = np.flatnonzero(self.segments.counts == 0)[:10].tolist()
            raise EvidenceError(f"calibration: entities at positions {empty} have no evidence.")

    def select(self, entities: NDArray[np.intp]) -> LabelledFactors:
        """Return some of the entities, with their items."""
        starts, counts = self.segments.offsets[entities], self.segments.counts[entities]
        rows = np.concatenate(
            [np.arange(s, s + c) for s, c in zip(starts, counts, strict=True)]
        ).astype(np.intp)
        return self._rows(rows, Segments.of_counts(counts), entities)

    def subsets(self, generator: np.random.Generator) -> LabelledFactors:
        """Return random subsets of the items: one of every size for every entity."""
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
            familiarity=None if self.familiarity is None else self.familiarity[rows],
            relevance=None if self.relevance is None else self.relevance[rows],
            stances=None if self.stances is None else self.stances[rows],
            ratios=self._ratios_of(entities),
            entity_groups=None if self.entity_groups is None else self.entity_groups[entities],
            weights=None if self.weights is None else self.weights[entities],
        )

    def by_group(self) -> LabelledFactors:
        """The same, with entities weighted by their groups, if these are few."""
        if self.entity_groups is None:
            return self
        return replace(self, weights=group_weights(self.labels, self.entity_groups))

    def _ratios_of(self, entities: NDArray[np.intp]) -> FloatArray | None:
        ratios = self.ratios
        return ratios[entities] if ratios is not None and ratios.ndim == 3 else ratios

    @cached_property
    def _distinct(self) -> FloatArray:
        return distinctness(self.groups, self.familiarity, self.segments, len(self.potential))

    # What depends on no fitted parameter is computed once, not in each step of a fit.
    @cached_property
    def discount(self) -> FloatArray:
        """d of each item [N]."""
        return self._distinct if self.relevance is None else self._distinct * self.relevance

    @cached_property
    def quiet(self) -> FloatArray | None:
        """How much of each item says nothing [N]; None if items do not count by relevance."""
        return None if self.relevance is None else self._distinct * (1.0 - self.relevance)

    @cached_property
    def occurrence(self) -> FloatArray | float:
        """log Λ, what follows from which stances occur, [E, V]; 0 if that is not part of the
        answer."""
        if self.stances is None or self.ratios is None:
            return 0.0
        return log_occurrence(self.stances, self._distinct, self.segments, self.ratios)


@dataclass(frozen=True)
class CalibrationFit:
    """The fitted parameters, and the mean NLL of whole entities before and after the fit, weighted
    by their groups if these are few.

    With few entities or groups, ``nll_cross_fitted`` is the NLL on held-out folds and ``held_out``
    [E, V] are the answers there; None otherwise. ``fitted`` is how much was fitted: with few
    entities, what helped on held-out folds. ``converged`` is reported by the optimiser. ``groups``
    is how many there are, if few.
    """

    parameters: RobustParameters
    entities: int
    nll_before: float
    nll_after: float
    nll_cross_fitted: float | None
    converged: bool
    fitted: Freedom = "everything"
    held_out: FloatArray | None = field(default=None, compare=False, repr=False)
    groups: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, without ``held_out``."""
        plain = asdict(replace(self, held_out=None))
        del plain["held_out"]
        return plain


def fit_robust(
    data: LabelledFactors, *, generator: np.random.Generator, cross_fit: bool = True
) -> CalibrationFit:
    """Fit the parameters of robust mode. The generator draws subsets and folds.

    ``cross_fit=False`` skips the five additional fits on held-out folds.
    """
    _refuse_impossible(data)
    data = data.by_group()
    subsets = data.subsets(generator)
    fitted: Freedom = "everything"
    held_out: FloatArray | None = None
    trust = 1.0
    if cross_fit and _is_cross_fitted(data):
        fitted, held_out = _cross_fitted(data, generator)
        if data.entity_groups is not None:
            trust = _chosen_trust(data, held_out)
            held_out = _without_own_trust(data, held_out)
    parameters, converged = _maximise(subsets, fitted)
    parameters = replace(parameters, trust=trust)
    return CalibrationFit(
        parameters,
        len(data.labels),
        mean_nll(data, _unfitted(data.trained_rho)),
        mean_nll(data, parameters),
        None if held_out is None else _mean_loss(held_out, data),
        converged,
        fitted,
        held_out,
        None if data.entity_groups is None else len(np.unique(data.entity_groups)),
    )


def _is_cross_fitted(data: LabelledFactors) -> bool:
    if data.entity_groups is not None:
        return len(np.unique(data.entity_groups)) > 1
    return FOLDS <= len(data.labels) < CROSS_FIT_BELOW


def _chosen_trust(data: LabelledFactors, held_out: FloatArray) -> float:
    """How far answers about groups that they were not fitted to, ``held_out`` [E, V], are to be
    trusted: the share of the evidence whose gain over the prior, less ``DOUBT`` standard errors
    over groups, is largest."""
    weights = np.ones(len(data.labels)) if data.weights is None else data.weights
    prior = _log_losses(_at_trust(data, held_out, 0.0), data.labels)

    def pessimistic(trust: float) -> float:
        change = _log_losses(_at_trust(data, held_out, trust), data.labels) - prior
        error = standard_error(change, weights, data.entity_groups)
        return weighted_mean(change, weights) + DOUBT * error

    return min(TRUSTS, key=pessimistic)


def _without_own_trust(data: LabelledFactors, held_out: FloatArray) -> FloatArray:
    """``held_out`` [E, V], each at the trust that the other groups suggest."""
    assert data.entity_groups is not None  # otherwise there is no trust to choose
    found = held_out.copy()
    for group in np.unique(data.entity_groups):
        own = np.flatnonzero(data.entity_groups == group)
        others = np.flatnonzero(data.entity_groups != group)
        trust = _chosen_trust(data.select(others), held_out[others])
        found[own] = _at_trust(data.select(own), held_out[own], trust)
    return found


def _at_trust(data: LabelledFactors, answers: FloatArray, trust: float) -> FloatArray:
    """``answers`` [E, V] of full trust if what evidence says is multiplied by ``trust``."""
    base = np.broadcast_to(data.log_prior, answers.shape)
    if trust in (0.0, 1.0):
        return answers if trust else np.exp(base - np.logaddexp.reduce(base, axis=1)[:, None])
    logs = (1.0 - trust) * base + trust * _safe_log(answers)
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None]))


def choose_threshold(
    data: LabelledFactors, parameters: RobustParameters, generator: np.random.Generator
) -> float:
    """The credibility below which items are left out of a question, 0 for none.

    Robust mode counts items of low credibility less already, so a threshold has to help beyond
    that: its NLL must be lower than without it, beyond chance (95 % interval of the paired
    difference over entities, corrected for the number of thresholds tried). It is 0 if the fit
    found that credibility says nothing, and for fewer than ``FEW_ENTITIES`` entities; thresholds
    that leave out items of fewer than ``FEWEST_AFFECTED`` entities are not tried.
    """
    if parameters.slope == 0.0 or len(data.labels) < FEW_ENTITIES:
        return 0.0
    left_out = {least: data.credibility < least for least in THRESHOLDS}
    # Of thresholds that leave out the same items, the lowest is tried: dicts keep the last one.
    by_size = {int(rows.sum()): least for least, rows in reversed(left_out.items())}
    tried = sorted(
        least
        for size, least in by_size.items()
        if size < len(data.potential)
        and len(np.unique(data.segments.owner[left_out[least]])) >= FEWEST_AFFECTED
    )
    if not tried:
        return 0.0
    plain = _log_losses(robust_answers(data, parameters), data.labels)
    changes = [
        _log_losses(_answers_from(data, np.flatnonzero(~left_out[one]), parameters), data.labels)
        for one in tried
    ]
    differences = mean_differences(
        [np.stack(changes, axis=1) - plain[:, None]],
        [range(len(plain))],
        generator,
        draws=THRESHOLD_DRAWS,
        level=1.0 - 0.05 / len(tried),
    )
    better = [
        (one.mean, least) for one, least in zip(differences, tried, strict=True) if one.high < 0
    ]
    return min(better)[1] if better else 0.0


def _answers_from(
    data: LabelledFactors, rows: NDArray[np.intp], parameters: RobustParameters
) -> FloatArray:
    """Answers [E, V] from some of the items; the prior for an entity that has none of them."""
    counts = np.bincount(data.segments.owner[rows], minlength=len(data.segments))
    return combine_robust(
        np.exp(log_tempered(_safe_log(data.potential[rows]), parameters.temperature)),
        data.credibility[rows],
        data.shares,
        data.log_prior,
        Segments.of_counts(counts),
        parameters,
        None if data.groups is None else data.groups[rows],
        familiarity=None if data.familiarity is None else data.familiarity[rows],
        relevance=None if data.relevance is None else data.relevance[rows],
        silent=data.silent,
        stances=None if data.stances is None else data.stances[rows],
        ratios=data.ratios,
    ).distribution


def mean_nll(data: LabelledFactors, parameters: RobustParameters) -> float:
    """Return the mean negative log-likelihood of the labels."""
    return _mean_loss(robust_answers(data, parameters), data)


def robust_answers(data: LabelledFactors, parameters: RobustParameters) -> FloatArray:
    """Return the answers of robust mode for whole entities, [E, V]."""
    return _combine(data, _safe_log(data.potential), parameters)


def _cross_fitted(
    data: LabelledFactors, generator: np.random.Generator
) -> tuple[Freedom, FloatArray]:
    """How much to fit, and the answers [E, V] with that, each from parameters fitted to the other
    folds. Less than everything is fitted only if that is better by more than a standard error: in
    simulations with 20 to 120 entities, the priors alone kept most fits from doing harm."""
    units = np.arange(len(data.labels))
    if data.entity_groups is not None:
        units = np.unique(data.entity_groups, return_inverse=True)[1]
    count = int(units.max()) + 1
    folds = (generator.permutation(count) % FOLDS)[units]
    shape = (len(data.labels), data.potential.shape[1])
    answers = {freedom: np.empty(shape) for freedom in _FREE}
    for fold in range(min(FOLDS, count)):
        rest, held_out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        subsets, asked = data.select(rest).subsets(generator), data.select(held_out)
        for freedom, found in answers.items():
            found[held_out] = robust_answers(asked, _maximise(subsets, freedom)[0])
    losses = {freedom: _log_losses(found, data.labels) for freedom, found in answers.items()}
    weights = np.ones(len(units)) if data.weights is None else data.weights
    best: Freedom = min(losses, key=lambda one: weighted_mean(losses[one], weights))
    gain = losses["everything"] - losses[best]
    error = standard_error(gain, weights, data.entity_groups)
    if len(gain) < FEWEST_JUDGED or not weighted_mean(gain, weights) > error:
        best = "everything"
    return best, answers[best]


def _refuse_impossible(data: LabelledFactors) -> None:
    """Raise EvidenceError for labels with prior zero: no parameters can explain them."""
    prior = np.broadcast_to(data.log_prior, (len(data.labels), data.potential.shape[1]))
    zero = np.flatnonzero(np.isneginf(prior[np.arange(len(data.labels)), data.labels]))
    if len(zero):
        raise EvidenceError(
            f"calibration: the prior gives the labels at positions {zero[:10].tolist()} "
            "probability zero. Correct the labels or the prior."
        )


def _maximise(data: LabelledFactors, fitted: Freedom) -> tuple[RobustParameters, bool]:
    """Fit the parameters that are free; the others stay at the centre of their priors."""
    from scipy.optimize import minimize

    logs = _safe_log(data.potential)
    seen = _seen_credibility(data.credibility)
    unfitted = _unfitted(data.trained_rho)
    centre = np.array([0.0, *logit(np.array([unfitted.rho, unfitted.epsilon])), 0.0])
    start = centre + np.array([0.0, 0.0, 0.0, 0.5])

    def loss(point: FloatArray) -> float:
        answers = _combine(data, logs, _parameters(point, seen))
        return _summed_loss(answers, data) + _penalty(point - centre)

    known = bool(np.isfinite(data.credibility).any())
    widest = [(-3.0, 3.0), (-9.0, 9.0), (-9.0, 9.0), (0.0, 5.0 if known else 0.0)]
    free = _FREE[fitted]
    if not any(free):
        return _parameters(centre, seen), True
    bounds = [
        bound if is_free else (at, at)
        for bound, is_free, at in zip(widest, free, centre.tolist(), strict=True)
    ]
    result = minimize(loss, np.where(free, start, centre), method="L-BFGS-B", bounds=bounds)
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


def _unfitted(trained_rho: float) -> RobustParameters:
    """The parameters before a fit, which are the centre of the priors."""
    if trained_rho == 0.0:
        return RobustParameters()
    return RobustParameters(rho=POOLED_RHO, epsilon=POOLED_EPSILON)


def _penalty(distance: FloatArray) -> float:
    """Return the negative log prior (up to a constant) at a distance from its centre."""
    spread = np.array([LOG_TEMPERATURE_SD, LOGIT_RHO_SD, LOGIT_EPSILON_SD, SLOPE_SD])
    return float(0.5 * ((distance / spread) ** 2).sum())


def _combine(data: LabelledFactors, logs: FloatArray, parameters: RobustParameters) -> FloatArray:
    contributions, _ = item_contributions(
        np.exp(log_tempered(logs, parameters.temperature)),
        data.credibility,
        data.shares,
        data.segments,
        parameters,
        data.discount,
        data.quiet,
        data.silent,
    )
    trust = parameters.trust
    base = data.log_prior + trust * data.occurrence
    if trust != 1.0:
        contributions = trusted(contributions, trust)
    return normalised(base, contributions, data.segments, {}).distribution


def _summed_loss(answers: FloatArray, data: LabelledFactors) -> float:
    losses = _log_losses(answers, data.labels)
    return float(losses.sum() if data.weights is None else data.weights @ losses)


def _mean_loss(answers: FloatArray, data: LabelledFactors) -> float:
    total = len(data.labels) if data.weights is None else float(data.weights.sum())
    return _summed_loss(answers, data) / total


def _log_losses(answers: FloatArray, labels: NDArray[np.intp]) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(answers[np.arange(len(labels)), labels]))


def _seen_credibility(credibility: FloatArray) -> dict[str, float]:
    """Return ``centre`` and ``highest`` of RobustParameters from the known credibilities."""
    known = np.clip(credibility[np.isfinite(credibility)], *CREDIBILITY_BOUNDS)
    if not len(known):
        return {}
    return {"centre": float(logit(known).mean()), "highest": float(known.max())}


def _safe_log(potential: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(potential)


def draw_subsets(
    segments: Segments, generator: np.random.Generator
) -> tuple[NDArray[np.intp], Segments, NDArray[np.intp]]:
    """Draw one random subset of every size for every entity (at most MAX_SIZES sizes).

    Returns the rows of all subsets, their segments, and the entity of each subset.
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


def fit_temperature(
    distribution: FloatArray,
    labels: NDArray[np.intp],
    prior_sd: float = LOG_TEMPERATURE_SD,
) -> float:
    """Return the temperature that fits distributions [E, V] to labels [E], maximum a posteriori.

    The prior is log T ~ N(0, ``prior_sd``²); use a wide one for answers on another scale.
    """
    from scipy.optimize import minimize_scalar

    if len(distribution) != len(labels) or not len(labels):
        raise EvidenceError(
            f"got {len(labels)} labels for {len(distribution)} answers; needs one label per answer "
            "and at least one answer."
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
            f"answers at positions {impossible} give their label probability zero. No temperature "
            "can change that."
        )
    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURE_BOUNDS, method="bounded").x))


# With fewer entities, a calibrated model cannot be distinguished from one that is off by 15 points.
FEW_ENTITIES = 40


def rough_error(entities: int) -> float:
    """Return half the width of a 95 % interval for a proportion near one half."""
    return min(0.5, 0.98 / math.sqrt(max(1, entities)))
