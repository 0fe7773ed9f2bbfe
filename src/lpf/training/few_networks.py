"""Networks for a few entities: all folds and seeds in one pass tell how long to train, and the
model is then trained so long on everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from lpf.factors.channel import channel_of, through
from lpf.factors.convert import geometric_mean
from lpf.model.config import ModelConfig
from lpf.model.initialise import fresh_tensors
from lpf.model.networks import to_numpy
from lpf.model.runtime import Runtime
from lpf.training.assembling import model_config
from lpf.training.folding import Folded
from lpf.training.history import Epoch, SeedHistory
from lpf.training.material import Material, Rows, heads_of, labels_of, make_material
from lpf.training.search import Watcher
from lpf.training.settings import TrainingConfig
from lpf.training.stage_one import StageOne, StageOneState, histories_of
from lpf.types import FloatArray

# One step an epoch would not get anywhere: batches are made small enough for this many.
STEPS = 8
LEAST_BATCH = 4
NEVER = 10**9


@dataclass(frozen=True)
class OutOfFold:
    """What networks said of items they had not seen, by predicate [N, V], after the best number
    of epochs; π of those they saw; and each seed's course, the mean over folds."""

    epochs: int
    potential: Mapping[str, FloatArray]
    shares: Mapping[str, FloatArray]
    histories: tuple[SeedHistory, ...]


@dataclass(frozen=True)
class FewNetworks:
    folded: Folded
    reader_id: str
    config: TrainingConfig
    seeds: tuple[int, ...]

    def out_of_fold(self, watcher: Watcher | None) -> OutOfFold:
        """One member for each fold and seed; none stops early, so that all can be compared."""
        examples = self.folded.examples
        held, kept = (
            [examples.rows(places) for places in folds]
            for folds in (self.folded.held, self.folded.kept)
        )
        said: list[dict[str, FloatArray]] = []
        members, per_fold = [seed for _ in held for seed in self.seeds], len(self.seeds)
        stage = StageOne(
            self._model(members),
            self._material(
                [rows for rows in kept for _ in self.seeds],
                [rows for rows in held for _ in self.seeds],
            ),
            self._config,
            tuple(members),
            patience=NEVER,
            listener=lambda found: said.append(
                {name: tensor.numpy().astype(np.float64) for name, tensor in found.items()}
            ),
        )
        histories = _mean_histories(histories_of(_run(stage, watcher)), self.seeds)
        best = _best_epoch(histories)
        heads = stage.model.predicates
        potential = {
            head.name: _joined(through(channel_of(head), said[best - 1][head.name]), held, per_fold)
            for head in heads
        }
        shares = {head.name: np.array(head.training_shares) for head in heads}
        return OutOfFold(best, potential, shares, histories)

    def final(self, epochs: int) -> Runtime:
        """All entities, for as many epochs as was best without them."""
        model = self._model(self.seeds)
        everything = [self.folded.everything] * len(self.seeds)
        stage = StageOne(
            model,
            self._material(everything, everything),
            replace(self._config, max_epochs=epochs),
            self.seeds,
            patience=NEVER,
        )
        return Runtime(model, to_numpy(_run(stage, None).members.parameters))

    @property
    def _config(self) -> TrainingConfig:
        batch = max(LEAST_BATCH, len(self.folded.examples.features) // STEPS)
        return replace(self.config, batch_size=min(self.config.batch_size, batch))

    def _model(self, members: Sequence[int]) -> ModelConfig:
        folded = self.folded
        heads = heads_of(
            folded.examples.dataset, folded.predicates, folded.everything, self._config
        )
        width = folded.examples.features.shape[1]
        return model_config(heads, self._config, members, self.reader_id, width)

    def _material(self, train: Sequence[Rows], validation: Sequence[Rows]) -> Material:
        examples = self.folded.examples
        labels = labels_of(examples.dataset, self.folded.predicates)
        return make_material(examples.features, labels, train, validation, self._config)


def _run(stage: StageOne, watcher: Watcher | None) -> StageOneState:
    state = stage.begin(fresh_tensors(stage.model, stage.seeds))
    if watcher is None:
        return stage.run(state)
    return stage.run(state, lambda now: watcher(now.epoch, stage.config.max_epochs, now))


def _mean_histories(
    histories: Sequence[SeedHistory], seeds: Sequence[int]
) -> tuple[SeedHistory, ...]:
    """The folds of each seed as one history."""
    merged = []
    for place, seed in enumerate(seeds):
        folds = histories[place :: len(seeds)]
        epochs = tuple(
            Epoch(*(float(np.mean([getattr(one, f.name) for one in same])) for f in fields(Epoch)))
            for same in zip(*(fold.epochs for fold in folds), strict=True)
        )
        merged.append(SeedHistory(seed, epochs, True))
    return tuple(merged)


def _best_epoch(histories: Sequence[SeedHistory]) -> int:
    losses = np.mean([[one.validation_loss for one in h.epochs] for h in histories], axis=0)
    return int(np.argmin(losses)) + 1


def _joined(said: FloatArray, held: Sequence[Rows], per_fold: int) -> FloatArray:
    """The seeds' geometric mean for each item, from the fold that did not see it."""
    potential = np.empty((sum(len(rows) for rows in held), said.shape[2]))
    for fold, rows in enumerate(held):
        members = said[fold * per_fold : (fold + 1) * per_fold, : len(rows)]
        potential[rows] = geometric_mean(members)
    return potential
