from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from answered_runs import a_crash, a_run, calibrated_run
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf import metrics
from lpf.errors import ConfigError, EvidenceError
from lpf.evaluation.measures import (
    SubsetScores,
    by_count,
    by_credibility,
    by_group,
    by_label,
    confusion_of,
    measure,
    plain,
    reliability_of,
    risk_coverage_of,
)
from lpf.evaluation.predictions import Costs, Predictions

# Answers 0 1 1 2 0; right, right, wrong, right, wrong.
ROWS = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.05, 0.9, 0.05], [0.3, 0.25, 0.45], [0.5, 0.25, 0.25]]
LABELS = [0, 1, 0, 2, 2]
LOSSES = [-math.log(p) for p in (0.7, 0.6, 0.05, 0.45, 0.25)]
BRIERS = [0.14, 0.26, 0.95**2 + 0.9**2 + 0.05**2, 0.455, 0.875]


def exactly(value: float) -> object:
    return pytest.approx(value, rel=0, abs=1e-12)


def test_measures_by_hand() -> None:
    """Every confidence has a bin of its own, among 10, 15, and 15 of equal mass, so that an ECE is
    the mean of |right - confidence|."""
    found = measure(a_run(ROWS, LABELS))
    gaps = [0.3, 0.4, 0.9, 0.55, 0.5]
    expected = {
        "accuracy": 3 / 5,
        "macro_f1": (1 / 2 + 2 / 3 + 2 / 3) / 3,
        "weighted_f1": (2 / 2 + 2 / 3 + 2 * 2 / 3) / 5,
        "nll": sum(LOSSES) / 5,
        "labels_ruled_out": 0.0,
        "brier": sum(BRIERS) / 5,
        "brier_over_k": sum(BRIERS) / 15,
        "ece": sum(gaps) / 5,
        "ece_15": sum(gaps) / 5,
        "ece_mass": sum(gaps) / 5,
        "mce": 0.9,
        "mean_confidence": 0.63,
        "confidence_sd": math.sqrt((0.07**2 + 0.03**2 + 0.27**2 + 0.18**2 + 0.13**2) / 5),
        "high_confidence_errors": 1 / 5,
        "low_confidence_correct": 1 / 5,
        # Surest first: wrong, right, right, wrong, right.
        "aurc": (1 + 1 / 2 + 1 / 3 + 1 / 2 + 2 / 5) / 5,
    }
    for name, value in expected.items():
        assert found[name] == exactly(value), name


def test_measures_before_and_after_the_temperature_differ() -> None:
    raw = np.asarray(ROWS)
    tempered = np.sqrt(raw) / np.sqrt(raw).sum(axis=1, keepdims=True)
    found = measure(a_run(tempered, LABELS, raw=raw))
    assert found["raw_nll"] == exactly(sum(LOSSES) / 5)
    assert found["raw_brier"] == exactly(sum(BRIERS) / 5)
    assert found["raw_ece"] == exactly(metrics.ece(raw, np.array(LABELS)))
    assert found["nll"] == exactly(metrics.nll(tempered, np.array(LABELS)))
    assert found["nll"] != pytest.approx(found["raw_nll"])
    without = measure(a_run(tempered, LABELS, raw=None))
    assert not any(name.startswith("raw_") for name in without)


def test_costs_that_were_not_measured_are_absent() -> None:
    whole = Costs(
        fit_seconds=3.5, query_ms=0.25, per_second=4000.0, stored_bytes=1024, peak_bytes=2048
    )
    found = measure(a_run(ROWS, LABELS, costs=whole))
    names = ("runtime_ms", "per_second", "fit_seconds", "stored_bytes", "peak_bytes")
    assert [found[name] for name in names] == [0.25, 4000.0, 3.5, 1024.0, 2048.0]
    assert not set(names) & measure(a_run(ROWS, LABELS)).keys()
    nothing = measure(a_run(ROWS, LABELS, costs=Costs(fit_seconds=0.0)))
    assert nothing["fit_seconds"] == 0.0


def test_the_null_is_that_of_the_seed() -> None:
    run = calibrated_run(200, 0)
    null = metrics.ece_null(run.answers, np.random.default_rng(7), draws=1000)
    found = measure(run, seed=7)
    assert found["ece_null"] == exactly(null.mean)
    assert found["ece_null_95"] == exactly(null.quantile_95)
    assert found["ece_p"] == exactly(null.p_value(found["ece"]))
    assert measure(run, seed=7) == found
    assert measure(run, seed=8)["ece_null"] != found["ece_null"]


