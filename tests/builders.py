"""Small real models for tests: random weights, sharpened so that answers are not all uniform."""

from __future__ import annotations

import numpy as np

from lpf.model.config import AggregatorConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.model.layout import fresh_tensors
from lpf.model.runtime import Runtime
from lpf.schema import Predicate, Schema

LEVELS = ("low", "medium", "high")


def model_config(members: int = 1, **changes: object) -> ModelConfig:
    heads = (
        PredicateHead("level", LEVELS, (0.3, 0.4, 0.3)),
        PredicateHead("outcome", ("clean", "qualified")),
    )
    settings: dict = {"predicates": heads, "aggregator": AggregatorConfig(), "members": members}
    return ModelConfig(**{**settings, **changes})


def sharp_tensors(config: ModelConfig, seed: int = 0, gain: float = 3.0) -> dict:
    """Weights as at the start of training, times ``gain`` so that logits spread."""
    tensors = fresh_tensors(config, range(seed, seed + config.members))
    return {
        name: array if name.startswith("encoder.log_sigma") else (array * gain).astype(np.float32)
        for name, array in tensors.items()
    }


def runtime(members: int = 1, seed: int = 0, gain: float = 3.0, **changes: object) -> Runtime:
    config = model_config(members, **changes)
    return Runtime(config, sharp_tensors(config, seed, gain), f"test-{seed}-{members}")


def schema() -> Schema:
    return Schema((Predicate("level", LEVELS), Predicate("outcome", ("clean", "qualified"))))


def features(count: int, seed: int = 0, width: int = 384) -> np.ndarray:
    """Unit vectors, as a sentence encoder gives."""
    drawn = np.random.default_rng(seed).standard_normal((count, width))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def deterministic_encoder() -> EncoderConfig:
    return EncoderConfig(deterministic=True)
