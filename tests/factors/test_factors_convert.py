from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import LEVELS, deterministic_encoder, features, model_config, runtime, sharp_tensors
from lpf.errors import ConfigError, EvidenceError, NonFiniteError
from lpf.factors import ConversionConfig, Converter, tempered
from lpf.factors.convert import geometric_mean
from lpf.factors.distributions import softmax
from lpf.factors.samplers import DETERMINISTIC, SAMPLERS
from lpf.model.config import PredicateHead
from lpf.model.runtime import Runtime
from lpf.types import Posteriors

EVERY = SAMPLERS + DETERMINISTIC


def converter(
    sampler: str, samples: int | None = None, members: int = 1, **config: object
) -> Converter:
    return Converter(runtime(members), "level", ConversionConfig(sampler, samples, **config))


def literal_algorithm_1(making: Converter, inputs: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Algorithm 1, lines 2-36, one sample at a time."""
    posteriors = making.runtime.encode(inputs)
    decoder, rows = making.runtime.decoder("level"), []
    for item in range(len(inputs)):
        one = posteriors.item(item)
        drawn = []
        for epsilon in points[item]:
            z = one.mu + one.sigma * epsilon
            drawn.append(softmax(decoder.logits(z[None, None])[0, 0].astype(np.float64)))
        mean = np.mean(drawn, axis=0) ** (1 / making.config.temperature)
        rows.append(mean / mean.sum())
    return np.array(rows)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("temperature", [1.0, 0.8, 2.0])
def test_factors_equal_algorithm_1_sample_by_sample(sampler: str, temperature: float) -> None:
    from lpf.factors.samplers import draw

    making = converter(sampler, 8, temperature=temperature)
    keys = np.arange(6, dtype=np.uint64)
    points = draw(sampler, keys ^ making._context, 8, 64).swapaxes(0, 1)
    expected = literal_algorithm_1(making, features(6), points)
    found = making.from_features(features(6), keys).potential
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("sampler", EVERY)
@pytest.mark.parametrize("members", [1, 3])
def test_features_and_posteriors_give_the_same_factors(sampler: str, members: int) -> None:
    making = converter(sampler, members=members)
    posteriors = making.runtime.encode(features(9))
    keys = np.arange(9, dtype=np.uint64)
    direct, staged = (
        making.from_features(features(9), keys),
        making.from_posteriors(posteriors, keys),
    )
    np.testing.assert_allclose(direct.potential, staged.potential, atol=1e-6)
    np.testing.assert_allclose(direct.mean_sigma, staged.mean_sigma, rtol=1e-6)
    np.testing.assert_allclose(direct.potential.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("sampler", EVERY)
def test_factor_does_not_depend_on_the_batch(sampler: str) -> None:
    """Alone, in a batch of a thousand and in a shuffled batch: same top value, equal to 1e-6."""
    making = converter(sampler, members=2)
    inputs, keys = features(1000), np.arange(1000, dtype=np.uint64)
    together = making.from_features(inputs, keys).potential
    order = np.random.default_rng(3).permutation(1000)
    shuffled = making.from_features(inputs[order], keys[order]).potential
    np.testing.assert_allclose(shuffled, together[order], atol=1e-6)
    assert (shuffled.argmax(axis=1) == together[order].argmax(axis=1)).all()
    for item in range(0, 1000, 97):
        alone = making.from_features(inputs[item : item + 1], keys[item : item + 1]).potential[0]
        np.testing.assert_allclose(alone, together[item], atol=1e-6)
        assert alone.argmax() == together[item].argmax()


def test_moments_agree_with_many_samples() -> None:
    making = converter("moments")
    posteriors = making.runtime.encode(features(4))
    wide = Posteriors(posteriors.evidence_ids, posteriors.mu, posteriors.sigma * 0.5)
    exact = converter("orthogonal", 2**14).from_posteriors(wide).potential
    found = making.from_posteriors(wide).potential
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.02
    at_mean = converter("mean").from_posteriors(wide).potential
    assert np.abs(found - exact).mean() < np.abs(at_mean - exact).mean() / 3


@pytest.mark.parametrize("sampler", EVERY)
def test_zero_sigma_gives_the_mean_with_every_sampler(sampler: str) -> None:
    for sigma in (0.0, 1e-30):
        making = converter(sampler)
        posteriors = making.runtime.encode(features(5))
        exact = Posteriors(
            posteriors.evidence_ids, posteriors.mu, np.full_like(posteriors.sigma, sigma)
        )
        expected = converter("mean").from_posteriors(exact).potential
        found = making.from_posteriors(exact).potential
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_deterministic_encoder_works() -> None:
    model = runtime(encoder=deterministic_encoder())
    found = Converter(model, "level", ConversionConfig("moments")).from_features(features(3))
    expected = Converter(model, "level", ConversionConfig("mean")).from_features(features(3))
    np.testing.assert_allclose(found.potential, expected.potential, atol=1e-6)
    assert (found.confidence == 1.0).all()


@pytest.mark.parametrize("sampler", EVERY)
@pytest.mark.parametrize("values", [1, 2, 5, 9])
def test_any_number_of_values_works(sampler: str, values: int) -> None:
    head = PredicateHead("level", tuple(f"v{i}" for i in range(values)))
    model = runtime(predicates=(head,))
    potential = (
        Converter(model, "level", ConversionConfig(sampler)).from_features(features(7)).potential
    )
    assert potential.shape == (7, values)
    np.testing.assert_allclose(potential.sum(axis=1), 1.0, atol=1e-12)
    assert (potential >= 0).all()


def test_extreme_logits_give_zero_not_nan() -> None:
    config = model_config()
    tensors = sharp_tensors(config)
    tensors["decoder.head.level.weight"] *= np.float32(1e4)
    model = Runtime(config, tensors)
    for sampler in EVERY:
        making = Converter(model, "level", ConversionConfig(sampler))
        potential = making.from_features(features(20)).potential
        assert np.isfinite(potential).all()
        assert sampler != "mean" or (potential == 0).any()
        np.testing.assert_allclose(potential.sum(axis=1), 1.0, atol=1e-12)


def test_overflow_names_the_item() -> None:
    model = runtime(gain=60.0)
    huge = features(3) * np.array([[1], [1e36], [1]], np.float32)
    with pytest.raises(NonFiniteError, match=r"overflows on 1 item\(s\): b"):
        Converter(model, "level", ConversionConfig("mean")).from_features(
            huge * np.float32(1e-3), ids=("a", "b", "c")
        )


def test_ensemble_factor_is_the_geometric_mean_of_members() -> None:
    model, inputs = runtime(3), features(5)
    config = ConversionConfig("mean")
    alone = [Converter(model.member(s), "level", config).from_features(inputs) for s in range(3)]
    product = np.prod([factors.potential for factors in alone], axis=0) ** (1 / 3)
    expected = product / product.sum(axis=1, keepdims=True)
    found = Converter(model, "level", config).from_features(inputs).potential
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_geometric_mean_with_zeros_is_a_distribution() -> None:
    mean = geometric_mean(np.array([[[0.0, 0.5, 0.5]], [[0.2, 0.4, 0.4]]]))
    np.testing.assert_allclose(mean, [[0.0, 0.5, 0.5]])


def test_soft_factor_of_one_item() -> None:
    factors = converter("plain", 16).from_features(features(2), ids=("E1", "E2"))
    one = factors.item(1, weight=0.4, group_id="g")
    assert one.evidence_id == "E2"
    assert one.variables == ("level",)
    assert tuple(one.potential) == LEVELS
    assert one.metadata["n_samples"] == 16
    assert one.metadata["base_confidence"] == pytest.approx(1 / (1 + one.metadata["mean_sigma"]))


def test_samples_depend_on_seed_model_and_predicate_only() -> None:
    inputs = features(3)
    base = converter("orthogonal").from_features(inputs).potential
    assert (converter("orthogonal").from_features(inputs).potential == base).all()
    assert (converter("orthogonal", seed=1).from_features(inputs).potential != base).any()


def test_invalid_posteriors_name_the_item() -> None:
    making = converter("mean")
    good = making.runtime.encode(features(3), ("a", "b", "c"))
    for spoiled in (np.nan, np.inf, -1.0):
        sigma = good.sigma.copy()
        sigma[0, 1, 5] = spoiled
        with pytest.raises(NonFiniteError, match="b"):
            making.from_posteriors(Posteriors(good.evidence_ids, good.mu, sigma))


def test_posteriors_of_another_model_are_refused() -> None:
    with pytest.raises(EvidenceError, match="posteriors have shape"):
        converter("mean", members=2).from_posteriors(runtime(1).encode(features(2)))


def test_keys_must_match_the_items() -> None:
    with pytest.raises(EvidenceError, match="2 keys for 3 items"):
        converter("mean").from_features(features(3), np.arange(2, dtype=np.uint64))


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"sampler": "mean", "n_samples": 4}, "n_samples: does not apply"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"sampler": "magic"}, "sampler"),
        ({"sampler": "plain", "n_samples": 0}, "n_samples"),
    ],
)
def test_invalid_config_is_refused(config: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        ConversionConfig(**config)


def test_sampled_needs_a_sampler() -> None:
    making = converter("mean")
    with pytest.raises(ConfigError, match="draws no samples"):
        making.sampled(making.runtime.encode(features(1)))


@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5).filter(lambda p: sum(p) > 1e-3),
    st.floats(0.05, 20.0),
)
@settings(max_examples=100, deadline=None)
def test_temperature_keeps_order_and_normalisation(raw: list, temperature: float) -> None:
    before = np.array(raw) / sum(raw)
    after = tempered(before, temperature)
    assert np.isfinite(after).all()
    assert after.sum() == pytest.approx(1.0)
    assert (after[before == 0] == 0).all()
    assert after.argmax() == before.argmax() or after.max() == pytest.approx(after[before.argmax()])


def test_temperature_by_hand() -> None:
    squared = tempered(np.array([0.2, 0.8]), 0.5)
    np.testing.assert_allclose(squared, [0.04 / 0.68, 0.64 / 0.68])


def test_no_items_give_no_factors() -> None:
    for sampler in EVERY:
        assert converter(sampler).from_features(features(0)).potential.shape == (0, 3)


def test_ten_thousand_items_at_64_samples_stay_below_500_megabytes() -> None:
    """All activations at once would need 330 MB per layer; blocks need a few MB."""
    for sampler, samples in (("orthogonal", 64), ("plain", 64), ("moments", None)):
        making = converter(sampler, samples)
        inputs, keys = features(10_000), np.arange(10_000, dtype=np.uint64)
        tracemalloc.start()
        making.from_features(inputs, keys)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        assert 1 < peak < 150, f"{sampler}: {peak:.0f} MB"


def test_samples_for_uncertainty_are_computed_in_blocks() -> None:
    making = converter("plain", 64)
    posteriors = making.runtime.encode(features(10_000))
    tracemalloc.start()
    drawn = making.sampled(posteriors)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert drawn.shape == (1, 10_000, 64, 3)
    assert peak < 150, f"{peak:.0f} MB"
