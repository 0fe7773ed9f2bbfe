"""A linear model in the networks' shape, so that all code that answers with a model can use it.

The latent code is the logits of all heads side by side, σ is 0, and the decoder's one hidden layer
holds the code twice, because relu(x) - relu(-x) = x. Each head selects its own logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lpf.model.config import DecoderConfig, EncoderConfig, ModelConfig, PredicateHead
from lpf.types import Float32Array, FloatArray


class LinearHead(NamedTuple):
    """Logits x·weight + bias of one head: ``weight`` [width, V], ``bias`` [V]."""

    weight: FloatArray
    bias: FloatArray


def linear_config(
    heads: Sequence[PredicateHead], seeds: Sequence[int], reader_id: str, width: int
) -> ModelConfig:
    """The config of a linear model with one member per seed."""
    logits = sum(len(head.values) for head in heads)
    return ModelConfig(
        tuple(heads),
        EncoderConfig(width, (), logits, 0.0, deterministic=True),
        DecoderConfig((2 * logits,), 1, 0.0),
        None,
        len(seeds),
        tuple(seeds),
        reader_id,
    )


def linear_tensors(
    config: ModelConfig, members: Sequence[Mapping[str, LinearHead]]
) -> dict[str, Float32Array]:
    """The tensors of a linear model, whose members have one ``LinearHead`` per predicate."""
    count, latent = len(members), config.encoder.latent_width
    plain = [[member[head.name] for head in config.predicates] for member in members]
    both = np.concatenate([np.eye(latent), -np.eye(latent)], axis=1)  # relu(x) and relu(-x)
    trunk = np.concatenate([both, np.zeros((1, 2 * latent))])  # the predicate's embedding is 0
    tensors = {
        "encoder.mu.weight": np.stack([np.hstack([one.weight for one in row]) for row in plain]),
        "encoder.mu.bias": np.stack([np.hstack([one.bias for one in row]) for row in plain]),
        "decoder.trunk.0.weight": np.stack([trunk] * count),
        "decoder.trunk.0.bias": np.zeros((count, 2 * latent)),
    }
    first = 0
    for head in config.predicates:
        last = first + len(head.values)
        tensors[f"decoder.embedding.{head.name}"] = np.zeros((count, 1))
        tensors[f"decoder.head.{head.name}.weight"] = np.stack([both.T[:, first:last]] * count)
        tensors[f"decoder.head.{head.name}.bias"] = np.zeros((count, len(head.values)))
        first = last
    return {name: np.ascontiguousarray(array, np.float32) for name, array in tensors.items()}
