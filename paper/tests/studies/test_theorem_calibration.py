"""T1, T4 and T6: closed forms, full enumeration, and bounds that random cases must keep."""

from __future__ import annotations

from itertools import product
from math import comb, log, sqrt, tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpf import metrics
from lpf_paper.studies.theorems.calibration import (
    LOG_ERROR,
    corrected_bound,
    corrected_run,
    ece_of_copies,
    ece_of_silence,
    misread,
    stated_bound,
)
from lpf_paper.studies.theorems.known_items import (
    KnownItems,
    corrected_answer,
    draw_items,
    published_answer,
    vote_likelihood,
)
from lpf_paper.studies.theorems.lower_bound import cross_entropy, excess_of
from lpf_paper.studies.theorems.sample_size import (
    constant,
    error_bound,
    independent_run,
    published_fit,
    root_fit,
)
from lpf_paper.studies.theorems.statement import MeasuredEce, printed

SHARES = np.array([0.2, 0.3, 0.5])


def all_votes(items: int, values: int, accuracy: float, shares: np.ndarray) -> KnownItems:
    """One entity per combination of votes; the labels do not matter."""
    votes = np.array(list(product(range(values), repeat=items)))
    return KnownItems(np.zeros(len(votes), np.intp), votes, accuracy, shares)


def test_exact_answers_are_bayes_rule_by_enumeration() -> None:
    known = all_votes(3, 3, 0.6, SHARES)
    likelihood = [[0.6 if vote == value else 0.2 for value in range(3)] for vote in range(3)]
    for votes, answer in zip(known.votes, known.exact, strict=True):
        joint = [
            SHARES[value] * np.prod([likelihood[vote][value] for vote in votes])
            for value in range(3)
        ]
        np.testing.assert_allclose(answer, np.array(joint) / sum(joint))
    np.testing.assert_allclose(corrected_answer(known, known.potential), known.exact)


def test_the_papers_product_counts_the_prior_once_more_per_item() -> None:
    known = all_votes(2, 3, 0.6, SHARES)
    expected = known.exact * SHARES**2
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(published_answer(known, 1.0), expected, rtol=1e-9)


def test_drawn_votes_are_right_as_often_as_stated() -> None:
    known = draw_items(20_000, 2, 0.7, SHARES, seed=5)
    assert (known.votes == known.labels[:, None]).mean() == pytest.approx(0.7, abs=0.01)
    np.testing.assert_allclose(np.bincount(known.labels) / 20_000, SHARES, atol=0.015)
    assert MeasuredEce.of(known.exact, known.labels, seed=1).keeps(0.0)


def test_copies_and_silent_items_by_hand() -> None:
    assert ece_of_copies(1) == pytest.approx(0.0, abs=1e-9)
    assert ece_of_copies(2) == pytest.approx(0.49 / (0.49 + 2 * 0.15**2) - 0.7)
    squares = np.array([0.05, 0.15, 0.8]) ** 2
    assert ece_of_silence(1) == pytest.approx(squares[2] / squares.sum() - 0.8)
    assert ece_of_silence(1, weight=0.0) == pytest.approx(0.0, abs=1e-9)
    assert ece_of_silence(400) == pytest.approx(0.2)


def test_the_stated_bound_is_not_the_printed_one() -> None:
    item, c = (printed("theory_numbers", f"T1 {name}").value for name in ("item_ece", "constant"))
    assert stated_bound(item, c, 5) == pytest.approx(0.14 + 2.4 / sqrt(5))
    assert stated_bound(item, c, 5) > 1.2
    assert ece_of_copies(400) > stated_bound(0.0, c, 400)
    assert ece_of_silence(400) > stated_bound(0.0, c, 400)


@given(
    votes=st.lists(st.integers(0, 2), min_size=1, max_size=8),
    error=st.floats(0.0, 0.5),
    noise=st.integers(0, 2**32 - 1),
)
def test_no_factors_within_the_error_move_an_answer_beyond_the_bound(
    votes: list[int], error: float, noise: int
) -> None:
    known = KnownItems(np.zeros(1, np.intp), np.array([votes]), 0.6, SHARES)
    moved = known.potential * np.exp(
        np.random.default_rng(noise).uniform(-error, error, known.potential.shape)
    )
    answer = corrected_answer(known, moved / moved.sum(axis=1, keepdims=True))
    assert np.abs(answer - known.exact).max() <= corrected_bound(len(votes), error) + 1e-9


def test_the_corrected_bound_is_reached() -> None:
    """Two values, log-odds h·K on the wrong side of one half and moved to the other side."""
    items, error = 4, 0.25
    base = 1.0 / (1.0 + np.exp(error))
    clean = np.tile([base, 1.0 - base], (items, 1))
    moved = clean * np.exp([error, -error])
    moved /= moved.sum(axis=1, keepdims=True)
    known = KnownItems(np.zeros(1, np.intp), np.zeros((1, items), np.intp), 0.5, np.full(2, 0.5))
    before, after = (corrected_answer(known, one)[0, 0] for one in (clean, moved))
    assert after - before == pytest.approx(tanh(items * error / 2.0))


