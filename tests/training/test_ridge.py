"""Ridge regression on sparse rows, compared with dense algebra and with fitting again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lpf.training.ridge import (
    RidgeScores,
    RidgeSpectrum,
    fit_by_steps,
    fit_scale,
    fit_without_folds,
    mean_spread,
)

FOLDS = [np.arange(0, 40, 2), np.arange(1, 40, 4), np.arange(3, 40, 4)]


def task(columns: int = 200) -> tuple[csr_matrix, np.ndarray]:
    generator = np.random.default_rng(3)
    rows = np.where(generator.random((40, columns)) < 0.1, generator.random((40, columns)), 0.0)
    return csr_matrix(rows), np.eye(3)[generator.integers(0, 3, 40)]


def solved(rows: csr_matrix, targets: np.ndarray, penalty: float) -> RidgeScores:
    """By the normal equations."""
    dense = rows.toarray()
    centre = dense.mean(axis=0)
    squares = (dense - centre).T @ (dense - centre) + penalty * np.eye(dense.shape[1])
    weight = np.linalg.solve(squares, (dense - centre).T @ (targets - targets.mean(axis=0)))
    return RidgeScores(weight, targets.mean(axis=0) - centre @ weight)


@pytest.mark.parametrize("most_rows", [10, 1000])
@pytest.mark.parametrize("columns", [20, 200])
def test_fits_solve_the_normal_equations(
    columns: int, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lpf.training.ridge.MOST_ROWS", most_rows)
    rows, targets = task(columns)
    whole, without = fit_without_folds(rows, targets, 0.3, FOLDS)
    np.testing.assert_allclose(whole.of(rows), solved(rows, targets, 0.3).of(rows), atol=1e-3)
    for fold, found in zip(FOLDS, without, strict=True):
        others = np.setdiff1d(np.arange(40), fold)
        expected = solved(rows[others], targets[others], 0.3)
        np.testing.assert_allclose(found.of(rows), expected.of(rows), atol=1e-3)


@pytest.mark.parametrize("penalty", [10.0, 0.1])
def test_held_out_scores_are_those_of_fits_without_the_fold(penalty: float) -> None:
    rows, targets = task()
    found = RidgeSpectrum.of(rows).held_out(targets, penalty, FOLDS)
    for fold in FOLDS:
        others = np.setdiff1d(np.arange(40), fold)
        again = solved(rows[others], targets[others], penalty).of(rows[fold])
        np.testing.assert_allclose(found[fold], again, atol=1e-9)


def test_equal_rows_have_no_slope() -> None:
    rows = csr_matrix(np.ones((6, 4)))
    targets = np.eye(2)[[0, 1, 0, 1, 1, 1]]
    assert mean_spread(rows) == 1.0
    for found in (RidgeSpectrum.of(rows).fit(rows, targets, 1.0), fit_by_steps(rows, targets, 1.0)):
        np.testing.assert_allclose(found.weight, 0.0, atol=1e-9)


def test_the_spread_is_the_mean_squared_distance_from_the_centre() -> None:
    rows, _ = task()
    dense = rows.toarray()
    expected = ((dense - dense.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert mean_spread(rows) == pytest.approx(expected)


def test_the_scale_is_that_of_the_logits_behind_the_labels() -> None:
    generator = np.random.default_rng(5)
    scores = 0.01 * generator.standard_normal((4000, 2))
    chances = 1.0 / (1.0 + np.exp(-150.0 * (scores[:, 1] - scores[:, 0])))
    labels = (generator.random(4000) < chances).astype(np.intp)
    found, nll = fit_scale(scores, labels, np.array([0.5, 0.5]))
    assert found.scale == pytest.approx(150.0, rel=0.1)
    assert nll < np.log(2.0)


def test_scores_without_information_are_scaled_away() -> None:
    generator = np.random.default_rng(5)
    labels = (np.arange(300) % 3 == 0).astype(np.intp)
    shares = np.array([2 / 3, 1 / 3])
    found, nll = fit_scale(generator.standard_normal((300, 2)), labels, shares)
    assert found.scale < 0.3
    assert nll == pytest.approx(-(shares * np.log(shares)).sum(), abs=0.02)
