"""Training: both stages of the paper, the search over seeds, and what is fitted afterwards.

Everything but the settings imports torch when first used; nothing that answers a question does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpf.training.config import (
    FIFTEEN_SEEDS,
    SEED_PRESETS,
    SEVEN_SEEDS,
    UNEQUAL,
    StageTwoConfig,
    TrainingConfig,
)

if TYPE_CHECKING:
    from lpf.training.assembly import Trained
    from lpf.training.examples import Examples, make_examples, read_features
    from lpf.training.fitting import HeldOutScores, Scores, evaluate
    from lpf.training.heads import train_head
    from lpf.training.history import SeedHistory, spread
    from lpf.training.small_data import FEWEST_FOR_SPLITS, train_small
    from lpf.training.trainer import Trainer
    from lpf.training.training_warnings import wilson

_HOMES = {
    "FEWEST_FOR_SPLITS": "small_data",
    "Examples": "examples",
    "HeldOutScores": "fitting",
    "Scores": "fitting",
    "SeedHistory": "history",
    "Trained": "assembly",
    "Trainer": "trainer",
    "evaluate": "fitting",
    "make_examples": "examples",
    "read_features": "examples",
    "spread": "history",
    "train_small": "small_data",
    "train_head": "heads",
    "wilson": "training_warnings",
}

__all__ = [
    "FEWEST_FOR_SPLITS",
    "FIFTEEN_SEEDS",
    "SEED_PRESETS",
    "SEVEN_SEEDS",
    "UNEQUAL",
    "Examples",
    "HeldOutScores",
    "Scores",
    "SeedHistory",
    "StageTwoConfig",
    "Trained",
    "Trainer",
    "TrainingConfig",
    "evaluate",
    "make_examples",
    "read_features",
    "spread",
    "train_head",
    "train_small",
    "wilson",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"lpf.training.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lpf.training' has no attribute {name!r}")
