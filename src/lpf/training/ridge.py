"""Least squares with a ridge penalty on sparse rows, and the logits that its scores stand for.

    minimise over w, c   Σ over rows |target - c - x·w|² + λ·s·|w|²

s is the mean of |x - x̄|², so that the same λ suits all data. Rows may have far more columns than
there are rows: everything is computed from products of rows with rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lpf.types import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Places = NDArray[np.intp]
MOST_ROWS = 2500  # that are decomposed, which takes time in proportion to their cube
MOST_STEPS = 200
TOLERANCE = 1e-4
SMALLEST_SPREAD = 1e-6
BIAS_SD = 0.5
SCALES = (-7.0, 3.0)  # bounds of the logarithm, for scores with deviation 1


@dataclass(frozen=True)
class RidgeScores:
    """Scores x·weight + offset of rows [N, B]: ``weight`` [B, V], ``offset`` [V]."""

    weight: FloatArray
    offset: FloatArray

    def of(self, rows: csr_matrix) -> FloatArray:
        return np.asarray(rows @ self.weight + self.offset)


def mean_spread(rows: csr_matrix) -> float:
    """s, the mean of |x - x̄|²; 1 if all rows are equal."""
    centre = np.asarray(rows.mean(axis=0)).ravel()
    spread = float(rows.multiply(rows).sum()) / rows.shape[0] - float(centre @ centre)
    return spread if spread > SMALLEST_SPREAD else 1.0


def fit_without_folds(
    rows: csr_matrix, targets: FloatArray, penalty: float, folds: Sequence[Places]
) -> tuple[RidgeScores, list[RidgeScores]]:
    """The fit to ``targets`` [E, V] of all rows, and the fits without each fold; ``penalty`` is
    λ·s. More than MOST_ROWS rows are fitted by steps, to a tolerance."""
    everyone = np.arange(rows.shape[0])
    if len(everyone) > MOST_ROWS:
        others = [np.setdiff1d(everyone, fold) for fold in folds]
        without = [fit_by_steps(rows[one], targets[one], penalty) for one in others]
        return fit_by_steps(rows, targets, penalty), without
    spectrum = RidgeSpectrum.of(rows)
    scores = spectrum.held_out(targets, penalty, folds)
    # Rows that lie exactly on a fit do not change it: with its own held-out scores as targets, a
    # fold does not affect the fit to all rows.
    changed = [targets.copy() for _ in folds]
    for one, fold in zip(changed, folds, strict=True):
        one[fold] = scores[fold]
    return (
        spectrum.fit(rows, targets, penalty),
        [spectrum.fit(rows, one, penalty) for one in changed],
    )


def fit_by_steps(rows: csr_matrix, targets: FloatArray, penalty: float) -> RidgeScores:
    """Conjugate gradients; each step costs two products with the sparse rows."""
    across = rows.T.tocsr()

    def penalised(dual: FloatArray) -> FloatArray:
        return _centred(rows @ (across @ _centred(dual))) + penalty * dual

    return _scores(rows, _solve(penalised, _centred(targets)), targets)


def _scores(rows: csr_matrix, dual: FloatArray, targets: FloatArray) -> RidgeScores:
    weight = np.asarray(rows.T @ _centred(dual))
    centre = np.asarray(rows.mean(axis=0)).ravel()
    return RidgeScores(weight, targets.mean(axis=0) - centre @ weight)


def _centred(columns: FloatArray) -> FloatArray:
    return np.asarray(columns - columns.mean(axis=0))


def _solve(apply: Callable[[FloatArray], FloatArray], targets: FloatArray) -> FloatArray:
    """Solve ``apply(x) = targets`` for each column."""
    solution, residual = np.zeros_like(targets), targets.copy()
    direction, squares = residual.copy(), (residual**2).sum(axis=0)
    enough = TOLERANCE**2 * squares
    for _ in range(MOST_STEPS):
        if (squares <= enough).all():
            break
        product = apply(direction)
        step = _ratio(squares, (direction * product).sum(axis=0))
        solution += step * direction
        residual -= step * product
        before, squares = squares, (residual**2).sum(axis=0)
        direction = residual + _ratio(squares, before) * direction
    return solution


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """0 for a column that is solved exactly."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)


@dataclass(frozen=True)
class RidgeSpectrum:
    """Eigenvectors [E, E] and eigenvalues [E] of the products of centred rows: the fits of all
    penalties, and their held-out scores, follow from them."""

    vectors: FloatArray
    strengths: FloatArray

    @classmethod
    def of(cls, rows: csr_matrix) -> RidgeSpectrum:
        products = _centred(np.asarray((rows @ rows.T).todense(), np.float64))
        strengths, vectors = np.linalg.eigh(_centred(products.T))
        return cls(vectors, np.maximum(strengths, 0.0))

    def fit(self, rows: csr_matrix, targets: FloatArray, penalty: float) -> RidgeScores:
        """The fit to the rows that were decomposed."""
        parts = self.vectors.T @ _centred(targets)
        dual = self.vectors @ (parts / (self.strengths + penalty)[:, None])
        return _scores(rows, dual, targets)

    def held_out(self, targets: FloatArray, penalty: float, folds: Sequence[Places]) -> FloatArray:
        """Scores [E, V] of each fold from the fit to the others; ``penalty`` is λ·s.

        target - score = (I - H_ff)⁻¹·(target - fitted)_f, where H maps targets to fitted values and
        H_ff is its block of the fold."""
        shrunk = self.strengths / (self.strengths + penalty)
        count, scores = len(targets), np.empty_like(targets)
        fitted = targets.mean(axis=0) + (self.vectors * shrunk) @ (self.vectors.T @ targets)
        for fold in folds:
            mine = self.vectors[fold]
            block = 1.0 / count + (mine * shrunk) @ mine.T
            missed = np.linalg.solve(np.eye(len(fold)) - block, (targets - fitted)[fold])
            scores[fold] = targets[fold] - missed
        return scores


@dataclass(frozen=True)
class ScoreScale:
    """Logits scale·score + bias: ``bias`` [V]."""

    scale: float
    bias: FloatArray

    def logits(self, scores: FloatArray) -> FloatArray:
        return self.scale * scores + self.bias


def fit_scale(scores: FloatArray, labels: Places, shares: FloatArray) -> tuple[ScoreScale, float]:
    """Scale and bias of held-out ``scores`` [E, V], and the NLL of the labels under them. The bias
    is log ``shares`` plus a term with a normal prior of deviation BIAS_SD."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    deviation = float(scores.std()) or 1.0
    plain, rows = scores / deviation, np.arange(len(labels))
    one_hot, log_shares = np.eye(len(shares))[labels], np.log(shares)

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        scale, shift = np.exp(point[0]), point[1:]
        logs = log_softmax(scale * plain + log_shares + shift, axis=1)
        wrong = np.exp(logs) - one_hot
        total = -logs[rows, labels].sum() + (shift**2).sum() / (2 * BIAS_SD**2)
        slope = [scale * (wrong * plain).sum()], wrong.sum(axis=0) + shift / BIAS_SD**2
        return total, np.concatenate(slope)

    start = np.zeros(len(shares) + 1)
    bounds = [SCALES] + [(None, None)] * len(shares)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    scale = ScoreScale(float(np.exp(found[0])) / deviation, log_shares + found[1:])
    logs = log_softmax(scale.logits(scores), axis=1)
    return scale, float(-logs[rows, labels].mean())
