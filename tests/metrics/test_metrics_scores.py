"""Scores worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lpf import metrics
from lpf.errors import ConfigError

# Answers 0 1 1 2 0; right, right, wrong, right, wrong.
ROWS = np.array(
    [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.05, 0.9, 0.05], [0.3, 0.25, 0.45], [0.5, 0.25, 0.25]]
)
LABELS = np.array([0, 1, 0, 2, 2])


def exactly(value: float) -> object:
    return pytest.approx(value, rel=0, abs=1e-12)


def test_accuracy_and_confusion() -> None:
    assert metrics.accuracy(ROWS, LABELS) == exactly(3 / 5)
    np.testing.assert_array_equal(
        metrics.confusion(ROWS, LABELS), [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    )


def test_of_equally_likely_values_the_first_is_the_answer() -> None:
    rows = np.array([[0.4, 0.4, 0.2]])
    assert metrics.accuracy(rows, np.array([0])) == 1.0
    assert metrics.accuracy(rows, np.array([1])) == 0.0


def test_f1() -> None:
    """By value: 2·1/(2+2), 2·1/(1+2), 2·1/(2+1), with 2, 1 and 2 labels."""
    assert metrics.macro_f1(ROWS, LABELS) == exactly((1 / 2 + 2 / 3 + 2 / 3) / 3)
    assert metrics.weighted_f1(ROWS, LABELS) == exactly((2 / 2 + 2 / 3 + 2 * 2 / 3) / 5)


def test_f1_of_values_that_do_not_occur() -> None:
    """Value 1 is a label that is never answered, 2 an answer that is no label, 3 neither."""
    rows = np.eye(4)[[0, 0, 2]]
    labels = np.array([0, 1, 0])
    assert metrics.macro_f1(rows, labels) == exactly((0.5 + 0.0 + 0.0) / 3)
    assert metrics.weighted_f1(rows, labels) == exactly(2 * 0.5 / 3)


def test_nll() -> None:
    losses = [-math.log(p) for p in (0.7, 0.6, 0.05, 0.45, 0.25)]
    np.testing.assert_allclose(metrics.log_losses(ROWS, LABELS), losses, rtol=0, atol=1e-12)
    assert metrics.nll(ROWS, LABELS) == exactly(sum(losses) / 5)


def test_a_label_that_was_ruled_out_costs_infinitely_much() -> None:
    rows = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert metrics.nll(rows, np.array([1, 0])) == math.inf
    np.testing.assert_array_equal(
        metrics.log_losses(rows, np.array([1, 0])), [math.inf, math.log(2)]
    )


def test_a_perfect_answer_has_loss_zero_and_not_minus_zero() -> None:
    losses = metrics.log_losses(np.eye(2), np.array([0, 1]))
    np.testing.assert_array_equal(losses, [0.0, 0.0])
    assert not np.signbit(losses).any()


def test_brier_sums_over_values() -> None:
    losses = [0.14, 0.26, 0.95**2 + 0.9**2 + 0.05**2, 0.455, 0.875]
    np.testing.assert_allclose(metrics.brier_losses(ROWS, LABELS), losses, rtol=0, atol=1e-12)
    assert metrics.brier(ROWS, LABELS) == exactly(sum(losses) / 5)
    assert metrics.brier(np.eye(2), np.array([1, 0])) == 2.0


def test_confidence() -> None:
    np.testing.assert_array_equal(metrics.confidences(ROWS), [0.7, 0.6, 0.9, 0.45, 0.5])
    assert metrics.mean_confidence(ROWS) == exactly(0.63)
    squares = (0.07**2 + 0.03**2 + 0.27**2 + 0.18**2 + 0.13**2) / 5
    assert metrics.confidence_sd(ROWS) == exactly(math.sqrt(squares))


def test_counts_of_misplaced_confidence() -> None:
    """Wrong at .9 and .5; right at .7, .6 and .45. A confidence at the threshold is on neither
    side of it."""
    assert metrics.high_confidence_errors(ROWS, LABELS) == 1
    assert metrics.high_confidence_errors(ROWS, LABELS, threshold=0.9) == 0
    assert metrics.high_confidence_errors(ROWS, LABELS, threshold=0.49) == 2
    assert metrics.low_confidence_correct(ROWS, LABELS) == 1
    assert metrics.low_confidence_correct(ROWS, LABELS, threshold=0.45) == 0
    assert metrics.low_confidence_correct(ROWS, LABELS, threshold=0.61) == 2


@pytest.mark.parametrize("score", [metrics.high_confidence_errors, metrics.low_confidence_correct])
@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan])
def test_a_threshold_is_a_probability(score, threshold: float) -> None:
    with pytest.raises(ConfigError, match=r"threshold: must be in \[0, 1\]"):
        score(ROWS, LABELS, threshold=threshold)
