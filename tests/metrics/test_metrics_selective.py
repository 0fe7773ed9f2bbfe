from __future__ import annotations

import itertools

import numpy as np
import pytest

from lpf.metrics import aurc, risk_coverage


def binary(confidence: list[float]) -> np.ndarray:
    sure = np.array(confidence)
    return np.column_stack([sure, 1.0 - sure])


def test_the_curve_by_hand() -> None:
    """Surest first: right, wrong, right, wrong."""
    rows, labels = binary([0.6, 0.95, 0.7, 0.8]), np.array([1, 0, 0, 1])
    curve = risk_coverage(rows, labels)
    np.testing.assert_array_equal(curve.coverage, [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve.risk, [0.0, 1 / 2, 1 / 3, 2 / 4], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(curve.threshold, [0.95, 0.8, 0.7, 0.6])
    assert aurc(rows, labels) == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 4, rel=0, abs=1e-12)


def test_equally_sure_answers_count_as_the_mean_over_their_orders() -> None:
    rows, labels = binary([0.9, 0.7, 0.7, 0.7, 0.6]), np.array([0, 1, 0, 0, 1])
    curves = [
        np.cumsum([0, *order, 1]) / np.arange(1, 6) for order in itertools.permutations([1, 0, 0])
    ]
    expected = np.mean(curves, axis=0)
    np.testing.assert_allclose(risk_coverage(rows, labels).risk, expected, rtol=0, atol=1e-12)
    shuffled = [3, 4, 1, 0, 2]
    assert aurc(rows[shuffled], labels[shuffled]) == aurc(rows, labels)


def test_one_confidence_for_all_selects_nothing() -> None:
    rows, labels = binary([0.8] * 5), np.array([0, 0, 1, 0, 1])
    np.testing.assert_allclose(risk_coverage(rows, labels).risk, np.full(5, 0.4), atol=1e-12)
    assert aurc(rows, labels) == pytest.approx(0.4, rel=0, abs=1e-12)


def test_errors_last_is_the_best_order_and_errors_first_the_worst() -> None:
    rows = binary([0.9, 0.8, 0.7, 0.6])
    best, worst = aurc(rows, np.array([0, 0, 0, 1])), aurc(rows, np.array([1, 0, 0, 0]))
    assert best == pytest.approx(1 / 16, rel=0, abs=1e-12)
    assert worst == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, rel=0, abs=1e-12)