def test_misread_factors_are_off_by_the_log_error() -> None:
    known = draw_items(50, 2, 0.5, SHARES, seed=1)
    ratio = np.log(misread(known, 0.1) / known.potential)
    np.testing.assert_allclose(ratio.max(axis=1) - ratio.min(axis=1), 0.2)
    np.testing.assert_allclose(misread(known, 0.0), known.potential)


def test_the_corrected_product_stays_calibrated() -> None:
    run = corrected_run(10, 4000, log_error=0.0)
    assert run.distance == pytest.approx(0.0, abs=1e-12)
    assert run.ece.keeps(0.0)
    assert run.published > corrected_bound(10, LOG_ERROR) / 2


def test_chance_does_not_explain_a_large_error() -> None:
    sure = np.tile([0.9, 0.1], (1000, 1))
    labels = np.arange(1000) % 2
    found = MeasuredEce.of(sure, labels, seed=1)
    assert found.ece == pytest.approx(0.4)
    assert not found.keeps(0.3)
    assert found.keeps(0.4)


def test_cross_entropy_by_hand() -> None:
    truth, answer = np.array([[0.25, 0.75]]), np.array([[0.5, 0.5]])
    assert cross_entropy(truth, answer) == pytest.approx(log(2.0))
    assert cross_entropy(np.array([[1.0, 0.0]]), np.array([[0.25, 0.75]])) == pytest.approx(log(4))
    assert cross_entropy(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])) == np.inf


def test_class_shares_have_no_calibration_error_and_full_entropy() -> None:
    labels = np.repeat([0, 1, 2], [20, 30, 50])
    exact = np.eye(3)[labels] * 0.7 + 0.1
    found = excess_of(np.tile(SHARES, (100, 1)), exact, labels)
    assert found.ece.ece == pytest.approx(0.0, abs=1e-12)
    assert found.entropy_ratio == pytest.approx(1.0)
    assert found.excess > 0.0


@given(st.integers(0, 2**32 - 1))
def test_ece_is_below_its_upper_bound_when_labels_are_the_posteriors(seed: int) -> None:
    """Each row is repeated so that its labels occur exactly as often as the posterior says."""
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(50, [0.2, 0.3, 0.5], size=6)
    labels = np.concatenate([np.repeat(np.arange(3), row) for row in counts])
    exact = np.repeat(counts / 50.0, 50, axis=0)
    answer = np.repeat(generator.dirichlet(np.full(3, 2.0), size=6), 50, axis=0)
    found = excess_of(answer, exact, labels)
    assert found.excess >= -1e-12
    assert found.ece.ece <= found.bound + 1e-9


def test_a_root_fit_finds_its_curve() -> None:
    counts = [1, 2, 5, 10]
    fit = root_fit(counts, [0.3 / sqrt(count) + 0.1 for count in counts])
    assert (fit.slope, fit.floor, fit.r2) == pytest.approx((0.3, 0.1, 1.0))


def test_the_papers_fit_is_nearly_that_of_its_table() -> None:
    fit = published_fit()
    for name in ("slope", "floor", "r2"):
        assert getattr(fit, name) == pytest.approx(
            printed("theory_numbers", f"T6 fit_{name}").value, abs=0.03
        )
    assert fit.floor > 0.05


def test_the_constant_by_hand() -> None:
    assert constant(2, risk=4 / np.e**2) == pytest.approx(1.0)


@pytest.mark.parametrize("items", [1, 2, 5, 9])
def test_the_error_bound_holds_for_two_values_by_enumeration(items: int) -> None:
    """An item is right in .8: the overlap is 2·sqrt(.8·.2) = .8."""
    bound = error_bound(items, vote_likelihood(0.8, 2))
    assert bound == pytest.approx(0.8**items)
    wrong = sum(
        comb(items, right)
        * 0.8**right
        * 0.2 ** (items - right)
        * (1.0 if 2 * right < items else 0.5 if 2 * right == items else 0.0)
        for right in range(items + 1)
    )
    assert wrong <= bound


def test_exact_factors_are_calibrated_at_every_count() -> None:
    for items in (1, 5, 20):
        run = independent_run(items, 4000)
        assert run.ece.keeps(0.0)
        assert run.error <= run.bound + 0.02
    assert independent_run(20, 4000).error < independent_run(5, 4000).error / 2


def test_the_measured_error_is_that_of_the_answers() -> None:
    known = draw_items(500, 3, 0.6, np.full(3, 1 / 3), seed=2)
    answer = corrected_answer(known, known.potential)
    assert independent_run(3, 500).error == 1.0 - metrics.accuracy(answer, known.labels)
