"""Training: stage 1 and stage 2 of the paper, the seed search, and what is fitted afterwards.

Names are loaded when first used. All but those of ``lpf.training.config`` import torch; nothing
that answers a question does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpf.training.config import (
    FIFTEEN_SEEDS,
    SEED_PRESETS,
    SEVEN_SEEDS,
    StageTwoConfig,
    TrainingConfig,
)

if TYPE_CHECKING:
    from lpf.training.assembly import Trained
    from lpf.training.examples import Examples, make_examples, read_features
    from lpf.training.fitting import Scores, evaluate
    from lpf.training.heads import train_head
    from lpf.training.small_data import FEWEST_FOR_SPLITS, train_few
    from lpf.training.trainer import Trainer

_HOMES = {
    "Examples": "examples",
    "FEWEST_FOR_SPLITS": "small_data",
    "Scores": "fitting",
    "Trained": "assembly",
    "Trainer": "trainer",
    "evaluate": "fitting",
    "make_examples": "examples",
    "read_features": "examples",
    "train_few": "small_data",
    "train_head": "heads",
}

__all__ = [
    "FEWEST_FOR_SPLITS",
    "FIFTEEN_SEEDS",
    "SEED_PRESETS",
    "SEVEN_SEEDS",
    "Examples",
    "Scores",
    "StageTwoConfig",
    "Trained",
    "Trainer",
    "TrainingConfig",
    "evaluate",
    "make_examples",
    "read_features",
    "train_few",
    "train_head",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"lpf.training.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lpf.training' has no attribute {name!r}")
