from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import features, runtime, schema
from lpf.combine.uncertainty import decompose, entropy
from lpf.engine import Engine, Items
from lpf.types import QueryOptions


def test_entropy_by_hand() -> None:
    assert entropy(np.array([0.5, 0.5])) == pytest.approx(np.log(2))
    assert entropy(np.array([1.0, 0.0])) == 0.0
    assert entropy(np.array([1.0])) == 0.0


def test_two_draws_that_contradict_each_other_by_hand() -> None:
    """Each draw is certain, their mean is not: everything is epistemic."""
    found = decompose(np.array([[0.5, 0.5]]), np.array([[[1.0, 0.0]], [[0.0, 1.0]]])).item(0)
    assert found["aleatoric"] == 0.0
    assert found["epistemic"] == pytest.approx(np.log(2))
    assert found["variance_epistemic"] == pytest.approx(0.5)
    assert found["variance_aleatoric"] == 0.0


def test_draws_that_agree_leave_nothing_epistemic() -> None:
    draws = np.tile([[0.2, 0.8]], (7, 1, 1))
    found = decompose(np.array([[0.2, 0.8]]), draws).item(0)
    assert found["epistemic"] == pytest.approx(0.0, abs=1e-12)
    assert found["gap"] == pytest.approx(0.0, abs=1e-12)
    assert found["variance"] == pytest.approx(2 * 0.16)


@given(st.integers(1, 6), st.integers(1, 20), st.integers(0, 9999))
@settings(max_examples=60, deadline=None)
def test_parts_add_up_and_are_never_negative(values: int, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    draws = generator.dirichlet(np.full(values, 0.3), (count, 4))
    answer = generator.dirichlet(np.ones(values), 4)
    found = decompose(answer, draws)
    assert (found.epistemic >= 0).all()
    assert (found.aleatoric >= 0).all()
    np.testing.assert_allclose(
        found.aleatoric + found.epistemic + found.gap, entropy(answer), atol=1e-12
    )
    total = (draws.mean(axis=0) * (1 - draws.mean(axis=0))).sum(axis=1)
    np.testing.assert_allclose(found.variance, total, atol=1e-12)


@pytest.mark.parametrize("variant", ["spn", "learned"])
def test_an_ensemble_adds_what_its_members_disagree_about(variant: str) -> None:
    options = QueryOptions(variant=variant, uncertainty_samples=32)
    one = Engine(runtime(1), schema()).answer(Items(features(5)), "level", options)
    five = Engine(runtime(5), schema()).answer(Items(features(5)), "level", options)
    assert one.uncertainty is not None
    assert five.uncertainty is not None
    assert five.uncertainty.epistemic[0] > one.uncertainty.epistemic[0]


def test_no_uncertainty_is_computed_unless_asked_for() -> None:
    assert Engine(runtime(), schema()).answer(Items(features(2)), "level").uncertainty is None
