"""Items combined again: all but one in closed form equals combining them, in every mode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.combine import RobustParameters
from lpf.explain.recombination import AveragedItems, PaperItems, RobustItems


def all_but_one(count: int) -> list[np.ndarray]:
    return [np.delete(np.arange(count), place) for place in range(count)]


def log_distribution(drawn: np.random.Generator, values: int) -> np.ndarray:
    return np.log(drawn.dirichlet(np.ones(values)))


def robust_items(seed: int, count: int, *, source_epsilon: float = 0.0) -> RobustItems:
    """Random items, with copies, unfamiliar and silent texts, stances, sources and trust."""
    drawn = np.random.default_rng(seed)
    values = int(drawn.integers(2, 5))
    alone = log_distribution(drawn, values)
    yes = drawn.random(8) < 0.5
    familiarity = drawn.choice([0.0, 0.3, 1.0], count)
    return RobustItems(
        drawn.dirichlet(np.ones(values), count),
        np.where(drawn.random(count) < 0.3, np.nan, drawn.random(count)),
        drawn.dirichlet(5 * np.ones(values)),
        alone + drawn.normal(size=values) * yes[0],  # the claim alone is part of the base
        alone,
        RobustParameters(
            1.0,
            float(drawn.choice([0.0, 0.3, 1.0])),
            0.1,
            float(drawn.random()),
            fitted=bool(yes[1]),
            source_epsilon=source_epsilon,
            trust=float(drawn.choice([0.0, 0.4, 1.0])),
        ),
        drawn.integers(-1, 3, count) if yes[2] else None,
        drawn.integers(-1, 2, count),
        familiarity if yes[3] else None,
        drawn.choice([0.0, 0.5, 1.0], count) if yes[4] else None,
        drawn.dirichlet(np.ones(values)) if yes[4] and yes[5] else None,
        drawn.dirichlet(np.ones(3), count) if yes[6] else None,
        drawn.gamma(2.0, 0.5, (4, values)) if yes[6] else None,
    )


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 9))
def test_robust_items_without_one(seed: int, count: int) -> None:
    items = robust_items(seed, count)
    batch = items.answers(all_but_one(count))
    np.testing.assert_allclose(items.without_each(), batch, rtol=0, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 7))
def test_robust_items_with_unreliable_sources(seed: int, count: int) -> None:
    items = robust_items(seed, count, source_epsilon=0.2)
    batch = items.answers(all_but_one(count))
    np.testing.assert_allclose(items.without_each(), batch, rtol=0, atol=1e-9)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 9))
def test_paper_and_averaged_items_without_one(seed: int, count: int) -> None:
    drawn = np.random.default_rng(seed)
    potential = drawn.dirichlet(np.ones(3), count)
    alone = log_distribution(drawn, 3)
    paper = PaperItems(potential, drawn.random(count), alone + 0.3, alone)
    for items in (paper, AveragedItems(potential, alone)):
        batch = items.answers(all_but_one(count))
        np.testing.assert_allclose(items.without_each(), batch, rtol=0, atol=1e-9)


def test_a_factor_of_zero_does_not_spoil_the_sums() -> None:
    certain = RobustParameters(rho=0.1, epsilon=0.0, fitted=True)
    even = np.log(np.full(2, 0.5))
    potential = np.array([[1.0, 0.0], [0.3, 0.7], [0.6, 0.4]])
    unknown = np.full(3, np.nan)
    items = RobustItems(potential, unknown, np.full(2, 0.5), even, even, certain)
    batch = items.answers(all_but_one(3))
    np.testing.assert_allclose(items.without_each(), batch, rtol=0, atol=1e-12)
    assert np.isfinite(items.without_each()).all()


def test_copies_left_count_more() -> None:
    """Of two copies, each counts half; without one of them, the other counts in full."""
    even = np.log(np.full(2, 0.5))
    plain = RobustParameters(rho=0.0, epsilon=0.0, fitted=True)
    potential = np.array([[0.8, 0.2], [0.8, 0.2]])
    groups = np.array([0, 0])
    items = RobustItems(potential, np.full(2, np.nan), np.full(2, 0.5), even, even, plain, groups)
    whole = items.answers([np.arange(2)])[0]
    np.testing.assert_allclose(whole, [0.8, 0.2], atol=1e-12)
    np.testing.assert_allclose(items.without_each(), [[0.8, 0.2]] * 2, atol=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_weighted_items(weight: float) -> None:
    even = np.log(np.full(2, 0.5))
    plain = RobustParameters(rho=0.0, epsilon=0.0, fitted=True)
    potential = np.array([[0.8, 0.2], [0.4, 0.6]])
    items = RobustItems(potential, np.full(2, np.nan), np.full(2, 0.5), even, even, plain)
    found = items.weighted(np.array([1.0, weight]))
    expected = np.array([0.8 * 0.4**weight, 0.2 * 0.6**weight])
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-12)
