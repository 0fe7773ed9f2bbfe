"""Folds, which replace splits if there are too few entities: each is held out in turn.

``FoldNetworks`` trains one network per fold and seed in one pass. The mean
held-out loss of each epoch gives the number of epochs for the networks trained on everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpf.datasets import grouped_folds
from lpf.errors import DatasetError
from lpf.factors.convert import geometric_mean
from lpf.factors.distributions import apply_channel, label_channel
from lpf.model.config import PredicateHead
from lpf.model.layout import fresh_tensors
from lpf.model.networks import to_numpy
from lpf.model.runtime import Runtime, refuse_overflow
from lpf.training.assembly import model_config
from lpf.training.config import TrainingConfig
from lpf.training.examples import Examples
from lpf.training.history import Epoch, SeedHistory
from lpf.training.material import Rows, heads_of, labelled_with, labels_of, make_material
from lpf.training.stage_one import EpochCallback, StageOne, ValidationCallback, histories_of
from lpf.types import FloatArray

FOLDS = 5
FOLDS_SEED = 42
# With one step per epoch nothing would be learned: batches are small enough for this many steps.
STEPS = 8
LEAST_BATCH = 4
NEVER = 10**9  # epochs of patience

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Folds:
    """Examples in folds. DatasetError if a value of one of ``predicates`` has fewer than two
    entities, or if all entities are in one group."""

    examples: Examples
    predicates: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_two_each(self.examples, self.predicates)
        _require_two_groups(self.examples)

    @cached_property
    def held_out(self) -> tuple[Places, ...]:
        """The entities of each fold. Groups are not divided; every fold has each predicate's
        values in about the same shares."""
        dataset, (name, *others) = self.examples.dataset, self.predicates
        count = max(2, min(FOLDS, self._rarest, _groups(self.examples)))
        return grouped_folds(dataset, name, count, FOLDS_SEED, others)

    @property
    def training(self) -> tuple[Places, ...]:
        """The entities outside of each fold."""
        everyone = np.arange(len(self.examples.dataset))
        return tuple(np.setdiff1d(everyone, places) for places in self.held_out)

    @property
    def all_rows(self) -> Rows:
        return np.arange(len(self.examples.features))

    @property
    def _rarest(self) -> int:
        """Number of entities that have the rarest value."""
        labels = (self.examples.dataset.labels(name) for name in self.predicates)
        return min(int(np.bincount(one[one >= 0]).min()) for one in labels)


def _groups(examples: Examples) -> int:
    return len({entity.group_id or entity.entity_id for entity in examples.dataset})


def _require_two_groups(examples: Examples) -> None:
    if _groups(examples) < 2:
        raise DatasetError(
            f"dataset {examples.dataset.name!r}: all {len(examples.dataset)} entities are in one "
            "group, and entities of one group are never both trained and tested on. Nothing was "
            "trained. Add entities of another group, or remove group_id if they are not related."
        )


def _require_two_each(examples: Examples, predicates: Sequence[str]) -> None:
    for name in predicates:
        part = labelled_with(examples.dataset, name)
        values = part.schema[name].values
        counts = np.bincount(part.labels(name), minlength=len(values))
        lacking = [value for value, count in zip(values, counts, strict=True) if count < 2]
        if lacking:
            raise DatasetError(
                f"dataset {part.name!r}: {name}: fewer than 2 entities are labelled {lacking}. "
                "Nothing was trained; each value needs at least two entities with evidence."
            )


@dataclass(frozen=True)
class OutOfFold:
    """Results of networks on the items of the folds that they were not trained on.

    ``epochs`` is the best number of epochs and ``factors`` [N, V], by predicate, are the factors
    after it. ``shares`` are π of the training items, the mean over folds. Each seed's history is
    the mean over its folds.
    """

    epochs: int
    factors: Mapping[str, FloatArray]
    shares: Mapping[str, FloatArray]
    histories: tuple[SeedHistory, ...]


@dataclass(frozen=True)
class FoldNetworks:
    """Networks for a data set that is too small for splits."""

    folds: Folds
    reader_id: str
    config: TrainingConfig
    seeds: tuple[int, ...]

    def train_out_of_fold(self, on_epoch: EpochCallback | None) -> OutOfFold:
        """Train one network per fold and seed, without early stopping: all have the same epochs."""
        examples = self.folds.examples
        held_out = [examples.rows(places) for places in self.folds.held_out]
        training = [examples.rows(places) for places in self.folds.training]
        by_epoch: list[dict[str, FloatArray]] = []
        stage = self._stage(
            [seed for _ in held_out for seed in self.seeds],
            [rows for rows in training for _ in self.seeds],
            [rows for rows in held_out for _ in self.seeds],
            lambda probabilities: by_epoch.append(
                {name: tensor.numpy().astype(np.float64) for name, tensor in probabilities.items()}
            ),
        )
        state = stage.run(stage.begin(fresh_tensors(stage.model, stage.seeds)), on_epoch)
        histories = _mean_histories(histories_of(state), self.seeds, self.config.patience)
        best = _best_epoch(histories)
        heads = [self._heads(rows) for rows in training]
        return OutOfFold(
            best,
            {
                name: self._factors(
                    [one[name] for one in heads], by_epoch[best - 1][name], held_out
                )
                for name in self.folds.predicates
            },
            {
                name: np.mean([one[name].training_shares for one in heads], axis=0)
                for name in self.folds.predicates
            },
            histories,
        )

    def train_on_everything(self, epochs: int) -> Runtime:
        """One network per seed, trained on all entities for this many epochs."""
        rows = [self.folds.all_rows] * len(self.seeds)
        # The validation loss is not used here; one row is the least it can be computed on.
        stage = self._stage(self.seeds, rows, [one[:1] for one in rows])
        stage = replace(stage, config=replace(stage.config, max_epochs=epochs))
        state = stage.run(stage.begin(fresh_tensors(stage.model, stage.seeds)))
        return Runtime(stage.model, to_numpy(state.members.parameters))

    def _stage(
        self,
        seeds: Sequence[int],
        train: Sequence[Rows],
        validation: Sequence[Rows],
        on_validation: ValidationCallback | None = None,
    ) -> StageOne:
        examples, config = self.folds.examples, self._small_batches
        labels = labels_of(examples.dataset, self.folds.predicates)
        heads = list(self._heads(self.folds.all_rows).values())
        return StageOne(
            model_config(heads, config, seeds, self.reader_id, examples.features.shape[1]),
            make_material(examples.features, labels, train, validation, config),
            config,
            tuple(seeds),
            patience=NEVER,
            on_validation=on_validation,
        )

    @property
    def _small_batches(self) -> TrainingConfig:
        batch = max(LEAST_BATCH, len(self.folds.examples.features) // STEPS)
        return replace(self.config, batch_size=min(self.config.batch_size, batch))

    def _heads(self, rows: Rows) -> dict[str, PredicateHead]:
        """Heads by predicate, with π and channel estimated on ``rows``."""
        dataset = self.folds.examples.dataset
        heads = heads_of(dataset, self.folds.predicates, rows, self._small_batches)
        return {head.name: head for head in heads}

    def _factors(
        self, heads: Sequence[PredicateHead], probabilities: FloatArray, held_out: Sequence[Rows]
    ) -> FloatArray:
        """For each item, the geometric mean over the seeds that were not trained on it."""
        per_fold = len(self.seeds)
        factors = np.empty((len(self.folds.all_rows), probabilities.shape[2]))
        for fold, (head, rows) in enumerate(zip(heads, held_out, strict=True)):
            members = probabilities[fold * per_fold : (fold + 1) * per_fold, : len(rows)]
            factors[rows] = geometric_mean(apply_channel(label_channel(head), members))
        items = self.folds.examples.dataset.items
        refuse_overflow([item.evidence_id for item in items], factors)
        return factors


def _mean_histories(
    histories: Sequence[SeedHistory], seeds: Sequence[int], patience: int
) -> tuple[SeedHistory, ...]:
    """One history per seed, the mean over its folds. It counts as converged if its loss did not
    fall for ``patience`` epochs at the end."""
    merged = []
    for place, seed in enumerate(seeds):
        folds = histories[place :: len(seeds)]
        epochs = tuple(
            Epoch(*(float(np.mean([getattr(one, f.name) for one in same])) for f in fields(Epoch)))
            for same in zip(*(fold.epochs for fold in folds), strict=True)
        )
        mean = SeedHistory(seed, epochs, False)
        merged.append(replace(mean, converged=len(epochs) - mean.best_epoch >= patience))
    return tuple(merged)


def _best_epoch(histories: Sequence[SeedHistory]) -> int:
    losses = np.mean([[one.validation_loss for one in h.epochs] for h in histories], axis=0)
    return int(np.argmin(losses)) + 1
