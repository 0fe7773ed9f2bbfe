"""The probabilities that connect the value of an entity with what its items show.

An item shows a *symbol*: one value, or a pair of adjacent values. Symbol g is the value g, symbol
V + g the pair (g, g+1). The generator draws from these probabilities, and the perfect reader
inverts them:

    value y ─ borderline? ─► apparent v ─ noise η ─► grade g ─ ambiguous? ─► symbol s
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, expit, roots_jacobi

from lpf.domains.parameters import GeneratorParameters
from lpf.errors import ConfigError
from lpf.types import FloatArray

DAYS_PER_YEAR = 365.25
# The model uses credibilities as rounded in the file.
CREDIBILITY_DECIMALS = 3
_NODES = 64


@dataclass(frozen=True)
class EvidenceModel:
    """The evidence model of one domain: its parameters and the shares [V] of its values."""

    parameters: GeneratorParameters
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.shares) < 2 or min(self.shares) <= 0.0:
            raise ConfigError(
                f"must be two or more numbers above 0, got {self.shares}.", field="generator.shares"
            )
        leftover = self.borderline_probabilities[:, 0]
        if leftover.min() < 0.0:
            raise ConfigError(
                f"{self.parameters.borderline} does not fit between the thresholds of shares "
                f"{self.shares}: the bands would overlap.",
                field="generator.borderline",
                hint="Choose a smaller number.",
            )

    @property
    def size(self) -> int:
        return len(self.shares)

    @cached_property
    def band(self) -> float:
        """δ: entities within this distance of a threshold (in rank) are borderline."""
        return self.parameters.borderline / (2 * (self.size - 1))

    @cached_property
    def borderline_probabilities(self) -> FloatArray:
        """P(b | y), [V, 3]: not borderline, towards the value below, towards the value above."""
        beside = self.band / np.array(self.shares)
        below, above = beside.copy(), beside.copy()
        below[0] = above[-1] = 0.0
        return np.stack([1.0 - below - above, below, above], axis=1)

    @cached_property
    def other_grades(self) -> FloatArray:
        """P(g | v, noise), [V, V]: never v itself, and halved with every further step."""
        steps = np.abs(np.subtract.outer(np.arange(self.size), np.arange(self.size)))
        weights = np.where(steps > 0, 0.5 ** (steps - 1.0), 0.0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @cached_property
    def symbol_probabilities(self) -> FloatArray:
        """P(s | g), [V, 2V-1]."""
        probabilities = np.zeros((self.size, 2 * self.size - 1))
        probabilities[:, : self.size] = (1.0 - self.parameters.ambiguity) * np.eye(self.size)
        for grade in range(self.size):
            pairs = [low for low in (grade - 1, grade) if 0 <= low < self.size - 1]
            probabilities[grade, [self.size + low for low in pairs]] = (
                self.parameters.ambiguity / len(pairs)
            )
        return probabilities

    def credibility(self, uniform: FloatArray) -> FloatArray:
        """Convert uniform draws to credibilities (a scaled Beta distribution), rounded."""
        low, high = self.parameters.credibility_range
        scaled = low + (high - low) * betaincinv(*self.parameters.credibility_beta, uniform)
        return np.asarray(np.round(scaled, CREDIBILITY_DECIMALS))

    def noise(self, credibility: FloatArray, age_days: NDArray[np.int64]) -> FloatArray:
        """Return η per item: the probability that the grade differs from the apparent value."""
        fresh = self._fresh_noise(self._standardised(credibility))
        years = age_days / DAYS_PER_YEAR
        return np.asarray(1.0 - (1.0 - fresh) * np.exp2(-self.parameters.drift * years))

    def _fresh_noise(self, standing: FloatArray) -> FloatArray:
        if self.parameters.contradiction == 0.0:
            return np.zeros_like(standing)
        return np.asarray(expit(self._offset - self.parameters.credibility_correlation * standing))

    def _standardised(self, credibility: FloatArray) -> FloatArray:
        low, high = self.parameters.credibility_range
        mean, deviation = _beta_moments(*self.parameters.credibility_beta)
        return ((credibility - low) / (high - low) - mean) / deviation

    @cached_property
    def _offset(self) -> float:
        """a in η(c) = expit(a - κ·z(c)), such that the mean of η over c is ``contradiction``."""
        a, b = self.parameters.credibility_beta
        nodes, weights = roots_jacobi(_NODES, b - 1.0, a - 1.0)
        mean, deviation = _beta_moments(a, b)
        tilt = self.parameters.credibility_correlation * ((nodes + 1.0) / 2.0 - mean) / deviation
        weights = weights / weights.sum()
        wanted = self.parameters.contradiction
        reach = 50.0 + float(np.abs(tilt).max())
        return float(brentq(lambda at: weights @ expit(at - tilt) - wanted, -reach, reach))


def _beta_moments(a: float, b: float) -> tuple[float, float]:
    """Mean and standard deviation of Beta(a, b)."""
    return a / (a + b), float(np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1.0))))
