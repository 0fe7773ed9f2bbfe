"""Compared with other libraries: scikit-learn on scores, torchmetrics on calibration."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lpf import metrics

CASES = [(2, 40, 0), (3, 135, 1), (5, 800, 2), (8, 12, 3)]


def predicted(values: int, entities: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores that favour the label somewhat, so that answers are right and wrong."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(values, size=entities)
    scores = generator.normal(size=(entities, values)) + 1.5 * np.eye(values)[labels]
    shares = np.exp(scores)
    return shares / shares.sum(axis=1, keepdims=True), labels


@pytest.fixture(scope="module")
def sklearn_metrics():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their imports are not ours to mend
        import sklearn.metrics
    return sklearn.metrics


@pytest.fixture(scope="module")
def torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
    return torch


@pytest.fixture(scope="module")
def theirs(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchmetrics.classification
    return torchmetrics.classification


@pytest.mark.parametrize(("values", "entities", "seed"), CASES)
def test_scikit_learn_agrees_on_answers(sklearn_metrics, values, entities, seed) -> None:
    rows, labels = predicted(values, entities, seed)
    answers = rows.argmax(axis=1)
    for ours, expected in (
        (metrics.accuracy, sklearn_metrics.accuracy_score(labels, answers)),
        (metrics.macro_f1, sklearn_metrics.f1_score(labels, answers, average="macro")),
        (metrics.weighted_f1, sklearn_metrics.f1_score(labels, answers, average="weighted")),
    ):
        assert ours(rows, labels) == pytest.approx(expected, rel=0, abs=1e-9)
    expected = sklearn_metrics.confusion_matrix(labels, answers, labels=range(values))
    np.testing.assert_array_equal(metrics.confusion(rows, labels), expected)


@pytest.mark.parametrize(("values", "entities", "seed"), CASES)
def test_scikit_learn_agrees_on_probabilities(sklearn_metrics, values, entities, seed) -> None:
    rows, labels = predicted(values, entities, seed)
    expected = sklearn_metrics.log_loss(labels, rows, labels=range(values))
    assert metrics.nll(rows, labels) == pytest.approx(expected, rel=0, abs=1e-9)
    # Theirs is of one value at a time; ours sums over values.
    by_value = [
        sklearn_metrics.brier_score_loss(labels == value, rows[:, value], pos_label=True)
        for value in range(values)
    ]
    assert metrics.brier(rows, labels) == pytest.approx(sum(by_value), rel=0, abs=1e-9)


def judged_by(torch, referee, confidence: np.ndarray, right: np.ndarray) -> float:
    """Its own ``update`` rounds to float32, so the states it would fill are given in float64."""
    referee.confidences = [torch.from_numpy(confidence)]
    referee.accuracies = [torch.from_numpy(right.astype(np.float64))]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The ``compute`` method")  # before ``update``
        return float(referee.compute())


@pytest.mark.parametrize(("values", "entities", "seed"), CASES)
@pytest.mark.parametrize("bins", [10, 15])
@pytest.mark.parametrize(("norm", "ours"), [("l1", metrics.ece), ("max", metrics.mce)])
def test_torchmetrics_agrees(torch, theirs, values, entities, seed, bins, norm, ours) -> None:
    rows, labels = predicted(values, entities, seed)
    referee = theirs.MulticlassCalibrationError(num_classes=values, n_bins=bins, norm=norm)
    expected = judged_by(torch, referee, rows.max(axis=1), rows.argmax(axis=1) == labels)
    assert ours(rows, labels, bins=bins) == pytest.approx(expected, rel=0, abs=1e-9)
    referee.reset()
    referee.update(torch.from_numpy(rows), torch.from_numpy(labels))
    assert ours(rows, labels, bins=bins) == pytest.approx(float(referee.compute()), abs=1e-6)


@pytest.mark.parametrize(("values", "entities", "seed"), CASES)
@pytest.mark.parametrize("bins", [10, 15])
def test_torchmetrics_agrees_value_by_value(torch, theirs, values, entities, seed, bins) -> None:
    rows, labels = predicted(values, entities, seed)
    by_value = [
        judged_by(
            torch,
            theirs.BinaryCalibrationError(n_bins=bins, norm="l1"),
            rows[:, value].copy(),
            labels == value,
        )
        for value in range(values)
    ]
    found = metrics.classwise_ece(rows, labels, bins=bins)
    assert found == pytest.approx(np.mean(by_value), rel=0, abs=1e-9)
