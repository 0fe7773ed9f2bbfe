"""Training on so few entities that none can be spared.

Folds take the place of splits: models are trained without each fold in turn, and what they say of
the items they did not see tells how to train, which reading to take, what to fit and how far the
result can be trusted. The model itself is then trained on everything.

Folds of a few entities: each in turn is what the others' model is judged by.

Networks for a few entities: all folds and seeds in one pass tell how long to train, and the
model is then trained so long on everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpf.combine.calibration import CalibrationFit, answered, fit_robust
from lpf.datasets import grouped_folds
from lpf.errors import DatasetError
from lpf.factors.convert import geometric_mean
from lpf.factors.tempering import channel_of, through
from lpf.model.artefact import OUT_OF_FOLD
from lpf.model.config import PredicateHead
from lpf.model.layout import fresh_tensors
from lpf.model.networks import to_numpy
from lpf.model.runtime import Runtime, refuse_overflow
from lpf.training.assembly import Trained, make_card, model_config
from lpf.training.config import TrainingConfig, check_seeds
from lpf.training.examples import Examples
from lpf.training.fitting import (
    SUBSETS_SEED,
    FittedParameters,
    Scores,
    calibrated,
    labelled_factors,
    score,
)
from lpf.training.history import Epoch, SeedHistory
from lpf.training.linear import LinearLearner, LinearRecipe, LinearTrials, ReadingChoice, mean_nll
from lpf.training.material import Rows, heads_of, labelled_with, labels_of, make_material
from lpf.training.search import Watcher
from lpf.training.stage_one import Listener, StageOne, StageOneState, histories_of
from lpf.training.trainer import Telling
from lpf.training.training_warnings import (
    few_cautions,
    prior_cautions,
    reading_cautions,
    size_cautions,
    unlearned_cautions,
)
from lpf.types import FloatArray

FOLDS = 5
FOLDS_SEED = 42

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Folded:
    """Entities to learn ``predicates`` from. DatasetError where a value has fewer than two, or all
    are of one group."""

    examples: Examples
    predicates: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_two_each(self.examples, self.predicates)
        _require_two_groups(self.examples)

    @cached_property
    def held(self) -> tuple[Places, ...]:
        """The entities of each fold: groups kept whole, every predicate's values in their
        shares."""
        dataset, (name, *others) = self.examples.dataset, self.predicates
        count = max(2, min(FOLDS, self._rarest, _groups(self.examples)))
        return grouped_folds(dataset, name, count, FOLDS_SEED, others)

    @property
    def _rarest(self) -> int:
        """Of the value that the fewest entities have."""
        labels = (self.examples.dataset.labels(name) for name in self.predicates)
        return min(int(np.bincount(one[one >= 0]).min()) for one in labels)

    @property
    def kept(self) -> tuple[Places, ...]:
        """The entities outside of each fold."""
        everybody = np.arange(len(self.examples.dataset))
        return tuple(np.setdiff1d(everybody, places) for places in self.held)

    @property
    def everything(self) -> Rows:
        return np.arange(len(self.examples.features))


def _groups(examples: Examples) -> int:
    return len({entity.group_id or entity.entity_id for entity in examples.dataset})


def _require_two_groups(examples: Examples) -> None:
    if _groups(examples) < 2:
        raise DatasetError(
            f"dataset {examples.dataset.name!r}: all {len(examples.dataset)} entities are of one "
            "group, and those of a group are never both learned from and judged by. Nothing was "
            "trained. Add entities of another group, or take group_id out if they are not alike."
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


# Below it, a seventh of the entities is too few to stop by, to fit on or to judge by.
FEWEST_FOR_SPLITS = 60


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
    few = _Few(Folded(examples, predicates), reader_id, config, chosen)
    networks = FewNetworks(few.folded, reader_id, config, chosen)
    say("training on folds")
    course = networks.out_of_fold(watcher)
    unseen = few.judged(course.potential, course.shares)
    if config.model == "networks":
        say("training on everything")
        return few.finished(networks.final(course.epochs), unseen, course, None)
    say("comparing with a linear reading")
    linear, read, recipes = few.linear()
    choice = ReadingChoice(_mean_nll(unseen), _mean_nll(read), recipes)
    if choice.is_linear:
        return few.finished(linear, read, course, choice)
    say("training on everything")
    return few.finished(networks.final(course.epochs), unseen, course, choice)


@dataclass(frozen=True)
class _Judged:
    """Of entities that were not learned from: what was fitted to what was said of their items, and
    how good answers are with what was fitted to others of them."""

    fit: CalibrationFit
    scores: Scores


@dataclass(frozen=True)
class _Few:
    folded: Folded
    reader_id: str
    config: TrainingConfig
    seeds: tuple[int, ...]

    def linear(self) -> tuple[Runtime, dict[str, _Judged], dict[str, LinearRecipe]]:
        """The linear reading of everything, and how those without each fold did."""
        folded = self.folded
        learners = [LinearLearner(folded.examples.select(places)) for places in folded.kept]
        trials = LinearTrials(folded.examples, learners, folded.held)
        recipes = {name: trials.recipe(name) for name in folded.predicates}
        whole = LinearLearner(folded.examples).runtime(recipes, self.seeds, self.reader_id)
        shares = {head.name: np.array(head.training_shares) for head in whole.config.predicates}
        said = trials.potential(recipes, self.seeds, self.reader_id)
        return whole, self.judged(said, shares), recipes

    def judged(
        self, potential: Mapping[str, FloatArray], shares: Mapping[str, FloatArray]
    ) -> dict[str, _Judged]:
        """``potential`` is what was said of items that were not learned from, by predicate."""
        return {
            name: self._judged(name, potential[name], shares[name])
            for name in self.folded.predicates
        }

    def finished(
        self,
        runtime: Runtime,
        unseen: Mapping[str, _Judged],
        course: OutOfFold,
        choice: ReadingChoice | None,
    ) -> Trained:
        fitted = {name: FittedParameters(one.fit, None) for name, one in unseen.items()}
        runtime = calibrated(runtime, fitted)
        scores = {OUT_OF_FOLD: {name: one.scores for name, one in unseen.items()}}
        cautions = (
            *unlearned_cautions(scores),
            *reading_cautions(choice),
            *self._cautions(scores[OUT_OF_FOLD]),
        )
        dataset = self.folded.examples.dataset
        card = make_card(
            dataset.name,
            dataset,
            self.config,
            course.histories,
            runtime,
            fitted,
            scores,
            cautions,
            choice,
        )
        return Trained(
            runtime.config,
            runtime.tensors,
            card,
            course.histories,
            (),
            fitted,
            scores,
            cautions,
            choice,
        )

    def _judged(self, name: str, potential: FloatArray, shares: FloatArray) -> _Judged:
        examples = self.folded.examples
        predicate, labels = examples.dataset.schema[name], examples.dataset.labels(name)
        places = np.flatnonzero(labels >= 0)
        data = labelled_factors(
            examples.select(places), predicate, potential[examples.rows(places)], shares
        )
        fit = fit_robust(data, generator=np.random.default_rng(SUBSETS_SEED))
        # A handful is not enough to fit to others than those judged.
        answers = answered(data, fit.parameters) if fit.held_out is None else fit.held_out
        return _Judged(fit, score(answers, labels[places], predicate.prior))

    def _cautions(self, scores: Mapping[str, Scores]) -> list[str]:
        dataset = self.folded.examples.dataset
        cautions = list(dataset.exclusions)
        for name, found in scores.items():
            labels = dataset.labels(name)
            cautions += few_cautions(name, found)
            cautions += size_cautions(name, found.entities)
            cautions += prior_cautions(dataset.schema[name], labels[labels >= 0])
        return cautions


def _mean_nll(unseen: Mapping[str, _Judged]) -> float:
    return mean_nll([one.fit for one in unseen.values()])
