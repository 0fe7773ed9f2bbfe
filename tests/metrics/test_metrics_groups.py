from __future__ import annotations

import numpy as np
import pytest

from lpf.metrics.groups import (
    FEW_GROUPS,
    few_groups,
    group_weights,
    standard_error,
    weighted_mean,
)


def test_groups_are_numbered_if_they_are_few() -> None:
    found = few_groups(["a", "b", "a", None, *["b"] * 11])
    assert found is not None
    assert found.tolist() == [0, 1, 0, 2, *[1] * 11]


def test_a_name_is_not_confused_with_an_entity_without_group() -> None:
    found = few_groups([None, *[0] * 12, *["0"] * 12])
    assert found is not None
    assert len(set(found.tolist())) == 3


def test_entities_without_groups_are_not_few_groups() -> None:
    assert few_groups([None] * 10) is None
    assert few_groups([]) is None


def test_small_groups_are_not_few() -> None:
    assert few_groups(["a", "b", "c"] * 4) is None
    assert few_groups(["a", "b", "c"] * 5) is not None


def test_many_groups_are_not_few() -> None:
    names = [f"group {place // 6}" for place in range(6 * FEW_GROUPS)]
    assert few_groups(names) is None
    assert few_groups(names[6:]) is not None


def test_equal_labels_within_groups_count_once() -> None:
    groups = np.repeat([0, 1, 2], [4, 2, 1])
    weights = group_weights(np.array([0, 0, 0, 0, 1, 1, 0]), groups)
    assert weights == pytest.approx([0.25] * 4 + [0.5] * 2 + [1.0])


def test_labels_alike_only_by_chance_count_nearly_in_full() -> None:
    generator = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 200)
    assert group_weights(generator.integers(0, 3, 2000), groups).min() > 0.4
    balanced = np.tile([0, 1], 1000)  # less alike than by chance
    assert (group_weights(balanced, groups) == 1.0).all()


def test_correlation_within_groups_by_hand() -> None:
    """Two groups of two, labels 00 and 01. Between: 2·2·(1/4)²·2 values = 1/2; within: 1/2 for each
    of two values, divided by 2 degrees of freedom = 1/2. So r = 0."""
    assert group_weights(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])) == pytest.approx([1.0] * 4)
    # Labels 000 and 011: between 2·3·(1/3)²·2 = 4/3, within 2·(2/3)/4 = 1/3,
    # r = (4/3 - 1/3) / (4/3 + 2/3) = 1/2, weight 1 / (1 + 2/2).
    found = group_weights(np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1]))
    assert found == pytest.approx([0.5] * 6)


def test_without_few_groups_or_with_one_all_count_the_same() -> None:
    labels = np.array([0, 1, 1])
    assert (group_weights(labels, None) == 1.0).all()
    assert (group_weights(labels, np.zeros(3, np.intp)) == 1.0).all()
    assert len(group_weights(np.empty(0, np.intp), np.empty(0, np.intp))) == 0


def test_standard_error_of_independent_entities() -> None:
    losses = np.random.default_rng(1).normal(size=400)
    assert standard_error(losses, np.ones(400), None) == pytest.approx(losses.std() / 20)


def test_standard_error_over_groups_is_that_of_their_means() -> None:
    means = np.array([0.3, -0.1, 0.4, 1.2])
    losses, groups = np.repeat(means, 5), np.repeat(np.arange(4), 5)
    assert weighted_mean(losses, np.ones(20)) == pytest.approx(means.mean())
    assert standard_error(losses, np.ones(20), groups) == pytest.approx(means.std(ddof=1) / 2)


def test_one_group_has_no_standard_error() -> None:
    assert standard_error(np.arange(3.0), np.ones(3), np.zeros(3, np.intp)) == np.inf
