"""Which stances occur among the items: against full enumeration and hand-worked cases."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lpf.combine import RobustParameters, combine_robust
from lpf.combine.occurrence import (
    fit_ratios,
    log_occurrence,
    occurrence_contributions,
    occurrences,
)
from lpf.items import Segments

RATIOS = np.array([[0.2, 2.0, 0.5], [0.1, 0.6, 3.0], [3.0, 0.6, 0.1], [1.5, 0.1, 1.5]])
SEGMENTS = Segments.of_counts([4, 0, 1, 3])


def drawn_stances(seed: int = 0, count: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet([1.0, 1.0, 2.0], size=count)


def enumerated(stances: np.ndarray) -> np.ndarray:
    """P(k) of one entity, over all 3^n assignments of stances."""
    found = np.zeros(4)
    for assigned in product(range(3), repeat=len(stances)):
        chance = np.prod([row[stance] for row, stance in zip(stances, assigned, strict=True)])
        found[(0 in assigned) + 2 * (1 in assigned)] += chance
    return found


def test_the_four_cases_are_those_of_full_enumeration() -> None:
    stances = drawn_stances()
    cases = occurrences(stances, np.ones(8), SEGMENTS)
    for entity in range(len(SEGMENTS)):
        expected = enumerated(stances[SEGMENTS.rows(entity)])
        np.testing.assert_allclose(cases[entity], expected, atol=1e-12)


def test_copies_count_once() -> None:
    stances = drawn_stances(count=2)
    twice = np.concatenate([stances, stances[:1]])
    alone = occurrences(stances, np.ones(2), Segments.one(2))
    np.testing.assert_allclose(
        occurrences(twice, np.array([0.5, 1.0, 0.5]), Segments.one(3)), alone, atol=1e-12
    )


@pytest.mark.parametrize("by_entity", [False, True])
def test_contributions_add_up_and_do_not_depend_on_other_entities(by_entity: bool) -> None:
    stances, discount = drawn_stances(), np.random.default_rng(1).uniform(0.2, 1.0, 8)
    ratios = np.tile(RATIOS, (len(SEGMENTS), 1, 1)) if by_entity else RATIOS
    parts = occurrence_contributions(stances, discount, SEGMENTS, ratios)
    total = log_occurrence(stances, discount, SEGMENTS, ratios)
    np.testing.assert_allclose(SEGMENTS.sum(parts), total, atol=1e-14)
    assert (total[1] == 0.0).all()  # it has no item
    for entity in (0, 2, 3):
        rows = SEGMENTS.rows(entity)
        layout = Segments.one(rows.stop - rows.start)
        alone = occurrence_contributions(stances[rows], discount[rows], layout, RATIOS)
        assert (parts[rows] == alone).all()


def test_equal_items_have_equal_parts_and_one_that_is_left_out_has_none() -> None:
    stances = np.array([[0.7, 0.1, 0.2], [0.1, 0.8, 0.1], [0.7, 0.1, 0.2], [0.9, 0.05, 0.05]])
    parts = occurrence_contributions(stances, np.array([1, 1, 1, 0.0]), Segments.one(4), RATIOS)
    np.testing.assert_allclose(parts[0], parts[2], atol=1e-14)
    assert (parts[3] == 0.0).all()
    # A supporting item speaks for what goes with support, a refuting one for what goes with
    # refutation, and both together for what goes with both.
    assert parts[0][2] - parts[0][0] > 0 > parts[1][2] - parts[1][0]
    nothing = occurrence_contributions(stances, np.zeros(4), Segments.one(4), RATIOS)
    assert (nothing == 0.0).all()


def test_the_answer_is_the_product_with_the_sum_over_cases() -> None:
    """Worked by hand: one sure supporter, one sure refuter, items' own factors uniform."""
    stances = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    third = np.full(3, 1 / 3)
    answer = combine_robust(
        np.tile(third, (2, 1)), np.full(2, np.nan), third, np.log(third), Segments.one(2),
        RobustParameters(epsilon=0.0, fitted=True), stances=stances, ratios=RATIOS,
    )  # fmt: skip
    np.testing.assert_allclose(answer.distribution[0], RATIOS[3] / RATIOS[3].sum(), atol=1e-6)


def test_expectation_maximisation_counts_what_is_certain() -> None:
    """Cases that are known are counted: with one average entity in each."""
    cases = np.eye(4)[[0, 0, 0, 1, 1, 2, 3]]
    labels = np.array([0, 0, 1, 1, 1, 0, 1])
    prior = np.array([0.5, 0.5])
    expected = np.array([[2.5, 1.5], [0.5, 2.5], [1.5, 0.5], [0.5, 1.5]])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fit_ratios(cases, labels, prior), expected / prior, atol=1e-12)


def test_expectation_maximisation_finds_the_table_that_made_the_labels() -> None:
    drawn = np.random.default_rng(3)
    segments = Segments.of_counts(np.full(4000, 3))
    stances = drawn.dirichlet([0.15, 0.15, 0.3], size=12_000)
    cases = occurrences(stances, np.ones(12_000), segments)
    table = np.array([[0.1, 0.8, 0.1], [0.0, 0.2, 0.8], [0.8, 0.2, 0.0], [0.4, 0.2, 0.4]])
    case = np.array([drawn.choice(4, p=row / row.sum()) for row in cases])
    labels = np.array([drawn.choice(3, p=table[place]) for place in case])
    prior = np.bincount(labels) / len(labels)
    found = fit_ratios(cases, labels, prior) * prior
    np.testing.assert_allclose(found, table, atol=0.06)


@pytest.mark.parametrize("seed", range(20))
def test_parts_stay_within_what_the_ratios_allow(seed: int) -> None:
    """While items are faded in, Λ stays between the smallest and the largest ratio, so no part is
    out of proportion."""
    drawn = np.random.default_rng(seed)
    stances, ratios = drawn_stances(seed, 6), drawn.gamma(2.0, 0.5, (4, 3))
    parts = occurrence_contributions(stances, np.ones(6), Segments.one(6), ratios)
    span = np.log(ratios.max(axis=0)) - np.log(ratios.min(axis=0))
    assert (np.abs(parts) <= 2.0 * span + np.abs(np.log(ratios)).max(axis=0)).all()
