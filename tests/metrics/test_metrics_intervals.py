from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from lpf.errors import ConfigError, EvidenceError, NonFiniteError
from lpf.metrics import Difference, holm, mean_differences, paired_difference


def compared(first, second, seed: int = 0, **settings) -> Difference:
    return paired_difference(
        np.asarray(first), np.asarray(second), np.random.default_rng(seed), **settings
    )


def test_the_mean_is_that_of_the_sample_and_signs_are_kept() -> None:
    found = compared([0.5, 0.1, 0.9], [0.2, 0.3, 0.1])
    assert found.mean == pytest.approx(0.3, rel=0, abs=1e-12)
    turned = compared([0.2, 0.3, 0.1], [0.5, 0.1, 0.9])
    assert (turned.mean, turned.low) == pytest.approx((-found.mean, -found.high), abs=1e-12)


def test_quantiles_are_those_of_the_binomial() -> None:
    """One error more in 30 of 100: the mean of a draw is a binomial count over 100."""
    errors = (np.arange(100) < 30).astype(float)
    found = compared(errors, np.zeros(100), draws=20_000)
    expected = binom.ppf([0.025, 0.975], 100, 0.3) / 100
    np.testing.assert_allclose([found.low, found.high], expected, atol=0.01 + 1e-12)
    wider = compared(errors, np.zeros(100), draws=20_000, level=0.99)
    assert wider.low < found.low < found.high < wider.high


def test_methods_are_compared_on_the_same_entities() -> None:
    """Losses that vary much between entities and differ by .01 in each: nothing is left open."""
    losses = np.random.default_rng(0).normal(size=50) * 10
    found = compared(losses + 0.01, losses)
    assert (found.low, found.high) == pytest.approx((0.01, 0.01), abs=1e-9)
    assert found.p_value == pytest.approx(2 / 10_001, rel=1e-12)


def test_equal_methods_do_not_differ() -> None:
    losses = np.random.default_rng(0).random((3, 20))
    assert compared(losses, losses) == Difference(0.0, 0.0, 0.0, 0.95, 1.0)


def test_seeds_widen_the_interval_by_what_they_vary() -> None:
    """Where seed and entity effects add up, so do their variances: var/S + var/E."""
    generator = np.random.default_rng(5)
    by_seed, by_entity = generator.normal(size=8), generator.normal(size=200)
    table = by_seed[:, None] + by_entity
    found = compared(table, np.zeros_like(table), draws=20_000)
    spread = np.sqrt(by_seed.var() / 8 + by_entity.var() / 200)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * spread, rel=0.05)
    alone = compared(table.mean(axis=0), np.zeros(200), draws=20_000)
    assert (alone.high - alone.low) / 2 == pytest.approx(
        1.96 * by_entity.std() / 200**0.5, rel=0.03
    )


def test_one_seed_is_no_more_than_its_entities() -> None:
    losses = np.random.default_rng(2).normal(size=40)
    assert compared(losses[None], np.zeros((1, 40))) == compared(losses, np.zeros(40))


def test_entities_and_not_seeds_are_the_last_axis() -> None:
    """All differences lie between seeds, so that many entities settle nothing."""
    table = np.repeat([[0.0], [1.0]], 500, axis=1)
    found = compared(table, np.zeros_like(table))
    assert (found.low, found.mean, found.high) == pytest.approx((0.0, 0.5, 1.0), abs=1e-12)


def test_the_interval_holds_the_truth_as_often_as_promised() -> None:
    generator, repetitions, held = np.random.default_rng(1), 400, 0
    for _ in range(repetitions):
        losses = generator.exponential(size=(2, 100))
        found = paired_difference(losses[0] + 0.3, losses[1], generator, draws=400)
        held += found.low <= 0.3 <= found.high
    assert held / repetitions == pytest.approx(0.95, abs=0.035)


def test_pairs_have_the_same_results_together_and_alone() -> None:
    """Seeds of their own entities, two pairs at once."""
    generator = np.random.default_rng(3)
    losses = [generator.normal(size=(size, 2)) for size in (20, 35)]
    entities = [
        [("first", place) for place in range(20)],
        [("second", place) for place in range(35)],
    ]
    both = mean_differences(losses, entities, np.random.default_rng(0), draws=500)
    for at, found in enumerate(both):
        alone = [rows[:, [at]] for rows in losses]
        (expected,) = mean_differences(alone, entities, np.random.default_rng(0), draws=500)
        assert found.mean == pytest.approx(np.mean([rows[:, at].mean() for rows in losses]))
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
        assert found.p_value == expected.p_value


def test_p_values_are_uniform_without_a_difference() -> None:
    generator, repetitions = np.random.default_rng(4), 400
    small = sum(
        paired_difference(*generator.normal(size=(2, 80)), generator, draws=400).p_value <= 0.05
        for _ in range(repetitions)
    )
    assert small / repetitions == pytest.approx(0.05, abs=0.035)


@pytest.mark.parametrize(
    ("first", "second"), [([1.0], [1.0, 2.0]), ([], []), (1.0, 1.0), (np.ones((2, 2, 2)),) * 2]
)
def test_losses_that_cannot_be_paired_are_refused(first, second) -> None:
    with pytest.raises(EvidenceError, match=r"cannot be paired\. Nothing was compared"):
        compared(first, second)


def test_infinite_losses_are_refused_even_if_both_are_infinite() -> None:
    with pytest.raises(NonFiniteError, match="a log loss is infinite"):
        compared([np.inf, 1.0], [np.inf, 1.0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"draws": 0}, "draws"), ({"level": 1.0}, "level"), ({"level": 0}, "level")],
)
def test_settings_out_of_range_are_refused(settings, words: str) -> None:
    with pytest.raises(ConfigError, match=f"{words}: must be"):
        compared([1.0, 2.0], [1.0, 1.0], **settings)


def test_holm_by_hand() -> None:
    """Sorted: .005·4, .01·3, .03·2, and .04·1, which may not fall below the one before."""
    found = holm(np.array([0.01, 0.04, 0.03, 0.005]))
    np.testing.assert_allclose(found, [0.03, 0.06, 0.06, 0.02], rtol=0, atol=1e-12)
    np.testing.assert_allclose(holm(np.array([0.6, 0.7])), [1.0, 1.0])
    np.testing.assert_allclose(holm(np.array([0.2])), [0.2])
    assert holm(np.array([])).shape == (0,)


@pytest.mark.parametrize("given", [[-0.1], [1.1], [np.nan], [[0.1]], 0.1])
def test_invalid_p_values_are_refused(given) -> None:
    with pytest.raises(EvidenceError, match="p_values: must be a row"):
        holm(np.array(given))
