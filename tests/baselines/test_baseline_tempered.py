"""Temperatures fitted after a method, and methods that crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from baseline_examples import made, parts, predicate, without_labels

from lpf import metrics
from lpf.baselines import FittedMethod, Temperature, with_temperature
from lpf.baselines.tempered import every_size, fit_by_count
from lpf.errors import DatasetError, EvidenceError
from lpf.training import Examples
from lpf.types import FloatArray
from method_runs import run_methods

Rows = Callable[[Examples], FloatArray]


@dataclass(frozen=True)
class Told:
    """A method with given answers."""

    rows: Rows

    def predict_proba(self, examples: Examples) -> FloatArray:
        return self.rows(examples)


@dataclass(frozen=True)
class Teller:
    name: str
    rows: Rows
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        return Told(self.rows)


def drawn(count: int, seed: int = 0) -> tuple[FloatArray, np.ndarray]:
    """Calibrated answers and labels drawn from them."""
    generator = np.random.default_rng(seed)
    rows = generator.dirichlet(np.ones(3), size=count)
    labels = np.array([generator.choice(3, p=row) for row in rows], dtype=np.intp)
    return rows, labels


def powered(rows: FloatArray, power: np.ndarray) -> FloatArray:
    raised = rows ** power[:, None]
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def test_a_temperature_that_depends_on_the_count_is_found() -> None:
    rows, labels = drawn(6000)
    counts = np.random.default_rng(1).integers(1, 9, size=6000)
    found = fit_by_count(powered(rows, 1.5 * counts**0.5), labels, counts)
    assert found.intercept == pytest.approx(np.log(1.5), abs=0.1)
    assert found.slope == pytest.approx(0.5, abs=0.08)
    np.testing.assert_allclose(
        Temperature(np.log(1.5), 0.5).apply(powered(rows, 1.5 * counts**0.5), counts), rows
    )


def test_calibrated_answers_keep_temperature_one() -> None:
    rows, labels = drawn(6000, seed=2)
    counts = np.random.default_rng(3).integers(1, 9, size=6000)
    found = fit_by_count(rows, labels, counts)
    assert abs(found.intercept) < 0.1
    assert abs(found.slope) < 0.08


def test_temperatures_of_few_almost_perfect_entities_stay_finite() -> None:
    rows = np.tile([0.8, 0.1, 0.1], (30, 1))
    found = fit_by_count(rows, np.zeros(30, np.intp), np.arange(30) % 5 + 1)
    assert abs(found.intercept) < 1.5
    assert abs(found.slope) < 1.5


def test_certainty_stays_certainty() -> None:
    found = Temperature(1.0, 0.5).apply(np.eye(3), np.array([1, 2, 3]))
    np.testing.assert_array_equal(found, np.eye(3))


def test_a_label_of_probability_zero_is_refused() -> None:
    with pytest.raises(EvidenceError, match=r"positions \[1\].*probability zero"):
        fit_by_count(np.eye(3)[[0, 1]], np.array([0, 2]), np.array([1, 2]))


@pytest.mark.parametrize("name", ["logistic_mean", "edl_aggregated", "majority_vote"])
@pytest.mark.parametrize("by_count", [False, True])
def test_tempering_never_worsens_the_fitted_entities(name: str, by_count: bool) -> None:
    """The posterior's maximum cannot lie below its value at T = 1, where the prior is highest."""
    train, validation, _ = parts(items_min=None)
    fitted = made(name).fit(train, validation, predicate(), 5)
    tempered = with_temperature(
        fitted,
        validation,
        predicate(),
        generator=np.random.default_rng(4),
        by_count=by_count,
    )
    seen = every_size(validation, np.random.default_rng(4)) if by_count else validation
    labels = seen.dataset.labels(predicate())
    raw, mended = (metrics.nll(method.predict_proba(seen), labels) for method in (fitted, tempered))
    assert mended <= raw + 1e-6


def test_the_temperature_depends_on_the_count_only_if_counts_differ() -> None:
    for items_min, differ in ((None, False), (1, True)):
        train, validation, _ = parts(items_min)
        fitted = made("logistic_mean").fit(train, validation, predicate(), 5)
        tempered = with_temperature(
            fitted, validation, predicate(), generator=np.random.default_rng(4)
        )
        assert (tempered.temperature.slope != 0.0) == differ


def test_subsets_have_every_size_and_keep_rows_with_their_items() -> None:
    _, validation, _ = parts()
    subsets = every_size(validation, np.random.default_rng(0))
    counts = validation.segments.counts
    assert len(subsets.dataset) == counts.sum()
    np.testing.assert_array_equal(
        np.sort(subsets.segments.counts),
        np.sort(np.concatenate([np.arange(1, count + 1) for count in counts])),
    )
    features = {
        item.evidence_id: row
        for item, row in zip(validation.dataset.items, validation.features, strict=True)
    }
    for item, row in zip(subsets.dataset.items, subsets.features, strict=True):
        np.testing.assert_array_equal(row, features[item.evidence_id])


def uniform(examples: Examples) -> FloatArray:
    return np.full((len(examples.dataset), 3), 1 / 3)


def test_a_reference_is_not_tempered() -> None:
    def sharp(examples: Examples) -> FloatArray:
        return np.tile([0.98, 0.01, 0.01], (len(examples.dataset), 1))

    both = [Teller("bound", sharp, is_reference=True), Teller("guess", sharp)]
    outcomes = run_methods(both, *parts(), predicate(), seed=1)
    assert outcomes["bound"].temperature is None
    np.testing.assert_array_equal(outcomes["bound"].raw, outcomes["bound"].tempered)
    assert outcomes["guess"].tempered[0, 0] < 0.9


def test_entities_without_a_label_are_left_out_of_training_and_kept_in_the_test() -> None:
    train, validation, test = parts()
    first, *rest = train.dataset.entities
    unlabelled = replace(first, labels={})
    partly = replace(train, dataset=replace(train.dataset, entities=(unlabelled, *rest)))
    whole = train.select(np.arange(1, len(train.dataset)))
    method = made("logistic_mean")
    found, expected = (
        run_methods([method], each, validation, without_labels(test), predicate(), seed=1)
        for each in (partly, whole)
    )
    np.testing.assert_array_equal(found["logistic_mean"].raw, expected["logistic_mean"].raw)
    with pytest.raises(DatasetError, match=rf"1 entities have no value.*{first.entity_id}"):
        method.fit(partly, validation, predicate(), 1)


def test_data_without_any_label_are_refused() -> None:
    train, validation, test = parts()
    with pytest.raises(DatasetError, match="no entity has a value"):
        run_methods([], without_labels(train), validation, test, predicate(), seed=1)
