from __future__ import annotations

import json

import numpy as np
import pytest

from lpf.errors import ConfigError
from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.distributions import apply_channel, label_channel
from lpf.model.config import EncoderConfig, ModelConfig, PredicateHead
from lpf.model.layout import fresh_tensors
from lpf.model.runtime import Runtime

CHANNEL = ((0.5, 0.0, 0.5), (0.1, 0.8, 0.1), (0.0, 0.0, 1.0))


def runtime(channel: tuple[tuple[float, ...], ...], seeds: tuple[int, ...] = (1,)) -> Runtime:
    """The same weights with and without a channel."""
    head = PredicateHead("level", ("low", "medium", "high"), (0.2, 0.3, 0.5), channel)
    config = ModelConfig((head,), EncoderConfig(12), members=len(seeds), seeds=seeds)
    return Runtime(config, fresh_tensors(config, seeds), "same")


def features() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((7, 12)).astype(np.float32)


def test_channel_by_hand() -> None:
    probabilities = np.array([[0.2, 0.5, 0.3]])
    head = PredicateHead("level", ("low", "medium", "high"), (), CHANNEL)
    np.testing.assert_allclose(
        apply_channel(label_channel(head), probabilities),
        [[0.1 + 0.05, 0.4, 0.1 + 0.05 + 0.3]],
        atol=1e-15,
    )


def test_no_channel_changes_nothing() -> None:
    assert label_channel(PredicateHead("level", ("low", "high"))) is None
    probabilities = np.array([[0.2, 0.8]])
    assert apply_channel(None, probabilities) is probabilities


@pytest.mark.parametrize("sampler", ["mean", "moments", "plain", "sobol"])
def test_every_sampler_applies_the_channel(sampler: str) -> None:
    config = ConversionConfig(sampler)
    plain, mapped = (
        Converter(runtime(channel), "level", config).from_features(features()).potential
        for channel in ((), CHANNEL)
    )
    np.testing.assert_allclose(mapped, plain @ np.array(CHANNEL), atol=1e-6)
    assert np.abs(mapped - plain).max() > 0.01


def test_channel_is_applied_before_averaging_members() -> None:
    """The geometric mean is over the members' probabilities of the entity's value."""
    both = runtime(CHANNEL, (1, 2))
    potential = Converter(both, "level", ConversionConfig()).from_features(features()).potential
    alone = [
        Converter(both.member(place), "level", ConversionConfig()).from_features(features())
        for place in range(2)
    ]
    joined = np.sqrt(alone[0].potential * alone[1].potential)
    np.testing.assert_allclose(potential, joined / joined.sum(axis=1, keepdims=True), atol=1e-6)


def test_samples_for_uncertainty_use_the_channel() -> None:
    config = ConversionConfig("plain", 8)
    plain, mapped = (
        Converter(runtime(channel), "level", config).sampled(runtime(()).encode(features()))
        for channel in ((), CHANNEL)
    )
    np.testing.assert_allclose(mapped, plain @ np.array(CHANNEL), atol=1e-6)


def test_config_stores_the_channel() -> None:
    for channel in ((), CHANNEL):
        config = runtime(channel).config
        document = json.loads(json.dumps(config.to_dict()))
        assert ModelConfig.from_dict(document) == config
        assert ("channel" in document["predicates"][0]) == bool(channel)


@pytest.mark.parametrize(
    "channel",
    [
        ((1.0, 0.0), (0.0, 1.0)),
        ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        ((1.0, 0.0, 0.1), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
        ((1.5, -0.5, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    ],
)
def test_invalid_channel_is_refused(channel: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(ConfigError, match="'level': channel must be empty, or have one row"):
        runtime(channel)
