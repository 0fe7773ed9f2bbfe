"""Training: both stages of the paper, the search over seeds, and what is fitted afterwards.

Importing this package imports torch; answering questions does not need it.
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
from lpf.training.fitting import HeldOutScores, Scores, evaluate
from lpf.training.heads import train_head
from lpf.training.history import SeedHistory, spread
from lpf.training.small_data import FEWEST_FOR_SPLITS, train_small
from lpf.training.trainer import Trainer
from lpf.training.training_warnings import wilson

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
