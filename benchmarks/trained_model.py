"""A small model with the paper's widths, trained in seconds on generated features.

How hard q(z|e) is to integrate depends on what training does to sigma and the decoder, so random
weights would not be realistic.
"""

from __future__ import annotations

import numpy as np

from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.layout import fresh_tensors
from lpf.model.runtime import Runtime
from lpf.training import TrainingConfig
from lpf.training.material import make_material
from lpf.training.stage_one import StageOne, best_tensors

VALUES = ("low", "medium", "high")


def synthetic_features(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around twelve wordings for each of three values, with 15 % contradictions."""
    world = np.random.default_rng(7)
    centres = world.standard_normal((3, 12, 384))
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, count)
    stated = np.where(generator.random(count) < 0.15, generator.integers(0, 3, count), labels)
    wording = generator.integers(0, 12, count)
    drawn = centres[stated, wording] + 1.2 * generator.standard_normal((count, 384))
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit.astype(np.float32), labels


def train(epochs: int = 25, seed: int = 0) -> Runtime:
    """One member, trained for ``epochs`` on 3,000 items and validated on 300 others."""
    config = TrainingConfig(max_epochs=epochs, patience=epochs)
    model = ModelConfig((PredicateHead("level", VALUES),), seeds=(seed,))
    inputs, labels = synthetic_features(3300, seed=1)
    rows = np.arange(3300)
    material = make_material(inputs, {"level": labels}, [rows[:3000]], [rows[3000:]], config)
    stage = StageOne(model, material, config, (seed,))
    state = stage.run(stage.begin(fresh_tensors(model, (seed,))))
    return Runtime(model, best_tensors(state), "benchmark")
