"""Expected information: a proper mutual information whatever the pool, and the true one if the pool
was drawn as it is assumed to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.explain.information import entropy_bits, outlook_of_joint, outlook_of_pool


def random_case(seed: int, count: int, values: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    now = generator.dirichlet(np.ones(values))
    likelihood = generator.gamma(0.5, size=(count, values)) + 1e-6
    after = now * likelihood
    return now, after / after.sum(axis=1, keepdims=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(2, 5))
def test_gain_is_a_mutual_information(seed: int, count: int, values: int) -> None:
    found = outlook_of_pool(*(case := random_case(seed, count, values)))
    assert -1e-12 <= found.gain <= entropy_bits(case[0]) + 1e-9
    np.testing.assert_allclose(found.chances.sum(), 1.0)
    np.testing.assert_allclose(found.chances @ found.answers, case[0], atol=1e-9)
    assert found.confidence >= case[0].max() - 1e-9
    assert 0.0 <= found.unseen <= 1.0


@pytest.mark.parametrize("rest", [1e-300, 1e-310, 5e-324, 0.0])
def test_a_value_that_is_all_but_impossible_breaks_nothing(rest: float) -> None:
    after = random_case(1, 20, 2)[1]
    with np.errstate(all="raise", under="ignore"):
        found = outlook_of_pool(np.array([1.0 - rest, rest]), after)
        assert found.gain == pytest.approx(0.0, abs=1e-9)
        assert np.isfinite(found.error)
    np.testing.assert_allclose(found.chances.sum(), 1.0)
    assert found.changes == 0.0


def test_the_true_information_of_a_drawn_pool() -> None:
    """Though the pool's entities have other shares of the values than this entity's answer."""
    generator = np.random.default_rng(3)
    chances = generator.dirichlet(np.full(6, 0.6), size=3)
    pool = np.concatenate(
        [generator.choice(6, p=chances[y], size=size) for y, size in enumerate((300, 900, 600))]
    )
    now = np.array([0.6, 0.1, 0.3])
    after = now * chances[:, pool].T
    after /= after.sum(axis=1, keepdims=True)
    found = outlook_of_pool(now, after)
    true = outlook_of_joint((now[:, None] * chances).T)
    assert found.gain == pytest.approx(true.gain, abs=3 * float(found.error))
    assert found.changes == pytest.approx(true.changes, abs=0.05)
    # The pool has all values, so each item leads to the answer that the engine gives.
    np.testing.assert_allclose(found.answers, after, atol=1e-3)
    assert found.unseen < 1e-3


def test_items_that_say_nothing_tell_nothing() -> None:
    now = np.array([0.2, 0.5, 0.3])
    assert outlook_of_pool(now, np.tile(now, (20, 1))).gain == 0.0
    # Nor do items that all say the same: whoever collects one knows before what it will say.
    same = outlook_of_pool(now, np.tile([0.7, 0.2, 0.1], (20, 1)))
    assert same.gain == pytest.approx(0.0, abs=1e-12)
    assert same.unseen > 0.1


def test_perfect_items_tell_everything() -> None:
    now = np.array([0.2, 0.5, 0.3])
    found = outlook_of_pool(now, np.repeat(np.eye(3), 4, axis=0))
    assert found.gain == pytest.approx(float(entropy_bits(now)))
    assert found.confidence == pytest.approx(1.0)
    assert found.changes == pytest.approx(0.5)


def test_a_value_that_is_ruled_out_stays_so() -> None:
    now, after = random_case(1, 9, 3)
    now, after = now * [1, 1, 0], after * [1, 1, 0]
    after /= after.sum(axis=1, keepdims=True)
    found = outlook_of_pool(now / now.sum(), after)
    assert np.isfinite(found.gain)
    assert (found.answers[:, 2] == 0.0).all()


def test_many_at_once_are_as_each_alone() -> None:
    cases = [random_case(seed, 12, 3) for seed in range(4)]
    together = outlook_of_pool(np.stack([c[0] for c in cases]), np.stack([c[1] for c in cases]))
    alone = [float(outlook_of_pool(*case).gain) for case in cases]
    np.testing.assert_allclose(together.gain, alone, atol=1e-4)
