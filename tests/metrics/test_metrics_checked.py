from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lpf import metrics
from lpf.errors import EvidenceError, NonFiniteError

FINE = np.array([[0.5, 0.5], [0.1, 0.9]])
LABELS = np.array([0, 1])

LABELLED = [
    metrics.accuracy,
    metrics.aurc,
    metrics.brier,
    metrics.brier_losses,
    metrics.checked,
    metrics.classwise_ece,
    metrics.confusion,
    metrics.ece,
    metrics.high_confidence_errors,
    metrics.confidence_and_hits,
    metrics.log_losses,
    metrics.low_confidence_correct,
    metrics.macro_f1,
    metrics.mce,
    metrics.nll,
    metrics.reliability,
    metrics.risk_coverage,
    metrics.weighted_f1,
]
UNLABELLED = [
    metrics.confidence_sd,
    metrics.confidences,
    metrics.mean_confidence,
    lambda rows: metrics.ece_null(rows, np.random.default_rng(0), draws=1),
]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.array([0.5, 0.5]), r"probabilities: must be \[entities, values\].*\(2,\)"),
        (np.empty((0, 3)), r"not empty, got \(0, 3\)"),
        (np.empty((2, 0)), r"not empty, got \(2, 0\)"),
        (np.array([[0.5, 0.5], [np.nan, 1.0]]), r"probabilities\[1\]: not finite"),
        (np.array([[np.inf, 0.5], [0.5, 0.5]]), r"probabilities\[0\]: not finite"),
        (np.array([[0.5, 0.5], [-0.1, 1.1]]), r"probabilities\[1\]: below 0"),
        (np.array([[0.5, 0.5], [0.5, 0.4]]), r"probabilities\[1\]: sums to 0\.9;"),
        (np.array([[0.5, 0.5], [0.5, 0.500002]]), r"probabilities\[1\]: sums to 1\.000002;"),
    ],
)
def test_invalid_distributions_are_refused(rows: np.ndarray, words: str) -> None:
    with pytest.raises(EvidenceError, match=words):
        metrics.checked(rows, LABELS)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.array([0]), r"labels: \(1,\) given for 2 rows"),
        (np.array([[0, 1]]), r"labels: \(1, 2\) given for 2 rows"),
        (np.array([0.0, 1.0]), "labels: must be whole numbers, got float64"),
        (np.array([True, False]), "labels: must be whole numbers, got bool"),
        (np.array([0, 2]), r"labels\[1\]: 2 is not in 0 to 1"),
        (np.array([-1, 0]), r"labels\[0\]: -1 is not in 0 to 1"),
    ],
)
def test_labels_out_of_range_are_refused(labels: np.ndarray, words: str) -> None:
    with pytest.raises(EvidenceError, match=words):
        metrics.checked(FINE, labels)


def test_narrow_types_and_rounded_sums_are_accepted() -> None:
    rows = np.array([[0.3, 0.7 + 5e-7], [0.25, 0.75]])
    found, labels = metrics.checked(rows, np.array([1, 0], dtype=np.uint8))
    np.testing.assert_array_equal(found, rows)
    assert (found.dtype, labels.dtype) == (np.float64, np.int64)
    single, _ = metrics.checked(rows.astype(np.float32), LABELS)
    assert single.dtype == np.float64


@pytest.mark.parametrize("score", LABELLED, ids=lambda score: score.__name__)
def test_every_score_of_labels_checks_rows_and_labels(score: Callable[..., object]) -> None:
    with pytest.raises(NonFiniteError):
        score(np.array([[np.nan, 1.0], [0.5, 0.5]]), LABELS)
    with pytest.raises(EvidenceError, match=r"labels\[0\]"):
        score(FINE, np.array([2, 0]))


@pytest.mark.parametrize("score", UNLABELLED)
def test_every_score_of_confidence_checks_rows(score: Callable[..., object]) -> None:
    with pytest.raises(EvidenceError, match="sums to"):
        score(FINE * 0.9)


def test_the_lists_above_leave_no_score_out() -> None:
    """Whatever takes probabilities is in one of them."""
    taking = {
        name
        for name in metrics.__all__
        if "probabilities" in getattr(getattr(metrics, name), "__annotations__", {})
    }
    listed = {score.__name__ for score in LABELLED + UNLABELLED} - {"<lambda>"} | {"ece_null"}
    assert taking == listed
