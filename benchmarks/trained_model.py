"""A small model with the paper's widths, trained in seconds on made-up features.

How hard q(z|e) is to integrate depends on what training does to sigma and the decoder, so random
weights would not do.
"""

from __future__ import annotations

import numpy as np
import torch

from lpf.model import networks
from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.initialise import fresh_tensors
from lpf.model.runtime import Runtime

VALUES = ("low", "medium", "high")
BETA = 0.01


def made_up_features(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around twelve wordings for each of three values, with 15 % contradictions."""
    world = np.random.default_rng(7)
    centres = world.standard_normal((3, 12, 384))
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, count)
    spoken = np.where(generator.random(count) < 0.15, generator.integers(0, 3, count), labels)
    wording = generator.integers(0, 12, count)
    drawn = centres[spoken, wording] + 1.2 * generator.standard_normal((count, 384))
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit.astype(np.float32), labels


def train(epochs: int = 25, seed: int = 0) -> Runtime:
    config = ModelConfig((PredicateHead("level", VALUES),))
    parameters = networks.to_torch(fresh_tensors(config, [seed]))
    optimiser = torch.optim.Adam(parameters.values(), lr=1e-3)
    inputs, labels = made_up_features(3000, seed=1)
    features, targets = torch.tensor(inputs)[None], torch.tensor(labels)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels), generator=generator).split(64):
            mu, sigma = networks.encode(parameters, config, features[:, batch])
            z = mu + sigma * torch.randn(mu.shape, generator=generator)
            logits = networks.decode(parameters, config, z, "level")[0]
            divergence = 0.5 * (mu**2 + sigma**2 - 1 - 2 * torch.log(sigma)).sum(dim=2).mean()
            loss = torch.nn.functional.cross_entropy(logits, targets[batch]) + BETA * divergence
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return Runtime(config, networks.to_numpy(parameters), "benchmark")