def test_calibrated_and_overconfident_answers_are_distinguished() -> None:
    honest = calibrated_run(1500, 0)
    sharper = calibrated_run(1500, 0, sharpness=4.0)
    assert measure(sharper)["ece_p"] == exactly(1 / 1001)
    assert measure(sharper)["ece"] > 3 * measure(sharper)["ece_null_95"]
    assert measure(honest)["ece"] < 0.5 * measure(sharper)["ece"]


def test_an_infinite_log_loss_is_stored_and_null_in_json() -> None:
    found = measure(a_run([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]], [1, 0]))
    assert (found["nll"], found["raw_nll"]) == (math.inf, math.inf)
    assert found["labels_ruled_out"] == 0.5
    shown = plain(found)
    assert (shown["nll"], shown["raw_nll"], shown["brier"]) == (None, None, found["brier"])
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_a_crash_has_no_measures() -> None:
    for of in (measure, by_label, by_credibility, confusion_of, reliability_of, risk_coverage_of):
        with pytest.raises(EvidenceError, match="no predictions to score: TrainingError: it broke"):
            of(a_crash([0, 1]))


@pytest.fixture(scope="module")
def referees():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their imports are not ours to mend
        import sklearn.metrics
        import torch
        import torchmetrics.classification
    return sklearn.metrics, torch, torchmetrics.classification


@pytest.mark.parametrize("seed", [0, 1])
def test_other_libraries_agree(referees, seed: int) -> None:
    theirs, torch, torchmetrics = referees
    run = calibrated_run(400, seed, sharpness=1.5, data=seed)
    rows, labels, found = run.answers, run.labels, measure(run)
    answers, right = rows.argmax(axis=1), rows.argmax(axis=1) == labels
    one_hot = np.eye(3)[labels]
    expected = {
        "accuracy": theirs.accuracy_score(labels, answers),
        "macro_f1": theirs.f1_score(labels, answers, average="macro"),
        "weighted_f1": theirs.f1_score(labels, answers, average="weighted"),
        "nll": theirs.log_loss(labels, rows),
        "brier": 3 * theirs.mean_squared_error(one_hot, rows),
        "brier_over_k": theirs.mean_squared_error(one_hot, rows),
    }
    for name, bins, norm in (("ece", 10, "l1"), ("ece_15", 15, "l1"), ("mce", 10, "max")):
        referee = torchmetrics.MulticlassCalibrationError(num_classes=3, n_bins=bins, norm=norm)
        # Its own ``update`` rounds to float32, so the states it would fill are given in float64.
        referee.confidences = [torch.from_numpy(rows.max(axis=1))]
        referee.accuracies = [torch.from_numpy(right.astype(np.float64))]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The ``compute`` method")
            expected[name] = float(referee.compute())
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=0, abs=1e-9), name
    np.testing.assert_array_equal(confusion_of(run), theirs.confusion_matrix(labels, answers))


def test_parts_by_label_by_hand() -> None:
    first, second, third = by_label(a_run(ROWS, LABELS))
    assert (first.name, second.name, third.name) == ("low", "medium", "high")
    assert (first.entities, first.accuracy) == (2, 0.5)
    assert first.nll == exactly((LOSSES[0] + LOSSES[2]) / 2)
    assert first.brier == exactly((BRIERS[0] + BRIERS[2]) / 2)
    assert first.mean_confidence == exactly(0.8)
    assert (second.entities, second.accuracy, third.accuracy) == (1, 1.0, 0.5)
    assert {part.ece for part in (first, second, third)} == {None}
    assert {part.ece_null for part in (first, second, third)} == {None}


def test_a_value_that_is_no_label_has_no_part() -> None:
    assert [part.name for part in by_label(a_run(ROWS, [0, 2, 0, 2, 2]))] == ["low", "high"]


def test_parts_by_number_of_items() -> None:
    run = a_run(ROWS, LABELS, counts=np.array([1, 12, 1, 3, 10]))
    parts = by_count(run)
    assert [(part.name, part.entities) for part in parts] == [("1", 2), ("3", 1), ("10 or more", 2)]
    assert [part.accuracy for part in parts] == [0.5, 1.0, 0.5]
    # Confidences .7 and .9, right and wrong, in bins of their own.
    assert parts[0].ece == exactly((0.3 + 0.9) / 2)
    # A lone answer at .45 is right in .45 of the draws, and then .55 away.
    assert parts[1].ece_null == pytest.approx(2 * 0.45 * 0.55, abs=0.02)
    fewer = by_count(run, most=2)
    assert [(part.name, part.entities) for part in fewer] == [("1", 2), ("2 or more", 3)]
    with pytest.raises(ConfigError, match="most: must be 1 or above, got 0"):
        by_count(run, most=0)


