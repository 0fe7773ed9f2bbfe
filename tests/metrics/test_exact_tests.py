"""Exact tests against SciPy's distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lpf.metrics.exact_tests import (
    chance_of_as_few,
    chance_of_as_many,
    chance_of_other_mix,
    total_variation,
)


@pytest.mark.parametrize(("count", "total", "share"), [(5, 100, 0.01), (3, 12, 0.1), (12, 12, 0.9)])
def test_as_many_as_the_binomial_distribution_says(count: int, total: int, share: float) -> None:
    expected = stats.binom.sf(count - 1, total, share)
    assert chance_of_as_many(count, np.full(total, share)) == pytest.approx(expected)


def test_unequal_chances_are_bounded() -> None:
    shares = np.array([0.01, 0.2, 0.4, 0.05])
    draws = np.random.default_rng(0).random((20_000, 4)) < shares
    assert chance_of_as_many(3, shares) >= (draws.sum(axis=1) >= 3).mean()
    assert chance_of_as_many(0, shares) == 1.0


@pytest.mark.parametrize(
    ("marked", "drawn", "all_marked", "total"), [(2, 10, 40, 50), (8, 10, 40, 50), (0, 5, 3, 40)]
)
def test_as_few_as_the_hypergeometric_distribution_says(
    marked: int, drawn: int, all_marked: int, total: int
) -> None:
    expected = stats.hypergeom.cdf(marked, total, all_marked, drawn)
    assert chance_of_as_few(marked, drawn, all_marked, total) == pytest.approx(expected)


def test_mixes() -> None:
    before = np.array([50, 30, 20])
    assert chance_of_other_mix(np.array([25, 15, 10]), before) > 0.9
    assert chance_of_other_mix(np.array([5, 5, 40]), before) < 0.01
    assert chance_of_other_mix(np.array([0, 0, 0]), before) == 1.0
    assert chance_of_other_mix(np.array([9, 0, 0]), np.array([30, 0, 0])) == 1.0
    assert total_variation(np.array([5, 5, 40]), before) == pytest.approx(0.6)
