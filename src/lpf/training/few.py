"""Training on so few entities that none can be spared.

Folds take the place of splits: networks are trained without each fold in turn, all folds and seeds
in one pass, and what they say of the items they did not see tells when to stop, what to fit and
how far the result can be trusted. The model itself is then trained on everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from lpf.calibration import CalibrationFit, fit_robust
from lpf.combine.robust import combine_robust
from lpf.datasets import grouped_folds
from lpf.errors import DatasetError
from lpf.factors.channel import channel_of, through
from lpf.factors.convert import geometric_mean
from lpf.factors.tempering import log_tempered
from lpf.model.config import ModelConfig
from lpf.model.initialise import fresh_tensors
from lpf.model.networks import to_numpy
from lpf.model.runtime import Runtime
from lpf.schema import Predicate
from lpf.training.assembling import Trained, make_card, model_config
from lpf.training.cautions import few_cautions, prior_cautions, size_cautions
from lpf.training.evaluation import Scores, score
from lpf.training.examples import Examples
from lpf.training.fitting import SUBSETS_SEED, Fitted, calibrated, labelled_factors
from lpf.training.history import Epoch, SeedHistory
from lpf.training.material import Rows, heads_of, labelled_with, labels_of, make_material
from lpf.training.search import Watcher
from lpf.training.settings import TrainingConfig, check_seeds
from lpf.training.stage_one import StageOne, StageOneState, histories_of
from lpf.training.trainer import Telling
from lpf.types import FloatArray

# Below it, a seventh of the entities is too few to stop by, to fit on or to judge by.
FEWEST_FOR_SPLITS = 60
FOLDS = 5
# One step an epoch would not get anywhere: batches are made small enough for this many.
STEPS = 8
LEAST_BATCH = 4
FOLDS_SEED = 42
NEVER = 10**9


@dataclass(frozen=True)
class OutOfFold:
    """What networks said of items they had not seen, by predicate [N, V], after the best number
    of epochs; and each seed's course, the mean over folds."""

    epochs: int
    potential: Mapping[str, FloatArray]
    histories: tuple[SeedHistory, ...]