def test_quarters_by_credibility() -> None:
    credibility = np.array([0.9, 0.1, np.nan, 0.3, 0.5, 0.7, 0.2, 0.4, 0.8])
    run = a_run(np.tile([0.6, 0.4], (9, 1)), [0] * 8 + [1], credibility=credibility)
    parts = by_credibility(run)
    assert [(part.name, part.entities) for part in parts] == [
        ("0.100 to 0.200", 2),
        ("0.300 to 0.400", 2),
        ("0.500 to 0.700", 2),
        ("0.800 to 0.900", 2),
        ("unknown", 1),
    ]
    assert [part.accuracy for part in parts] == [1.0, 1.0, 1.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("credibility", "expected"),
    [
        ([0.5] * 4, [("0.500 to 0.500", 4)]),
        ([np.nan] * 4, [("unknown", 4)]),
        ([0.5, 0.5, 0.5, 0.9], [("0.500 to 0.500", 3), ("0.900 to 0.900", 1)]),
        ([0.2, np.nan, np.nan, np.nan], [("0.200 to 0.200", 1), ("unknown", 3)]),
        # Quarters end at .2, .2 and .3: an entity at the end of one belongs to it.
        (
            [0.2, 0.1, 0.2, 0.3, 0.4],
            [("0.100 to 0.200", 3), ("0.300 to 0.300", 1), ("0.400 to 0.400", 1)],
        ),
    ],
)
def test_equal_credibilities_stay_together(credibility, expected) -> None:
    size = len(credibility)
    run = a_run(np.tile([0.6, 0.4], (size, 1)), [0] * size, credibility=np.array(credibility))
    assert [(part.name, part.entities) for part in by_credibility(run)] == expected


def test_parts_by_protected_field() -> None:
    run = a_run(ROWS, LABELS, groups=("north", None, "east", "north", "east"))
    found = [(part.name, part.entities, part.accuracy) for part in by_group(run)]
    assert found == [("east", 2, 0.0), ("north", 2, 1.0), ("unknown", 1, 1.0)]
    assert by_group(a_run(ROWS, LABELS)) == []
    # A field's own value of that name is not mixed with entities that have none.
    named = by_group(a_run(ROWS, LABELS, groups=("unknown", None, "unknown", None, None)))
    assert [part.entities for part in named] == [2, 3]


@given(seed=st.integers(0, 9999), entities=st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_parts_cover_all_entities(seed: int, entities: int) -> None:
    generator = np.random.default_rng(seed)
    credibility = np.round(generator.random(entities), 1)
    credibility[generator.random(entities) < 0.2] = np.nan
    groups = tuple(generator.choice(np.array(["a", "b", None]), size=entities))
    run = calibrated_run(
        entities,
        seed,
        counts=generator.integers(1, 15, size=entities),
        credibility=credibility,
        groups=groups,
    )
    for parts in (by_label(run), by_credibility(run), by_count(run), by_group(run)):
        assert sum(part.entities for part in parts) == entities
        assert _mean_of(parts, "accuracy") == exactly(metrics.accuracy(run.answers, run.labels))
        assert _mean_of(parts, "nll") == exactly(metrics.nll(run.answers, run.labels))
        assert _mean_of(parts, "brier") == exactly(metrics.brier(run.answers, run.labels))


def _mean_of(parts: list[SubsetScores], name: str) -> float:
    sizes = [part.entities for part in parts]
    return float(np.average([getattr(part, name) for part in parts], weights=sizes))


def test_bins_add_up_to_the_ece() -> None:
    run = calibrated_run(300, 2, sharpness=2.0)
    table = reliability_of(run)
    gaps = np.abs(table.accuracy - table.confidence)
    assert gaps @ table.count / 300 == exactly(measure(run)["ece"])
    confidence, right = metrics.confidence_and_hits(run.answers, run.labels)
    order = np.argsort(confidence)
    twenties = (right - confidence)[order].reshape(15, 20)
    assert measure(run)["ece_mass"] == exactly(np.abs(twenties.sum(axis=1)).sum() / 300)
    np.testing.assert_array_equal(reliability_of(run, bins=15, kind="mass").count, [20] * 15)


def test_a_curve_is_thinned_without_being_changed() -> None:
    run = calibrated_run(250, 2)
    whole = metrics.risk_coverage(run.answers, run.labels)
    few = risk_coverage_of(run, points=10)
    np.testing.assert_allclose(few.coverage, np.arange(1, 11) / 10, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(few.risk, whole.risk[24::25])
    np.testing.assert_array_equal(few.threshold, whole.threshold[24::25])
    every = risk_coverage_of(_short(run), points=100)
    np.testing.assert_array_equal(every.coverage, np.arange(1, 8) / 7)
    with pytest.raises(ConfigError, match="points: must be 1 or above"):
        risk_coverage_of(run, points=0)


def _short(run: Predictions) -> Predictions:
    return a_run(run.answers[:7], run.labels[:7].tolist())
