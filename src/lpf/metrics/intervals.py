"""Confidence intervals and p-values for differences between methods, by the bootstrap.


Seeds are drawn with replacement. Entities are not: in each draw every entity gets a weight from the
exponential distribution, the same in all seeds that contain it. This is the Bayesian bootstrap; its
variance is E/(E+1) times that of drawing entities with replacement. It needs no special case for
seeds that share all, some or none of their entities, and no seed is ever left without entities.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ConfigError, EvidenceError, NonFiniteError
from lpf.types import FloatArray

# Draws are made in blocks of about this many weights (8 MB).
BLOCK = 1 << 20


@dataclass(frozen=True)
class Resampled:
    """D draws from S seeds: ``means`` [D, S, C] of each seed's C columns under the weights of the
    draw, and ``shares`` [D, S], how often each seed was drawn, divided by S."""

    means: FloatArray
    shares: FloatArray

    def over_seeds(self) -> FloatArray:
        """[D, C], mean over the seeds drawn."""
        return np.asarray(np.einsum("ds,dsc->dc", self.shares, self.means))


def resampled(
    columns: Sequence[FloatArray],
    entities: Sequence[Sequence[Hashable]],
    generator: np.random.Generator,
    draws: int,
) -> Resampled:
    """``columns`` has finite numbers [E_s, C] per seed, ``entities`` the names of the E_s rows.
    Rows with the same name belong to the same entity, in any seed."""
    if draws < 1:
        raise ConfigError(f"draws: must be 1 or above, got {draws!r}.")
    places, size = _numbered(entities)
    block = max(1, BLOCK // size)
    parts = [
        _drawn(columns, places, generator.standard_exponential((min(block, draws - begin), size)))
        for begin in range(0, draws, block)
    ]
    return Resampled(np.concatenate(parts), _shares(len(columns), generator, draws))


def _numbered(entities: Sequence[Sequence[Hashable]]) -> tuple[list[NDArray[np.intp]], int]:
    """The number of each row's entity, and the number of entities."""
    numbers: dict[Hashable, int] = {}
    places = [
        np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)
        for names in entities
    ]
    return places, len(numbers)


def _drawn(
    columns: Sequence[FloatArray], places: Sequence[NDArray[np.intp]], weights: FloatArray
) -> FloatArray:
    """[D, S, C] under ``weights`` [D, E]."""
    means = []
    for values, rows in zip(columns, places, strict=True):
        own = weights.take(rows, axis=1)
        means.append((own @ values) / own.sum(axis=1, keepdims=True))
    return np.stack(means, axis=1)


def _shares(seeds: int, generator: np.random.Generator, draws: int) -> FloatArray:
    """[D, S]; all ones for a single seed."""
    return np.asarray(generator.multinomial(seeds, np.full(seeds, 1.0 / seeds), size=draws) / seeds)


DRAWS = 10_000
LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """A mean difference with its percentile interval [low, high] at ``level``. ``p_value`` is
    two-sided, for a difference of 0: twice the smaller share of draws on either side of it."""

    mean: float
    low: float
    high: float
    level: float
    p_value: float


def paired_difference(
    first: FloatArray,
    second: FloatArray,
    generator: np.random.Generator,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Difference:
    """Mean of ``first - second``, losses of two methods on the same entities [E], or on the same
    seeds and entities [S, E].

    Entities are resampled as described above, the same for both methods. With more than one seed,
    seeds are resampled too: the interval then covers other seeds as well as other entities.
    """
    differences = list(_differences(first, second)[:, :, None])
    entities = range(len(differences[0]))
    return mean_differences(
        differences, [entities] * len(differences), generator, draws=draws, level=level
    )[0]


def mean_differences(
    differences: Sequence[FloatArray],
    entities: Sequence[Sequence[Hashable]],
    generator: np.random.Generator,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> list[Difference]:
    """The mean over seeds of their mean differences, for M pairs of methods at once.

    ``differences`` has finite numbers [E_s, M] per seed, ``entities`` the names of its rows.
    Seeds may have the same entities, others, or some in common; all M pairs use the same draws.
    If five seeds differ much more than their entities explain, the interval is too narrow (a 95 %
    interval covered 85 % in simulations); if seeds with different entities do not differ at all, it
    is too wide (99 %).
    """
    drawn = resampled(differences, entities, generator, draws).over_seeds()
    means = np.mean([rows.mean(axis=0) for rows in differences], axis=0)
    lows, highs = percentiles(drawn, level)
    return [
        Difference(float(mean), float(low), float(high), level, _two_sided(column))
        for mean, low, high, column in zip(means, lows, highs, drawn.T, strict=True)
    ]


def percentiles(drawn: FloatArray, level: float = LEVEL) -> tuple[FloatArray, FloatArray]:
    """The ends of the middle ``level`` of draws [D, ...], as two arrays [...]."""
    if not 0.0 < level < 1.0:
        raise ConfigError(f"level: must be above 0 and below 1, got {level!r}.")
    low, high = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return np.asarray(low), np.asarray(high)


def share_interval(hits: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """95 % intervals of shares, hits of counts, by Wilson's formula."""
    z = 1.959964
    shares, extra = hits / counts, z * z / counts
    middle = (shares + extra / 2.0) / (1.0 + extra)
    half = np.sqrt(shares * (1.0 - shares) * extra + extra * extra / 4.0) / (1.0 + extra)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's adjusted p-values [M], in the given order. Rejecting those at or below a level bounds
    the chance of any false rejection among the M by that level."""
    given = np.asarray(p_values, dtype=np.float64)
    if given.ndim != 1 or not ((given >= 0.0) & (given <= 1.0)).all():
        raise EvidenceError(
            f"p_values: must be a row of numbers in [0, 1], got {given}. Nothing was adjusted."
        )
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """[S, E]; one row if the losses have no axis of seeds."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape or one.ndim not in (1, 2) or not one.size:
        raise EvidenceError(
            f"losses: {one.shape} and {other.shape} cannot be paired. Nothing was compared; give "
            "both as [entities] or as [seeds, entities], not empty."
        )
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise NonFiniteError(
            "losses: not all are finite, so they have no mean difference. Nothing was compared; a "
            "log loss is infinite if the label was given probability 0."
        )
    return np.atleast_2d(one - other)


def _two_sided(means: FloatArray) -> float:
    """Both shares count the observed sample as one more draw, so that neither is ever 0."""
    below = (int((means <= 0.0).sum()) + 1) / (len(means) + 1)
    above = (int((means >= 0.0).sum()) + 1) / (len(means) + 1)
    return min(1.0, 2.0 * min(below, above))
