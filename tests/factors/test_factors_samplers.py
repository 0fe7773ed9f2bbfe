from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.errors import ConfigError
from lpf.factors.keys import context_key, item_keys, splitmix64
from lpf.factors.samplers import POOLED, SAMPLERS, check_sampler
from lpf.factors.samplers import draw as draw_planes


def draw(sampler: str, keys: np.ndarray, samples: int, width: int) -> np.ndarray:
    """Return samples [N, M, d]."""
    return np.ascontiguousarray(draw_planes(sampler, keys, samples, width).swapaxes(0, 1))


KEYS = np.arange(400, dtype=np.uint64) * np.uint64(7919)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(("samples", "width"), [(16, 64), (4, 8), (32, 5), (2, 100)])
def test_points_look_like_a_standard_normal(sampler: str, samples: int, width: int) -> None:
    points = draw(sampler, KEYS, samples, width)
    assert points.shape == (len(KEYS), samples, width)
    assert points.dtype == np.float32
    deviation = 1 / np.sqrt(points.size)
    assert abs(points.mean()) < 5 * deviation
    # Pools have 64 sets, so squares have the variance of 64 sets, not of 400.
    assert abs((points**2).mean() - 1) < 6 * np.sqrt(2 / (64 * samples * width))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_samples_depend_on_the_key_only(sampler: str) -> None:
    together = draw(sampler, KEYS, 8, 64)
    order = np.random.default_rng(0).permutation(len(KEYS))
    assert (draw(sampler, KEYS[order], 8, 64) == together[order]).all()
    assert (draw(sampler, KEYS[5:6], 8, 64)[0] == together[5]).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_different_items_have_independent_points(sampler: str) -> None:
    points = draw(sampler, KEYS, 4, 64).reshape(len(KEYS), -1)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    products = (unit @ unit.T)[np.triu_indices(len(KEYS), 1)]
    assert abs(products.mean()) < 0.005
    assert np.abs(products).max() < 0.999, "two items share a point set"


@pytest.mark.parametrize("sampler", ["antithetic", "orthogonal"])
def test_pairs_are_mirrored(sampler: str) -> None:
    np.testing.assert_allclose(draw(sampler, KEYS, 8, 16).sum(axis=1), 0.0, atol=1e-5)


def test_orthogonal_directions_are_orthogonal() -> None:
    half = draw("orthogonal", KEYS[:3], 16, 64)[:, :8].astype(np.float64)
    gram = np.matmul(half, half.swapaxes(1, 2))
    off = gram[:, ~np.eye(8, dtype=bool)]
    assert np.abs(off).max() < 1e-3 * np.abs(gram).max()


def test_more_orthogonal_points_than_dimensions() -> None:
    assert draw("orthogonal", KEYS[:2], 20, 4).shape == (2, 20, 4)


@pytest.mark.parametrize(
    ("sampler", "samples", "rule"),
    [
        ("antithetic", 5, "even"),
        ("orthogonal", 3, "even"),
        ("sobol", 12, "power of two"),
        ("plain", 0, "at least 1"),
        ("guess", 4, "must be one of"),
    ],
)
def test_invalid_number_of_samples_is_refused(sampler: str, samples: int, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        check_sampler(sampler, samples)


def test_every_pooled_sampler_is_finite_on_large_sets() -> None:
    for sampler in POOLED:
        assert np.isfinite(draw(sampler, KEYS[:2], 128, 64)).all()


@given(st.lists(st.tuples(st.text(), st.none() | st.text()), min_size=1, max_size=20, unique=True))
@settings(max_examples=50, deadline=None)
def test_different_items_have_different_keys(items: list[tuple[str, str | None]]) -> None:
    texts, claims = zip(*items, strict=True)
    keys = item_keys(texts, claims, "reader")
    assert len(set(keys.tolist())) == len(items)
    assert (item_keys(texts, claims, "another") != keys).all()


def test_context_key_depends_on_model_predicate_and_seed() -> None:
    base = context_key("model", "p", 0)
    assert len({int(base), *map(int, (
        context_key("model2", "p", 0), context_key("model", "q", 0), context_key("model", "p", 1),
    ))}) == 4  # fmt: skip


def test_splitmix64_decorrelates_neighbouring_keys() -> None:
    bits = np.unpackbits(splitmix64(np.arange(1000, dtype=np.uint64), 2).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.01
