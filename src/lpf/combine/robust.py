"""Robust mode, the default: a product of tempered likelihood ratios.

    Φ'ᵢ = (1-εᵢ)·Φᵢ + εᵢ·π      with probability εᵢ the item carries no information
    λᵢ  = Φ'ᵢ / π                likelihood ratio; its mean under π is 1
    aᵢ  = dᵢ / (1 + (K_eff-1)·ρ) dᵢ = fᵢ·uᵢ/(copies of i), K_eff = Σ dᵢ, ρ: shared error of items
    P(y | E, F) ∝ P_circuit(y, F) · Π λᵢ(y)^(t·aᵢ)

fᵢ is the item's familiarity: 1 for a text like those the model was trained on, 0 for one unlike all
of them. uᵢ is its relevance, how much it says about its claim; 1 unless the model was trained with
it. A head may know what it means that texts say nothing of the claim, the answer s: the unused
exponent 1 - Σ aᵢ then goes to s/π, divided among the items by how silent they are. t is how far
evidence is trusted as a whole, 1 unless the model was fitted to entities of few groups. With
``source_epsilon`` ε_s > 0, a source may be unreliable as a whole: the product over its
items becomes (1-ε_s)·Π λᵢ^aᵢ + ε_s. If the model was trained with it, the product has one more
factor Λ(y): which stances occur among the items (see ``occurrence``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.combine.combined import Combined, normalised
from lpf.combine.occurrence import occurrence_contributions
from lpf.errors import ConfigError, EvidenceError
from lpf.items import Segments
from lpf.types import FloatArray

DEFAULT_EPSILON = 0.1
DEFAULT_RHO = 0.05
# Credibilities are clipped to these bounds: 0 and 1 have an infinite logit.
CREDIBILITY_BOUNDS = (0.001, 0.999)


@dataclass(frozen=True)
class RobustParameters:
    """Parameters of robust mode. Without a fit, εᵢ is 1 - credibility, or ``epsilon`` if unknown.

    With a fit, logit εᵢ = logit(epsilon) - slope·(logit credibilityᵢ - centre): ``epsilon`` applies
    to items of typical or unknown credibility, and slope 0 means that credibility has no effect.
    Credibilities above ``highest``, the highest value in the fit, count as ``highest``. ``trust``
    multiplies what all items contribute.
    """

    temperature: float = 1.0
    rho: float = DEFAULT_RHO
    epsilon: float = DEFAULT_EPSILON
    slope: float = 0.0
    centre: float = 0.0
    fitted: bool = False
    source_epsilon: float = 0.0
    highest: float = CREDIBILITY_BOUNDS[1]
    trust: float = 1.0

    def __post_init__(self) -> None:
        for name, holds, rule in (
            ("temperature", 0.0 < self.temperature < np.inf, "above 0"),
            ("rho", 0.0 <= self.rho <= 1.0, "in [0, 1]"),
            ("epsilon", 0.0 <= self.epsilon <= 1.0, "in [0, 1]"),
            ("slope", 0.0 <= self.slope < np.inf, "0 or above"),
            ("centre", bool(np.isfinite(self.centre)), "finite"),
            ("source_epsilon", 0.0 <= self.source_epsilon < 1.0, "in [0, 1)"),
            ("highest", 0.0 < self.highest < 1.0, "between 0 and 1"),
            ("trust", 0.0 <= self.trust <= 1.0, "in [0, 1]"),
        ):
            if not holds:
                raise ConfigError(
                    f"must be {rule}, got {getattr(self, name)!r}.", field=f"robust.{name}"
                )

    def to_dict(self) -> dict[str, float]:
        """Without ``trust`` if it is full, so that records stay as they were before there was
        any."""
        numbers = {name: float(value) for name, value in asdict(self).items()}
        if self.trust == 1.0:
            del numbers["trust"]
        return numbers

    @classmethod
    def from_dict(cls, numbers: Mapping[str, float]) -> RobustParameters:
        known = {field.name for field in fields(cls)}
        unknown = sorted(numbers.keys() - known)
        if unknown:
            raise ConfigError(
                f"unknown parameters {unknown}; choose from {sorted(known)}.", field="robust"
            )
        plain: dict[str, Any] = dict(numbers)
        return cls(**plain | {"fitted": bool(plain.get("fitted", False))})

    def item_epsilon(self, credibility: FloatArray) -> FloatArray:
        """Return εᵢ [N] for credibilities [N] (NaN if unknown)."""
        unknown = np.isnan(credibility)
        if not self.fitted:
            return np.where(unknown, self.epsilon, 1.0 - credibility)
        bounded = np.clip(np.where(unknown, 0.5, credibility), CREDIBILITY_BOUNDS[0], self.highest)
        distance = np.where(unknown, 0.0, logit(bounded) - self.centre)
        return expit(logit(np.float64(self.epsilon)) - self.slope * distance)


def logit(share: FloatArray | np.float64) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share) - np.log1p(-share))


def expit(score: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), without overflow."""
    decay = np.exp(-np.abs(score))
    return np.asarray(np.where(score >= 0, 1.0, decay) / (1.0 + decay))


