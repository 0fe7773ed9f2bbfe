"""Fresh weights, drawn the way ``torch.nn.Linear`` draws its own, one generator a member."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpf.model.config import ModelConfig
from lpf.model.layout import tensor_shapes
from lpf.types import Float32Array


def fresh_tensors(config: ModelConfig, seeds: Sequence[int]) -> dict[str, Float32Array]:
    """Uniform in ±1/sqrt(inputs) for weights and biases, standard normal for embeddings.

    Member s depends on ``seeds[s]`` alone, so a seed gives the same weights in any search.
    """
    shapes = tensor_shapes(config)
    members = [_one_member(shapes, np.random.default_rng(seed)) for seed in seeds]
    return {name: np.stack([member[name] for member in members]) for name in shapes}


def _one_member(
    shapes: dict[str, tuple[int, ...]], generator: np.random.Generator
) -> dict[str, Float32Array]:
    tensors: dict[str, Float32Array] = {}
    for name, shape in shapes.items():
        if name.startswith("decoder.embedding."):
            drawn = generator.standard_normal(shape[1:])
        else:
            inputs = shapes[name.removesuffix(".bias").removesuffix(".weight") + ".weight"][1]
            drawn = generator.uniform(-1.0, 1.0, shape[1:]) / np.sqrt(inputs)
        tensors[name] = drawn.astype(np.float32)
    return tensors
