"""Networks for a few entities: all folds and seeds in one pass tell how long to train, and the
model is then trained so long on everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from lpf.factors.channel import channel_of, through
from lpf.factors.convert import geometric_mean
from lpf.model.config import PredicateHead
from lpf.model.initialise import fresh_tensors
from lpf.model.networks import to_numpy
from lpf.model.runtime import Runtime, refuse_overflow
from lpf.training.assembling import model_config
from lpf.training.folding import Folded
from lpf.training.history import Epoch, SeedHistory
from lpf.training.material import Rows, heads_of, labels_of, make_material
from lpf.training.search import Watcher
from lpf.training.settings import TrainingConfig
from lpf.training.stage_one import Listener, StageOne, StageOneState, histories_of
from lpf.types import FloatArray

# One step an epoch would not get anywhere: batches are made small enough for this many.
STEPS = 8
LEAST_BATCH = 4
NEVER = 10**9


@dataclass(frozen=True)
class OutOfFold:
    """What networks said of items they had not seen, by predicate [N, V], after the best number
    of epochs; π of those they saw, the mean over folds; and so each seed's course."""

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
        stage = self._stage(
            [seed for _ in held for seed in self.seeds],
            [rows for rows in kept for _ in self.seeds],
            [rows for rows in held for _ in self.seeds],
            lambda found: said.append(
                {name: tensor.numpy().astype(np.float64) for name, tensor in found.items()}
            ),
        )
        courses = histories_of(_run(stage, watcher))
        histories = _mean_histories(courses, self.seeds, self.config.patience)
        best = _best_epoch(histories)
        heads = [self._heads(rows) for rows in kept]
        return OutOfFold(
            best,
            {
                name: self._joined([by_name[name] for by_name in heads], said[best - 1][name], held)
                for name in self.folded.predicates
            },
            {
                name: np.mean([by_name[name].training_shares for by_name in heads], axis=0)
                for name in self.folded.predicates
            },
            histories,
        )

    def final(self, epochs: int) -> Runtime:
        """All entities, for as many epochs as was best without them."""
        everything = [self.folded.everything] * len(self.seeds)
        # Nobody looks at a validation here: one row is enough.
        stage = self._stage(self.seeds, everything, [rows[:1] for rows in everything])
        stage = replace(stage, config=replace(stage.config, max_epochs=epochs))
        return Runtime(stage.model, to_numpy(_run(stage, None).members.parameters))

    def _stage(
        self,
        members: Sequence[int],
        train: Sequence[Rows],
        validation: Sequence[Rows],
        listener: Listener | None = None,
    ) -> StageOne:
        examples = self.folded.examples
        labels = labels_of(examples.dataset, self.folded.predicates)
        config = self._small_batches
        heads = list(self._heads(self.folded.everything).values())
        return StageOne(
            model_config(heads, config, members, self.reader_id, examples.features.shape[1]),
            make_material(examples.features, labels, train, validation, config),
            config,
            tuple(members),
            patience=NEVER,
            listener=listener,
        )

    @property
    def _small_batches(self) -> TrainingConfig:
        batch = max(LEAST_BATCH, len(self.folded.examples.features) // STEPS)
        return replace(self.config, batch_size=min(self.config.batch_size, batch))

    def _heads(self, rows: Rows) -> dict[str, PredicateHead]:
        """With what these rows tell of values: π, and items' own labels of their entities'."""
        dataset = self.folded.examples.dataset
        found = heads_of(dataset, self.folded.predicates, rows, self._small_batches)
        return {head.name: head for head in found}

    def _joined(
        self, heads: Sequence[PredicateHead], said: FloatArray, held: Sequence[Rows]
    ) -> FloatArray:
        """The seeds' geometric mean for each item, from the fold that did not see it."""
        per_fold = len(self.seeds)
        potential = np.empty((len(self.folded.everything), said.shape[2]))
        for fold, (head, rows) in enumerate(zip(heads, held, strict=True)):
            members = said[fold * per_fold : (fold + 1) * per_fold, : len(rows)]
            potential[rows] = geometric_mean(through(channel_of(head), members))
        items = self.folded.examples.dataset.items
        refuse_overflow([item.evidence_id for item in items], potential)
        return potential


def _run(stage: StageOne, watcher: Watcher | None) -> StageOneState:
    state = stage.begin(fresh_tensors(stage.model, stage.seeds))
    if watcher is None:
        return stage.run(state)
    return stage.run(state, lambda now: watcher(now.epoch, stage.config.max_epochs, now))


def _mean_histories(
    histories: Sequence[SeedHistory], seeds: Sequence[int], patience: int
) -> tuple[SeedHistory, ...]:
    """The folds of each seed as one history, which has converged where patience would have run
    out."""
    merged = []
    for place, seed in enumerate(seeds):
        folds = histories[place :: len(seeds)]
        epochs = tuple(
            Epoch(*(float(np.mean([getattr(one, f.name) for one in same])) for f in fields(Epoch)))
            for same in zip(*(fold.epochs for fold in folds), strict=True)
        )
        whole = SeedHistory(seed, epochs, False)
        merged.append(replace(whole, converged=len(epochs) - whole.best_epoch >= patience))
    return tuple(merged)


def _best_epoch(histories: Sequence[SeedHistory]) -> int:
    losses = np.mean([[one.validation_loss for one in h.epochs] for h in histories], axis=0)
    return int(np.argmin(losses)) + 1