def copy_discount(groups: NDArray[np.int64] | None, segments: Segments, count: int) -> FloatArray:
    """Return dᵢ = 1/(size of i's group of copies). ``groups`` [N] number the groups of an entity;
    -1 marks an item without copies."""
    discount = np.ones(count)
    if groups is None:
        return discount
    if len(groups) != count:
        raise EvidenceError(f"got {len(groups)} group numbers for {count} items.")
    copied = np.flatnonzero(groups >= 0)
    if not len(copied):
        return discount
    pairs = np.stack([segments.owner[copied], groups[copied]], axis=1)
    _, members, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    discount[copied] = 1.0 / sizes[members.reshape(-1)]
    return discount


def distinctness(
    groups: NDArray[np.int64] | None,
    familiarity: FloatArray | None,
    segments: Segments,
    count: int,
) -> FloatArray:
    """How much of each item is neither a copy nor unfamiliar [N]."""
    discount = copy_discount(groups, segments, count)
    return discount if familiarity is None else discount * familiarity


def exponents(discount: FloatArray, rho: float, segments: Segments) -> FloatArray:
    """Return aᵢ = dᵢ / (1 + (K_eff - 1)·ρ), [N]."""
    effective = segments.sum(discount)
    # The denominator must not fall below 1 if K_eff < 1.
    shared = 1.0 + np.maximum(effective - 1.0, 0.0) * rho
    return discount / shared[segments.owner]


