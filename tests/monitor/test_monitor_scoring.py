"""Scores by hand, coverage against the beta-binomial distribution, windows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from lpf.metrics.calibration import ece
from lpf.model.held_out import HeldOutAnswers
from lpf.monitor.scoring import (
    Scored,
    coverage_lines,
    coverage_range,
    score_lines,
    share_estimate,
    window_lines,
)
from lpf.monitor.windows import DAY, WindowSize, cut_into

ROWS = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]])
LABELS = np.array([0, 1, 1, 0])


def scored() -> Scored:
    return Scored(ROWS, LABELS, np.array([0, 1, 2, 3], np.int64) * DAY)


def held_out(count: int = 99) -> HeldOutAnswers:
    rows = np.random.default_rng(0).dirichlet([1.0, 1.0], size=count)
    groups = np.arange(count, dtype=np.intp)
    return HeldOutAnswers.from_answers("apart", rows, np.zeros(count, np.intp), groups)


def test_scores_by_hand() -> None:
    accuracy, nll, brier, error = score_lines(scored(), None, None)
    assert accuracy.now.mean == 0.75
    assert nll.now.mean == pytest.approx(-math.log(0.9 * 0.4 * 0.8 * 0.5) / 4)
    assert brier.now.mean == pytest.approx((0.02 + 0.72 + 0.08 + 0.5) / 4)
    assert error.now.mean == pytest.approx(ece(ROWS, LABELS))
    assert error.now.mean == pytest.approx((0.1 + 0.6 + 0.2 + 0.5) / 4)  # a bin each
    assert accuracy.stated == pytest.approx((0.9 + 0.6 + 0.8 + 0.5) / 4)
    assert brier.stated == pytest.approx((0.18 + 0.48 + 0.32 + 0.5) / 4)
    entropies = [-sum(p * math.log(p) for p in row) for row in ROWS.tolist()]
    assert nll.stated == pytest.approx(sum(entropies) / 4)
    assert all(one.now.low <= one.now.mean <= one.now.high for one in (accuracy, nll, brier))
    assert accuracy.held_out is None


def test_the_interval_of_a_share_is_exact() -> None:
    for hits in (0, 7, 10):
        found = share_estimate(np.arange(10) < hits)
        exact = stats.binomtest(hits, 10).proportion_ci(method="exact")
        assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_a_value_that_was_ruled_out_has_a_finite_loss() -> None:
    one = Scored(np.array([[1.0, 0.0]]), np.array([1]), np.array([0], np.int64))
    assert one.log_losses == pytest.approx([-math.log(1e-12)])
    assert one.loss_variances == pytest.approx([0.0])


@pytest.mark.parametrize(("coverage", "held", "outcomes"), [(0.9, 99, 50), (0.8, 30, 200)])
def test_coverage_varies_as_the_beta_binomial_distribution_says(
    coverage: float, held: int, outcomes: int
) -> None:
    rank = math.ceil((held + 1) * coverage - 1e-9)
    exact = stats.betabinom(outcomes, rank, held + 1 - rank)
    low, high = coverage_range(coverage, held, outcomes)
    assert (low * outcomes, high * outcomes) == pytest.approx((exact.ppf(0.025), exact.ppf(0.975)))
    assert coverage_range(0.95, 10, outcomes) == (1.0, 1.0)


def test_coverage_uses_the_cutoffs_of_the_model() -> None:
    held = held_out()
    for line in coverage_lines(scored(), held):
        limit = held.cutoffs(line.promised, False)[0]
        loss = -np.log(ROWS[np.arange(4), LABELS])
        inside = (loss <= limit) | (ROWS.argmax(axis=1) == LABELS)
        assert (line.covered, line.outcomes) == (int(inside.sum()), 4)
    assert [line.promised for line in coverage_lines(scored(), held)] == [0.8, 0.9, 0.95]


def test_windows_of_outcomes_end_with_the_newest() -> None:
    moments = np.arange(7, dtype=np.int64) * DAY
    by_count = [(one.count, rows) for one, rows in cut_into(moments, WindowSize(3))]
    assert by_count == [(1, slice(0, 1)), (3, slice(1, 4)), (3, slice(4, 7))]
    moments[0] = -90 * DAY  # empty windows in between are left out
    by_days = [one.count for one, _ in cut_into(moments, WindowSize(3, in_days=True))]
    assert by_days == [1, 3, 3]
    assert [one.count for one, _ in cut_into(np.arange(6001, dtype=np.int64))][-1] == 101
    assert list(cut_into(np.empty(0, np.int64))) == []


def test_a_window_has_the_mean_and_the_range_of_its_stated_losses() -> None:
    (first, second) = window_lines(scored(), WindowSize(2))
    losses = -np.log(ROWS[np.arange(4), LABELS])
    assert (first.nll, second.nll) == pytest.approx((losses[:2].mean(), losses[2:].mean()))
    assert first.low <= first.stated <= first.high
    variance = [0.9 * 0.1 * math.log(9) ** 2, 0.6 * 0.4 * math.log(1.5) ** 2]
    assert first.high - first.stated == pytest.approx(1.959964 * math.sqrt(sum(variance)) / 2)
