"""Multinomial logistic regression over a path of penalties, from strong to weak.

    mean over weighted rows of -log p(label) + λ/2·|W|²      on features of mean 0 and deviation 1

Weights and bias may also be pulled ``towards`` given ones, |W - W₀|² + |c - c₀|², instead of
towards 0; an infinite λ then gives exactly those.

A feature that hardly varies is not stretched to deviation 1, because that would turn rounding
errors into evidence: its weight stays near 0.

SciPy's L-BFGS with two matrix products per step; each penalty starts where the last one ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from lpf.model.linear_shape import LinearHead
from lpf.types import Float32Array, FloatArray

# A feature whose deviation is below this share of the largest value only rounds: readers compute
# in float32, whose steps are 1.2e-7 of a value, and add up some hundred products.
ROUNDING = 1e-6
# Deviations below this share of the typical one count as this share.
SMALLEST_SPREAD = 0.01
PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
BIAS_PENALTY = 1e-4  # otherwise the bias of a value without rows goes to minus infinity
# A search for a penalty ends after this many weaker ones in a row that are worse than the best.
MOST_WORSE = 2
MOST_STEPS = 200
TOLERANCE = 1e-7
VECTOR_WIDTH = 384  # of a text's features, beside which other blocks of features are narrow
PART = 8192  # rows that are scaled together

Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Scaling:
    """Features to mean 0 and deviation 1, unless they hardly vary."""

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, features: Float32Array | FloatArray) -> Scaling:
        centre = features.mean(axis=0, dtype=np.float64)
        squares = sum(
            (((features[part] - centre) ** 2).sum(axis=0) for part in _parts(len(features))),
            start=np.zeros_like(centre),
        )
        deviation = np.sqrt(squares / len(features))
        varies = deviation > ROUNDING * np.abs(features).max(initial=0.0)
        typical = float(np.median(deviation[varies])) if varies.any() else 1.0
        floored = np.maximum(deviation, SMALLEST_SPREAD * typical)
        return cls(centre, np.where(varies, floored, typical))

    def with_narrow_block(self, block: slice, stretch: float = 1.0) -> Scaling:
        """The same, with the columns of a narrow ``block`` stretched as if they were as many as
        those of a vector: one penalty for all would starve a few strong columns. ``stretch`` is on
        top of that."""
        scale = self.scale.copy()
        scale[block] /= stretch * np.sqrt(VECTOR_WIDTH / len(scale[block]))
        return Scaling(self.centre, scale)

    def apply(self, features: Float32Array) -> Float32Array:
        scaled = np.empty_like(features)
        for part in _parts(len(features)):
            scaled[part] = (features[part] - self.centre) / self.scale
        return scaled


def _parts(rows: int) -> Iterator[slice]:
    """In parts, because a float64 copy of all features would need twice their memory."""
    return (slice(first, first + PART) for first in range(0, rows, PART))


@dataclass(frozen=True)
class SoftmaxRegression:
    """Logits x·weight + bias of scaled features: ``weight`` [d, V], ``bias`` [V]."""

    weight: FloatArray
    bias: FloatArray

    @classmethod
    def empty(cls, width: int, values: int) -> SoftmaxRegression:
        return cls(np.zeros((width, values)), np.zeros(values))

    def logits(self, scaled: Float32Array) -> FloatArray:
        return np.asarray(scaled @ self.weight.astype(np.float32) + self.bias, np.float64)

    def unscaled(self, scaling: Scaling) -> LinearHead:
        """What gives the same logits for unscaled features."""
        weight = self.weight / scaling.scale[:, None]
        return LinearHead(weight, self.bias - scaling.centre @ weight)


@dataclass(frozen=True)
class RegressionRows:
    """Scaled features [N, d], labels [N] (all known) and weights [N].

    A row may have less evidence than one item: its bias is multiplied by ``amounts`` [N], and
    ``offsets`` [N, V] are added to its logits.
    """

    scaled: Float32Array
    labels: Labels
    weights: FloatArray
    amounts: FloatArray | float = 1.0
    offsets: FloatArray | float = 0.0


def fit_path(
    rows: RegressionRows,
    values: int,
    penalties: Sequence[float] = PENALTIES,
    towards: SoftmaxRegression | None = None,
) -> Iterator[tuple[float, SoftmaxRegression]]:
    """One fit per penalty, in order."""
    regression = towards or SoftmaxRegression.empty(rows.scaled.shape[1], values)
    for penalty in penalties:
        regression = fit_regression(rows, penalty, regression, towards)
        yield penalty, regression


def is_past_the_best(losses: Sequence[float]) -> bool:
    """Return True if the last penalties tried, ``losses`` from strong to weak, only got worse."""
    before, last = losses[:-MOST_WORSE], losses[-MOST_WORSE:]
    return bool(before) and min(last) > min(before)


def fit_regression(
    rows: RegressionRows,
    penalty: float,
    start: SoftmaxRegression,
    towards: SoftmaxRegression | None = None,
) -> SoftmaxRegression:
    """``start`` is where the search begins; ``towards`` what the penalty pulls to, if not to 0."""
    if towards is not None and penalty == inf:
        return towards
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    width, values = start.weight.shape
    shares = rows.weights / rows.weights.sum()
    one_hot = np.zeros((len(rows.labels), values))
    one_hot[np.arange(len(rows.labels)), rows.labels] = 1.0
    amounts = np.asarray(rows.amounts)[..., None]
    aim = towards or SoftmaxRegression.empty(width, values)
    bias_penalty = BIAS_PENALTY if towards is None else penalty

    def loss(packed: FloatArray) -> tuple[float, FloatArray]:
        weight, bias = packed[:-values].reshape(width, values), packed[-values:]
        product = rows.scaled @ weight.astype(np.float32)
        logs = log_softmax(product + amounts * bias + rows.offsets, axis=1)
        wrong = shares[:, None] * (np.exp(logs) - one_hot)
        weight_off, bias_off = weight - aim.weight, bias - aim.bias
        slope = rows.scaled.T @ wrong.astype(np.float32) + penalty * weight_off
        total = -(shares * logs[np.arange(len(logs)), rows.labels]).sum()
        total += penalty / 2 * (weight_off**2).sum() + bias_penalty / 2 * (bias_off**2).sum()
        bias_slope = (amounts * wrong).sum(axis=0) + bias_penalty * bias_off
        return total, np.concatenate([slope.ravel(), bias_slope])

    result = minimize(
        loss,
        np.concatenate([start.weight.ravel(), start.bias]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "ftol": TOLERANCE, "gtol": TOLERANCE},
    )
    return SoftmaxRegression(result.x[:-values].reshape(width, values), result.x[-values:])