def log_likelihood_ratios(
    potential: FloatArray, epsilon: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return log λᵢ [N, V]; -inf only if Φ and ε are 0 (the item rules the value out)."""
    ratio = (1.0 - epsilon)[:, None] * (potential / shares) + epsilon[:, None]
    with np.errstate(divide="ignore"):
        return np.log(ratio)


def combine_robust(
    potential: FloatArray,
    credibility: FloatArray,
    shares: FloatArray,
    log_prior: FloatArray,
    segments: Segments,
    parameters: RobustParameters,
    groups: NDArray[np.int64] | None = None,
    sources: NDArray[np.int64] | None = None,
    familiarity: FloatArray | None = None,
    relevance: FloatArray | None = None,
    silent: FloatArray | None = None,
    stances: FloatArray | None = None,
    ratios: FloatArray | None = None,
) -> Combined:
    """Combine factors ``potential`` [N, V], computed at the fitted temperature.

    ``credibility`` [N] (NaN if unknown), ``shares`` [V] the model's π, ``log_prior`` [E, V] or [V]
    the circuit's joint with the known facts. ``groups`` and ``sources`` [N] number the groups of
    copies and the sources of an entity, -1 for none. ``familiarity`` and ``relevance`` [N] are 1
    for all if None. ``silent`` [V] is s, above 0; None for a head without it. With ``stances``
    [N, 3] and ``ratios`` [4, V], Λ is part of the product.
    """
    segments.check(len(potential))
    distinct = distinctness(groups, familiarity, segments, len(potential))
    discount, quiet = distinct, None
    if relevance is not None:
        discount, quiet = distinct * relevance, distinct * (1.0 - relevance)
    contributions, parts = item_contributions(
        potential, credibility, shares, segments, parameters, discount, quiet, silent
    )
    if sources is not None and parameters.source_epsilon > 0.0:
        contributions = _with_source_switch(
            contributions, sources, segments, parameters.source_epsilon
        )
    if stances is not None and ratios is not None:
        contributions = contributions + occurrence_contributions(
            stances, distinct, segments, ratios
        )
    if parameters.trust != 1.0:
        contributions = trusted(contributions, parameters.trust)
        parts["exponent"] = parameters.trust * parts["exponent"]
    return normalised(log_prior, contributions, segments, parts)


def trusted(contributions: FloatArray, trust: float) -> FloatArray:
    """``trust`` times the contributions [N, V]. Evidence that is not trusted at all does not even
    rule a value out: 0 * -inf is no number."""
    return np.zeros_like(contributions) if trust == 0.0 else trust * contributions


def item_contributions(
    potential: FloatArray,
    credibility: FloatArray,
    shares: FloatArray,
    segments: Segments,
    parameters: RobustParameters,
    discount: FloatArray,
    quiet: FloatArray | None = None,
    silent: FloatArray | None = None,
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """aᵢ·log λᵢ [N, V], and what it was computed from. ``discount`` [N] is d. With ``silent``, the
    unused exponent is divided in proportion to ``quiet`` [N]."""
    exponent = exponents(discount, parameters.rho, segments)
    epsilon = parameters.item_epsilon(credibility)
    log_ratio = log_likelihood_ratios(potential, epsilon, shares)
    # An item that does not count must not even rule a value out: 0 * -inf is no number.
    contributions = exponent[:, None] * _zero_where(discount <= 0.0, log_ratio)
    if silent is not None and quiet is not None:
        unused = _unused(exponent, quiet, segments)
        contributions = contributions + unused[:, None] * np.log(silent / shares)
    parts = {
        "epsilon": epsilon,
        "discount": discount,
        "exponent": exponent,
        "log_ratio": log_ratio,
    }
    return contributions, parts


def _unused(exponent: FloatArray, quiet: FloatArray, segments: Segments) -> FloatArray:
    """1 - Σ aᵢ of each entity, divided among its items in proportion to ``quiet``, [N]."""
    left = np.maximum(1.0 - segments.sum(exponent), 0.0)
    total = segments.sum(quiet)
    share = np.divide(left, total, out=np.zeros_like(left), where=total > 0.0)
    return np.asarray(quiet * share[segments.owner])


def _zero_where(out: NDArray[np.bool_], rows: FloatArray) -> FloatArray:
    return np.where(out[:, None], 0.0, rows) if out.any() else rows


def _with_source_switch(
    contributions: FloatArray, sources: NDArray[np.int64], segments: Segments, epsilon: float
) -> FloatArray:
    """Replace the sum of each source's contributions by log((1-ε)·exp(Σ) + ε).

    The correction is divided evenly among its items, so that contributions still add up to the
    answer.
    """
    named = np.flatnonzero(sources >= 0)
    pairs = np.stack([segments.owner[named], sources[named]], axis=1)
    _, member, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    member = member.reshape(-1)
    total = np.zeros((len(sizes), contributions.shape[1]))
    np.add.at(total, member, contributions[named])
    switched = np.logaddexp(np.log1p(-epsilon) + total, np.log(epsilon))
    result = contributions.copy()
    finite = np.isfinite(total)
    correction = np.where(finite, switched - np.where(finite, total, 0.0), 0.0) / sizes[:, None]
    result[named] += correction[member]
    # If a source rules a value out (Σ = -inf), what remains is log ε.
    ruled_out = ~finite[member]
    result[named] = np.where(ruled_out, (switched / sizes[:, None])[member], result[named])
    return result
