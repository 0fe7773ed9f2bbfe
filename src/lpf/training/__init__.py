"""Training: stage 1 and stage 2 of the paper, the seed search, and what is fitted afterwards.

Importing this room imports torch; nothing that answers a question does.
"""

from lpf.training.assembly import Trained
from lpf.training.config import (
    FIFTEEN_SEEDS,
    SEED_PRESETS,
    SEVEN_SEEDS,
    UNEQUAL,
    StageTwoConfig,
    TrainingConfig,
)
from lpf.training.examples import Examples, make_examples, read_features
from lpf.training.fitting import Scores, evaluate
from lpf.training.heads import train_head
from lpf.training.history import SeedHistory, spread
from lpf.training.small_data import FEWEST_FOR_SPLITS, train_few
from lpf.training.trainer import Trainer
from lpf.training.training_warnings import wilson

__all__ = [
    "FEWEST_FOR_SPLITS",
    "FIFTEEN_SEEDS",
    "SEED_PRESETS",
    "SEVEN_SEEDS",
    "UNEQUAL",
    "Examples",
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
    "train_few",
    "train_head",
    "wilson",
]