def train_few(
    examples: Examples,
    reader_id: str,
    predicates: tuple[str, ...],
    config: TrainingConfig,
    seeds: Sequence[int],
    watcher: Watcher | None = None,
    tell: Telling | None = None,
) -> Trained:
    """A model of the first ``config.members`` seeds, without an aggregator, which so few entities
    cannot train. Nothing is kept of it on the way: it takes seconds."""
    say = tell or (lambda what: None)
    chosen = check_seeds(seeds)[: config.members]
    _require_two_each(examples, predicates)
    batch = max(LEAST_BATCH, len(examples.features) // STEPS)
    small = replace(config, batch_size=min(config.batch_size, batch))
    few = _Few(examples, reader_id, predicates, small, chosen)
    say("training on folds")
    unseen = few.out_of_fold(watcher)
    say("training on everything")
    runtime = few.final(unseen.epochs)
    say("fitting on what was said of unseen items")
    return few.finished(runtime, unseen)


@dataclass(frozen=True)
class _Few:
    examples: Examples
    reader_id: str
    predicates: tuple[str, ...]
    config: TrainingConfig
    seeds: tuple[int, ...]

    @property
    def everything(self) -> Rows:
        return np.arange(len(self.examples.features))

    def model(self, members: Sequence[int]) -> ModelConfig:
        dataset = self.examples.dataset
        heads = heads_of(dataset, self.predicates, self.everything, self.config)
        width = self.examples.features.shape[1]
        return model_config(heads, self.config, members, self.reader_id, width)

    def out_of_fold(self, watcher: Watcher | None) -> OutOfFold:
        """One member for each fold and seed; none stops early, so that all can be compared."""
        held = [self.examples.rows(fold) for fold in _folds(self.examples, self.predicates)]
        kept = [np.setdiff1d(self.everything, rows) for rows in held]
        members = [seed for _ in held for seed in self.seeds]
        per_fold = len(self.seeds)
        said: list[dict[str, FloatArray]] = []
        stage = StageOne(
            self.model(members),
            make_material(
                self.examples.features,
                labels_of(self.examples.dataset, self.predicates),
                [rows for rows in kept for _ in range(per_fold)],
                [rows for rows in held for _ in range(per_fold)],
                self.config,
            ),
            self.config,
            tuple(members),
            patience=NEVER,
            listener=lambda found: said.append(
                {name: tensor.numpy().astype(np.float64) for name, tensor in found.items()}
            ),
        )
        state = self._run(stage, watcher)
        histories = _mean_histories(histories_of(state), self.seeds)
        best = _best_epoch(histories)
        potential = {
            head.name: _joined(
                through(channel_of(head), said[best - 1][head.name]),
                held,
                per_fold,
                len(self.everything),
            )
            for head in stage.model.predicates
        }
        return OutOfFold(best, potential, histories)

    def final(self, epochs: int) -> Runtime:
        """All entities, for as many epochs as was best without them."""
        model = self.model(self.seeds)
        count = len(self.seeds)
        config = replace(self.config, max_epochs=epochs)
        material = make_material(
            self.examples.features,
            labels_of(self.examples.dataset, self.predicates),
            [self.everything] * count,
            [self.everything] * count,
            config,
        )
        stage = StageOne(model, material, config, self.seeds, patience=NEVER)
        state = self._run(stage, None)
        return Runtime(model, to_numpy(state.members.parameters))

    def finished(self, runtime: Runtime, unseen: OutOfFold) -> Trained:
        schema, dataset = self.examples.dataset.schema, self.examples.dataset
        fitted: dict[str, Fitted] = {}
        scores: dict[str, Scores] = {}
        cautions = list(dataset.exclusions)
        for name in self.predicates:
            places = np.flatnonzero(dataset.labels(name) >= 0)
            part, rows = self.examples.select(places), self.examples.rows(places)
            shares = np.array(runtime.config.head(name).training_shares)
            fit, answered = _fitted(part, schema[name], unseen.potential[name][rows], shares)
            fitted[name] = Fitted(fit, None)
            labels = part.dataset.labels(name)
            scores[name] = score(answered, labels, schema[name].prior)
            cautions += few_cautions(name, scores[name])
            cautions += size_cautions(name, len(places))
            cautions += prior_cautions(schema[name], labels)
        runtime = calibrated(runtime, fitted)
        by_place = {"out of fold/spn": scores}
        card = make_card(
            dataset.name,
            dataset,
            self.config,
            unseen.histories,
            runtime,
            fitted,
            by_place,
            cautions,
        )
        return Trained(
            runtime.config,
            runtime.tensors,
            card,
            unseen.histories,
            (),
            fitted,
            by_place,
            tuple(cautions),
        )

    def _run(self, stage: StageOne, watcher: Watcher | None) -> StageOneState:
        state = stage.begin(fresh_tensors(stage.model, stage.seeds))
        if watcher is None:
            return stage.run(state)
        return stage.run(state, lambda now: watcher(now.epoch, stage.config.max_epochs, now))


def _folds(examples: Examples, predicates: Sequence[str]) -> tuple[NDArray[np.intp], ...]:
    """Folds by the first predicate; entities without a value of it are in the first fold."""
    dataset = examples.dataset
    known = np.flatnonzero(dataset.labels(predicates[0]) >= 0)
    part = dataset.select(known.tolist())
    groups = {entity.group_id or entity.entity_id for entity in part}
    least = int(np.bincount(part.labels(predicates[0])).min())
    count = max(2, min(FOLDS, least, len(groups)))
    folds = grouped_folds(part, predicates[0], count, FOLDS_SEED)
    rest = np.setdiff1d(np.arange(len(dataset)), known)
    return (np.concatenate([known[folds[0]], rest]), *(known[fold] for fold in folds[1:]))


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


def _joined(said: FloatArray, held: Sequence[Rows], per_fold: int, count: int) -> FloatArray:
    """The seeds' geometric mean for each item, from the fold that did not see it."""
    potential = np.empty((count, said.shape[2]))
    for fold, rows in enumerate(held):
        members = said[fold * per_fold : (fold + 1) * per_fold, : len(rows)]
        potential[rows] = geometric_mean(members)
    return potential


def _fitted(
    examples: Examples, predicate: Predicate, potential: FloatArray, shares: FloatArray
) -> tuple[CalibrationFit, FloatArray]:
    """The fit, and the answers of whole entities with it."""
    data = labelled_factors(examples, predicate, potential, shares)
    fit = fit_robust(data, generator=np.random.default_rng(SUBSETS_SEED))
    tempered = np.exp(log_tempered(np.log(potential), fit.parameters.temperature))
    combined = combine_robust(
        tempered,
        data.credibility,
        shares,
        data.log_prior,
        data.segments,
        fit.parameters,
        data.groups,
    )
    return fit, combined.distribution
