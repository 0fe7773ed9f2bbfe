"""From a data set to a trained model, the way ``lpf train`` goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from lpf.classifier.entities import PREDICATE
from lpf.datasets import Dataset, assign_splits
from lpf.errors import ConfigError, TrainingError
from lpf.types import Float32Array

if TYPE_CHECKING:
    from lpf.training import Trained, TrainingConfig


@dataclass(frozen=True)
class Holdout:
    """Which entities are held back for validation where none are given apart."""

    share: float
    seed: int

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ConfigError(f"validation_share: must lie between 0 and 1, got {self.share!r}.")

    def applied(self, dataset: Dataset) -> Dataset:
        """In train and validation; splits that are there stay."""
        if any(entity.split is not None for entity in dataset):
            return dataset
        shares = (1.0 - self.share, self.share, 0.0)
        return assign_splits(dataset, PREDICATE, shares=shares, seed=self.seed)


@dataclass(frozen=True)
class Plan:
    """How it is trained: the networks, and which entities are held back for validation."""

    config: TrainingConfig
    seeds: tuple[int, ...]
    holdout: Holdout
    copy_similarity: float | None
    tell: Callable[[str], None] | None


def whole_number(name: str, given: object) -> int:
    """Also NumPy's, as a search over parameters sets them. ConfigError for anything else: the same
    number must give the same model."""
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 0:
        raise ConfigError(f"{name}: must be a whole number, 0 or above, got {given!r}.")
    return int(given)


def chosen_seeds(seeds: Sequence[int] | str) -> tuple[int, ...]:
    """Those given, or those of a preset's name."""
    from lpf.training import SEED_PRESETS
    from lpf.training.settings import check_seeds

    if isinstance(seeds, str):
        if seeds not in SEED_PRESETS:
            raise ConfigError(
                f"seeds: must be numbers or one of {sorted(SEED_PRESETS)}, got {seeds!r}."
            )
        seeds = SEED_PRESETS[seeds]
    return check_seeds([whole_number("seeds", seed) for seed in seeds])


def is_few(dataset: Dataset) -> bool:
    """Whether there are too few entities to hold some back, as ``lpf train`` has it."""
    from lpf.training import FEWEST_FOR_SPLITS

    return all(e.split is None for e in dataset) and len(dataset) < FEWEST_FOR_SPLITS


def learn(dataset: Dataset, features: Float32Array, reader_id: str, plan: Plan) -> Trained:
    from lpf.training import Trainer, make_examples, train_few

    wanted, told = (PREDICATE,), plan.tell
    if is_few(dataset):
        examples = make_examples(dataset, features, plan.copy_similarity)
        return train_few(examples, reader_id, wanted, plan.config, plan.seeds, tell=told)
    examples = make_examples(plan.holdout.applied(dataset), features, plan.copy_similarity)
    trainer = Trainer(examples, reader_id, wanted, plan.config, plan.seeds, tell=told)
    return trainer.run()


def require_torch() -> None:
    """TrainingError where it is not installed: answering does without."""
    if find_spec("torch") is None:
        raise TrainingError(
            "fit needs the package torch, which is not installed. Nothing was trained. Install "
            "it: pip install 'lpf[train]'"
        )
