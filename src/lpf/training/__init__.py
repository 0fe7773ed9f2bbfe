"""Training: both stages of the paper, the search over seeds, and what is fitted afterwards.

Importing this package imports torch; answering questions does not need it.
"""

from lpf.training.assembly import Trained
from lpf.training.config import (
    FIFTEEN_SEEDS,
    SEED_PRESETS,
    SEVEN_SEEDS,
    StageTwoConfig,
    TrainingConfig,
)
from lpf.training.examples import Examples, make_examples, read_features
from lpf.training.fitting import HeldOutScores, Scores, evaluate
from lpf.training.heads import train_head
from lpf.training.small_data import FEWEST_FOR_SPLITS, train_small
from lpf.training.trainer import Trainer

__all__ = [
    "FEWEST_FOR_SPLITS",
    "FIFTEEN_SEEDS",
    "SEED_PRESETS",
    "SEVEN_SEEDS",
    "Examples",
    "HeldOutScores",
    "Scores",
    "StageTwoConfig",
    "Trained",
    "Trainer",
    "TrainingConfig",
    "evaluate",
    "make_examples",
    "read_features",
    "train_head",
    "train_small",
]
