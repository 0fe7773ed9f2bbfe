"""Krippendorff's alpha: published and hand-worked values, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpf.errors import ConfigError
from lpf.metrics.agreement import alpha_with_interval, counts_of, nominal_alpha

# Krippendorff's example: four coders, twelve units, values 1 to 5, 0 for missing. The last unit has
# one value only.
CODERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3),
    (0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0),
)
# His binary example: two observers, ten units.
OBSERVERS = ((0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0))


def example() -> np.ndarray:
    units = [[coder[unit] - 1 for coder in CODERS if coder[unit]] for unit in range(12)]
    return counts_of(units, 5)


def test_the_published_value_of_four_coders() -> None:
    assert nominal_alpha(example()) == pytest.approx(0.743, abs=5e-4)


def test_the_published_value_of_two_observers() -> None:
    counts = counts_of(list(zip(*OBSERVERS, strict=True)), 2)
    assert nominal_alpha(counts) == pytest.approx(0.095, abs=5e-4)


def test_a_case_worked_by_hand() -> None:
    """Units aa, ab, bb. Six values, three of each: D_e is 1 - (3*2 + 3*2) / (6*5) = 0.6. Two of the
    six pairable values disagree: D_o is 1/3. Alpha is 1 - (1/3) / 0.6 = 4/9."""
    assert nominal_alpha(counts_of([[0, 0], [0, 1], [1, 1]], 2)) == pytest.approx(4 / 9)


def test_it_is_not_defined_without_pairs_or_with_one_value_only() -> None:
    assert nominal_alpha(counts_of([[0], [1], []], 2)) is None
    assert nominal_alpha(counts_of([[0, 0], [0, 0]], 2)) is None
    found = alpha_with_interval(counts_of([[0, 1], [0]], 2), np.random.default_rng(0))
    assert (found.units, found.ratings, found.low, found.high) == (1, 2, None, None)


def test_the_interval_is_reproducible_and_covers_the_value() -> None:
    first, again = (
        alpha_with_interval(example(), np.random.default_rng(4), draws=500) for _ in range(2)
    )
    assert first == again
    assert first.units == 11
    assert first.ratings == 40
    assert first.alpha is not None
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.alpha < first.high <= 1.0
    with pytest.raises(ConfigError):
        alpha_with_interval(example(), np.random.default_rng(4), draws=0)


def test_draws_with_only_one_value_are_counted() -> None:
    counts = counts_of([[0, 0], [1, 1]], 2)
    found = alpha_with_interval(counts, np.random.default_rng(0), draws=200)
    assert (found.alpha, found.low, found.high) == (1.0, 1.0, 1.0)
    assert 50 < found.undefined_draws < 150


units = st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=12)


@given(units, st.permutations(range(4)), st.randoms(use_true_random=False))
def test_names_and_order_of_values_do_not_matter(given_units, names, random) -> None:
    alpha = nominal_alpha(counts_of(given_units, 4))
    renamed = [[names[value] for value in unit] for unit in given_units]
    random.shuffle(renamed)
    again = nominal_alpha(counts_of(renamed, 4))
    assert (alpha is None) == (again is None)
    if alpha is not None:
        assert again == pytest.approx(alpha)
        assert alpha <= 1.0


@given(units)
def test_it_is_what_the_coincidence_matrix_gives(given_units: list[list[int]]) -> None:
    """The definition, pair by pair."""
    matrix = np.zeros((4, 4))
    for unit in given_units:
        for place, first in enumerate(unit):
            for second in unit[:place] + unit[place + 1 :]:
                matrix[first, second] += 1.0 / (len(unit) - 1)
    total, margins = matrix.sum(), matrix.sum(axis=1)
    expected = total**2 - (margins**2).sum()
    alpha = nominal_alpha(counts_of(given_units, 4))
    if expected < 0.5:
        assert alpha is None
    else:
        disagreement = total - np.trace(matrix)
        assert alpha == pytest.approx(1.0 - (total - 1.0) * disagreement / expected)
