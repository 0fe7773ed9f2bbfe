from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.errors import ConfigError
from lpf.metrics import intervals as resampling
from lpf.metrics import percentiles, resampled


def one_column(*rows: object) -> list[np.ndarray]:
    return [np.asarray(row, dtype=np.float64)[:, None] for row in rows]


def spread(columns, entities, seed: int = 0, draws: int = 20_000) -> float:
    """Standard deviation of the mean over seeds and entities."""
    return float(
        resampled(columns, entities, np.random.default_rng(seed), draws).over_seeds().std()
    )


def test_weights_spread_a_mean_as_drawing_with_replacement_does() -> None:
    values = np.random.default_rng(1).normal(size=50)
    found = spread(one_column(values), [range(50)])
    assert found == pytest.approx(values.std() / np.sqrt(51), rel=0.03)


def test_the_same_entities_have_the_same_weights_in_every_seed() -> None:
    """Their order in a seed does not matter: by name they belong together."""
    values = np.random.default_rng(2).normal(size=30)
    order = np.random.default_rng(3).permutation(30)
    drawn = resampled(
        one_column(values, values[order]), [range(30), order.tolist()], np.random.default_rng(0), 50
    )
    np.testing.assert_allclose(drawn.means[:, 0], drawn.means[:, 1], rtol=0, atol=1e-12)


def test_other_entities_have_independent_weights() -> None:
    values = np.random.default_rng(2).normal(size=30)
    names = [[f"a{place}" for place in range(30)], [f"b{place}" for place in range(30)]]
    drawn = resampled(one_column(values, values), names, np.random.default_rng(0), 20_000)
    both = drawn.means[:, :, 0]
    assert np.corrcoef(both.T)[0, 1] == pytest.approx(0.0, abs=0.03)
    np.testing.assert_allclose(both.std(axis=0), values.std() / np.sqrt(31), rtol=0.04)


def test_half_the_entities_shared_correlate_the_seeds_by_half() -> None:
    values = np.tile([-1.0, 1.0], 100)
    names = [list(range(200)), list(range(100, 300))]
    drawn = resampled(one_column(values, values), names, np.random.default_rng(0), 20_000)
    assert np.corrcoef(drawn.means[:, :, 0].T)[0, 1] == pytest.approx(0.5, abs=0.03)


def test_seeds_are_drawn_with_replacement() -> None:
    """Three seeds, each always its own number: 27 equally likely draws of three."""
    columns = one_column([0.0] * 4, [1.0] * 4, [3.0] * 4)
    drawn = resampled(columns, [range(4)] * 3, np.random.default_rng(0), 30_000)
    means = drawn.over_seeds()[:, 0]
    np.testing.assert_allclose(drawn.shares.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    for expected, chance in ((0.0, 1 / 27), (1 / 3, 3 / 27), (4 / 3, 6 / 27), (3.0, 1 / 27)):
        assert (np.abs(means - expected) < 1e-9).mean() == pytest.approx(chance, abs=0.01)


def test_every_draw_has_entities_of_every_seed() -> None:
    """One entity of its own and one of many shared: drawing would often miss both."""
    names = [list(range(100)), [99, 100]]
    drawn = resampled(
        one_column(np.zeros(100), [1.0, 1.0]), names, np.random.default_rng(0), draws=2000
    )
    np.testing.assert_allclose(drawn.means[:, 1, 0], 1.0, rtol=0, atol=1e-12)


def test_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = one_column(np.random.default_rng(0).normal(size=64), np.arange(64))
    whole = resampled(columns, [range(64)] * 2, np.random.default_rng(5), 1001)
    monkeypatch.setattr(resampling, "BLOCK", 1000)
    parts = resampled(columns, [range(64)] * 2, np.random.default_rng(5), 1001)
    assert parts.means.shape == (1001, 2, 1)
    np.testing.assert_allclose(parts.means, whole.means, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(parts.shares, whole.shares)


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    columns=st.integers(1, 3),
    shared=st.integers(0, 12),
    seed=st.integers(0, 9999),
)
@settings(max_examples=60, deadline=None)
def test_a_draw_is_a_mean_of_what_is_there(sizes, columns, shared, seed) -> None:
    generator = np.random.default_rng(seed)
    values = [generator.normal(size=(size, columns)) for size in sizes]
    names = [
        [place if place < shared else (which, place) for place in range(size)]
        for which, size in enumerate(sizes)
    ]
    drawn = resampled(values, names, generator, 30)
    for which, rows in enumerate(values):
        assert (drawn.means[:, which] >= rows.min(axis=0) - 1e-12).all()
        assert (drawn.means[:, which] <= rows.max(axis=0) + 1e-12).all()
    low, high = percentiles(drawn.over_seeds())
    assert (low <= high).all()


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="draws: must be 1 or above, got 0"):
        resampled(one_column([1.0]), [["a"]], np.random.default_rng(0), 0)
    with pytest.raises(ConfigError, match="level: must be above 0"):
        percentiles(np.arange(3.0), level=1.0)
