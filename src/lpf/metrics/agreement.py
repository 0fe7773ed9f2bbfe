"""Krippendorff's alpha for nominal values: how far raters agree beyond chance.

    alpha = 1 - D_o / D_e

is 1 if all agree and 0 if they agree as often as values drawn at random from all that were given.
Any number of raters may have rated each unit; a unit with fewer than two values says nothing. See
Krippendorff, Content Analysis, chapter on reliability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpf.errors import ConfigError
from lpf.metrics.intervals import LEVEL, percentiles
from lpf.types import FloatArray

DRAWS = 2000
BLOCK = 1 << 20  # numbers drawn at once


@dataclass(frozen=True)
class Alpha:
    """``alpha`` over ``units`` that have at least two values, ``ratings`` in all; None if it is not
    defined, since there is no such unit or everybody gave the same value. ``low`` and ``high`` are
    the ends of the bootstrap interval over units, None if it has no meaning: with fewer than two
    units. ``undefined_draws`` of the draws had only one value and are left out of it."""

    alpha: float | None
    units: int
    ratings: int
    low: float | None = None
    high: float | None = None
    undefined_draws: int = 0

    def to_dict(self) -> dict[str, float | int | None]:
        return {
            "alpha": self.alpha,
            "low": self.low,
            "high": self.high,
            "units": self.units,
            "ratings": self.ratings,
            "undefined_draws": self.undefined_draws,
        }


def counts_of(units: Sequence[Sequence[int]], values: int) -> FloatArray:
    """How often each value was given to each unit, [U, V], from the places of the values."""
    counts = np.zeros((len(units), values))
    for row, given in enumerate(units):
        np.add.at(counts[row], np.array(given, dtype=np.intp), 1.0)
    return counts


def nominal_alpha(counts: FloatArray) -> float | None:
    """Alpha from the ``counts`` [U, V] of each value in each unit; None if it is not defined."""
    disagreement, given = _by_unit(counts)
    found = _alphas(np.ones((1, len(given))), disagreement, given)[0]
    return None if np.isnan(found) else float(found)


def alpha_with_interval(
    counts: FloatArray,
    generator: np.random.Generator,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Alpha:
    """Alpha with a percentile interval: units are drawn with replacement."""
    if draws < 1:
        raise ConfigError(f"must be 1 or above, got {draws!r}.", field="draws")
    disagreement, given = _by_unit(counts)
    units, ratings = len(given), int(given.sum())
    alpha = nominal_alpha(counts)
    if units < 2 or alpha is None:
        return Alpha(alpha, units, ratings)
    block = max(1, BLOCK // units)
    shares = np.full(units, 1.0 / units)
    drawn = np.concatenate(
        [
            _alphas(
                generator.multinomial(units, shares, size=min(block, draws - start)).astype(float),
                disagreement,
                given,
            )
            for start in range(0, draws, block)
        ]
    )
    defined = drawn[~np.isnan(drawn)]
    if not len(defined):
        return Alpha(alpha, units, ratings, undefined_draws=draws)
    low, high = percentiles(defined, level)
    return Alpha(alpha, units, ratings, float(low), float(high), draws - len(defined))


def _by_unit(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the units with at least two values: the part [U] of their values that would have to be
    paired with another value, and the counts [U, V] themselves."""
    given = np.asarray(counts, dtype=np.float64)
    given = given[given.sum(axis=1) >= 2.0]
    total = given.sum(axis=1)
    agreeing = (given * (given - 1.0)).sum(axis=1) / (total - 1.0)
    return total - agreeing, given


def _alphas(weights: FloatArray, disagreement: FloatArray, given: FloatArray) -> FloatArray:
    """Alpha [B] if each unit is there ``weights`` [B, U] times; NaN where it is not defined."""
    by_value = weights @ given
    total = by_value.sum(axis=1)
    expected = total**2 - (by_value**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (total - 1.0) * (weights @ disagreement) / expected
    return np.asarray(np.where(expected > 0.0, 1.0 - ratio, np.nan))
