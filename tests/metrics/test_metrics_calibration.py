from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.errors import ConfigError
from lpf.metrics import EceNull, calibration, classwise_ece, ece, ece_null, mce, reliability


def exactly(value: float) -> object:
    return pytest.approx(value, rel=0, abs=1e-12)


def binary(confidence: list[float]) -> np.ndarray:
    """Rows whose answer is value 0 with these confidences."""
    sure = np.array(confidence)
    return np.column_stack([sure, 1.0 - sure])


def simulated(entities: int, values: int, seed: int, sharpness: float = 1.0):
    """A predictor that is calibrated where ``sharpness`` is 1, overconfident above."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.ones(values), entities)
    labels = (generator.random((entities, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    shown = truth**sharpness
    return shown / shown.sum(axis=1, keepdims=True), labels.clip(max=values - 1)


# Bins of width .2: two in [.6, .8), one right; three in [.8, 1], two right.
ROWS = binary([0.62, 0.7, 0.81, 0.95, 1.0])
LABELS = np.array([0, 1, 0, 1, 0])
LOW_GAP = abs(1 / 2 - (0.62 + 0.7) / 2)
HIGH_GAP = abs(2 / 3 - (0.81 + 0.95 + 1.0) / 3)


def test_the_table_by_hand() -> None:
    table = reliability(ROWS, LABELS, bins=5)
    np.testing.assert_allclose(table.lower, [0.6, 0.8], atol=1e-12)
    np.testing.assert_allclose(table.upper, [0.8, 1.0], atol=1e-12)
    np.testing.assert_array_equal(table.count, [2, 3])
    np.testing.assert_allclose(table.confidence, [0.66, 0.92], rtol=0, atol=1e-12)
    np.testing.assert_allclose(table.accuracy, [0.5, 2 / 3], rtol=0, atol=1e-12)


def test_errors_by_hand() -> None:
    assert ece(ROWS, LABELS, bins=5) == exactly(0.4 * LOW_GAP + 0.6 * HIGH_GAP)
    assert mce(ROWS, LABELS, bins=5) == exactly(max(LOW_GAP, HIGH_GAP))


def test_classwise_by_hand() -> None:
    """Value 1 has .38 .3 | .19 .05 0 in [.2, .4) and [0, .2): one label of two, one of three."""
    first = 0.4 * LOW_GAP + 0.6 * HIGH_GAP
    second = 0.4 * abs(1 / 2 - 0.34) + 0.6 * abs(1 / 3 - 0.08)
    for order in ([0, 1, 2, 3, 4], [4, 0, 3, 1, 2]):
        found = classwise_ece(ROWS[order], LABELS[order], bins=5)
        assert found == exactly((first + second) / 2)


def test_classwise_sees_what_the_answers_hide() -> None:
    """Answers are as good as their .6, but the rest goes to 1 where 2 is the other label."""
    rows = np.tile([0.6, 0.4, 0.0], (10, 1))
    labels = np.array([0] * 6 + [2] * 4)
    assert ece(rows, labels) == exactly(0.0)
    assert classwise_ece(rows, labels) == exactly((0.0 + 0.4 + 0.4) / 3)


def test_bins_of_equal_mass_by_hand() -> None:
    table = reliability(ROWS, LABELS, bins=2, kind="mass")
    np.testing.assert_array_equal(table.lower, [0.62, 0.81])
    np.testing.assert_array_equal(table.upper, [0.81, 1.0])
    np.testing.assert_array_equal(table.count, [2, 3])
    assert ece(ROWS, LABELS, bins=2, kind="mass") == exactly(0.4 * LOW_GAP + 0.6 * HIGH_GAP)


def test_equal_confidences_share_a_bin_of_equal_mass() -> None:
    rows, labels = binary([0.6, 0.9, 0.9, 0.9, 0.9, 0.95]), np.array([0, 0, 0, 1, 0, 0])
    table = reliability(rows, labels, bins=3, kind="mass")
    np.testing.assert_array_equal(table.count, [1, 5])
    np.testing.assert_array_equal(table.upper, [0.9, 0.95])
    same = binary([0.75] * 4)
    assert ece(same, np.array([0, 0, 0, 1]), bins=3, kind="mass") == exactly(0.0)


def test_bins_of_equal_mass_differ_by_one_entity_at_most() -> None:
    rows, labels = simulated(137, 4, seed=1)
    counts = reliability(rows, labels, bins=10, kind="mass").count
    assert (len(counts), counts.sum(), np.ptp(counts)) == (10, 137, 1)
    parts = np.split(np.sort(rows.max(axis=1)), counts.cumsum()[:-1])
    table = reliability(rows, labels, bins=10, kind="mass")
    np.testing.assert_allclose(table.confidence, [part.mean() for part in parts], atol=1e-12)


def test_a_bin_begins_with_its_edge() -> None:
    """.75 belongs to [.75, 1] and not to [.5, .75)."""
    table = reliability(binary([0.75, 0.9, 0.5]), np.array([0, 0, 0]), bins=4)
    np.testing.assert_array_equal(table.lower, [0.5, 0.75])
    np.testing.assert_array_equal(table.count, [1, 2])


@pytest.mark.parametrize("bins", [10, 15, 20])
def test_shares_of_votes_begin_the_bin_they_name(bins: int) -> None:
    """Three of five votes are .6, which steps of .1 added up would overshoot."""
    shares = [place / bins for place in range((bins + 1) // 2, bins)]
    table = reliability(binary(shares), np.zeros(len(shares), dtype=int), bins=bins)
    np.testing.assert_array_equal(table.lower, shares)
    np.testing.assert_array_equal(table.count, np.ones(len(shares)))


@pytest.mark.parametrize("kind", ["width", "mass"])
@given(seed=st.integers(0, 9999), entities=st.integers(1, 60), bins=st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_what_holds_for_any_predictor(kind, seed: int, entities: int, bins: int) -> None:
    rows, labels = simulated(entities, 3, seed, sharpness=3.0)
    rows = np.round(rows, 1)  # many equal confidences, many on an edge
    rows /= rows.sum(axis=1, keepdims=True)
    found = ece(rows, labels, bins, kind)
    table = reliability(rows, labels, bins, kind)
    assert table.count.sum() == entities
    assert (table.count > 0).all()
    # Means of equal numbers may leave their bin by a rounding.
    assert (table.lower <= table.confidence + 1e-12).all()
    assert (table.confidence <= table.upper + 1e-12).all()
    gaps = np.abs(table.accuracy - table.confidence)
    assert found == exactly(gaps @ table.count / entities)
    assert found <= mce(rows, labels, bins, kind) + 1e-12
    whole = abs((rows.argmax(axis=1) == labels).mean() - rows.max(axis=1).mean())
    assert ece(rows, labels, 1, kind) == exactly(whole)
    assert found >= whole - 1e-12
    shuffled = np.random.default_rng(seed).permutation(entities)
    assert ece(rows[shuffled], labels[shuffled], bins, kind) == exactly(found)


def test_the_null_by_enumeration() -> None:
    """All eight ways three answers can be right or wrong, two of them in one bin."""
    sure = np.array([0.55, 0.58, 0.9])
    errors, chances = [], []
    for right in itertools.product([0, 1], repeat=3):
        errors.append((abs(right[0] + right[1] - 1.13) + abs(right[2] - 0.9)) / 3)
        chances.append(np.prod(np.where(right, sure, 1 - sure)))
    null = ece_null(binary(list(sure)), np.random.default_rng(3), draws=40_000)
    assert null.mean == pytest.approx(np.dot(errors, chances), abs=0.002)
    for error in errors:
        same = np.abs(np.array(errors) - error) < 1e-9
        found = (np.abs(null.draws - error) < 1e-9).mean()
        assert found == pytest.approx(np.array(chances)[same].sum(), abs=0.01)


def test_the_null_summed_up_by_hand() -> None:
    null = EceNull(np.arange(1, 101) / 1000)
    assert null.mean == exactly(0.0505)
    assert null.quantile_95 == exactly(0.09505)
    assert null.quantile_99 == exactly(0.09901)
    assert null.p_value(0.2) == exactly(1 / 101)
    assert null.p_value(0.096) == exactly(6 / 101)
    assert null.p_value(0.0) == 1.0


def test_an_observed_ece_counts_draws_that_equal_it() -> None:
    """Of ten answers at .7 only the number of right ones matters, so most draws are ties."""
    rows, labels = binary([0.7] * 10), np.array([0] * 6 + [1] * 4)
    null = ece_null(rows, np.random.default_rng(0), draws=2000)
    observed = ece(rows, labels)
    assert observed == exactly(0.1)
    exact = 1.0 - 120 * 0.7**7 * 0.3**3  # all but exactly seven right
    assert null.p_value(observed) == pytest.approx(exact, abs=0.03)


def test_a_certain_predictor_has_a_null_of_zero() -> None:
    null = ece_null(np.eye(3), np.random.default_rng(0), draws=50)
    np.testing.assert_array_equal(null.draws, np.zeros(50))
    assert null.p_value(1e-6) == exactly(1 / 51)


@pytest.mark.parametrize("kind", ["width", "mass"])
def test_blocks_do_not_change_the_draws(kind, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = simulated(50, 3, seed=0)
    whole = ece_null(rows, np.random.default_rng(7), draws=101, kind=kind)
    monkeypatch.setattr(calibration, "BLOCK", 1000)
    parts = ece_null(rows, np.random.default_rng(7), draws=101, kind=kind)
    np.testing.assert_array_equal(whole.draws, parts.draws)
    assert len(whole.draws) == 101


@pytest.mark.parametrize("kind", ["width", "mass"])
def test_a_calibrated_predictor_stays_within_its_null_as_often_as_promised(kind) -> None:
    generator, repetitions, within = np.random.default_rng(11), 400, {95: 0, 99: 0}
    for repetition in range(repetitions):
        rows, labels = simulated(120, 3, seed=repetition)
        null = ece_null(rows, generator, draws=400, kind=kind)
        observed = ece(rows, labels, kind=kind)
        within[95] += observed <= null.quantile_95
        within[99] += observed <= null.quantile_99
    assert within[95] / repetitions == pytest.approx(0.95, abs=0.033)  # three standard errors
    assert within[99] / repetitions == pytest.approx(0.99, abs=0.015)


def test_an_overconfident_predictor_does_not() -> None:
    rows, labels = simulated(300, 3, seed=0, sharpness=3.0)
    null = ece_null(rows, np.random.default_rng(0))
    assert ece(rows, labels) > null.quantile_99
    assert null.p_value(ece(rows, labels)) == exactly(1 / 1001)


@pytest.mark.parametrize(
    ("settings_given", "words"),
    [({"bins": 0}, "bins: must be 1 or above, got 0"), ({"kind": "equal"}, "kind: must be one of")],
)
def test_settings_that_make_no_bins_are_refused(settings_given, words: str) -> None:
    for score in (ece, mce, classwise_ece, reliability):
        with pytest.raises(ConfigError, match=words):
            score(ROWS, LABELS, **settings_given)
    with pytest.raises(ConfigError, match=words):
        ece_null(ROWS, np.random.default_rng(0), **settings_given)


def test_invalid_arguments_of_the_null_are_refused() -> None:
    with pytest.raises(ConfigError, match="draws: must be 1 or above, got 0"):
        ece_null(ROWS, np.random.default_rng(0), draws=0)
    with pytest.raises(ConfigError, match="observed: must be finite"):
        EceNull(np.array([0.1])).p_value(float("nan"))
