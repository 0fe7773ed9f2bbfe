from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.explain.explanation import averaged_parts, conflicts


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 9), st.integers(2, 5))
def test_parts_of_an_average_add_up_to_its_logarithm(seed: int, count: int, values: int) -> None:
    potential = np.random.default_rng(seed).dirichlet(np.ones(values), count)
    total = averaged_parts(potential).sum(axis=0)
    expected = np.log(potential.mean(axis=0) * values)
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-9)


def test_parts_of_even_items_are_nothing() -> None:
    assert averaged_parts(np.full((3, 2), 0.5)) == pytest.approx(np.zeros((3, 2)))


def test_sources_that_agree_may_have_items_that_do_not() -> None:
    """Each of two sources says both: its items contradict each other, the sources do not."""
    potential = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    items, sources = conflicts(potential, np.array([0, 0, 1, 1]))
    assert items is not None
    assert sources is not None
    assert items > 0.4
    assert sources == pytest.approx(0.0, abs=1e-12)
    assert conflicts(potential, None) == (items, None)
    assert conflicts(potential[:1], np.array([0])) == (None, None)
    alone = conflicts(potential, np.full(4, -1))  # each a source of its own
    assert alone[0] == pytest.approx(alone[1])
