"""From a labelled data set to a model: both stages, the search over seeds, and the linear model.

Training takes six steps: train all seeds, select the best as members, compare them with a linear
model, see if a tuned reader makes it better (``ladder``), train the learned aggregator, fit
parameters on validation entities. ``assembly.finish`` turns the result into a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from lpf.datasets import Dataset, Split, require_trainable
from lpf.index.vector_folders import FEATURE_CACHES
from lpf.model.layout import fresh_tensors
from lpf.model.runtime import Runtime
from lpf.reading.reader import Reader
from lpf.training.assembly import Trained, finish, model_config, select_members
from lpf.training.config import SEVEN_SEEDS, TrainingConfig, check_seeds
from lpf.training.examples import Examples, Progress
from lpf.training.fitting import (
    Scores,
    calibrated,
    evaluate_all,
    fit_predicate,
    shares_of_training,
)
from lpf.training.held_out import hold_apart
from lpf.training.ladder import HALVES, RUNGS, FittedReader, Ladder, LadderSteps, ladder_reader
from lpf.training.lexical import with_logits
from lpf.training.material import heads_of, labelled_with, labels_of, make_material
from lpf.training.model_choice import ChosenModel, choose_linear, choose_model
from lpf.training.reader_choice import ReaderChoice
from lpf.training.search import search_id, search_seeds
from lpf.training.stage_one import EpochCallback, StageOne
from lpf.training.stage_two import TRAINED_PREFIX, AggregatorHistory, EntityRows, StageTwo
from lpf.training.threads import one_thread
from lpf.types import FloatArray, Variant

# Called with the step that begins, such as "training the learned aggregator".
StatusCallback = Callable[[str], None]
# Fields of TrainingConfig that the search over seeds does not depend on.
AFTER_THE_SEARCH = ("members", "aggregator", "stage_two", "model", "unfamiliar", "budget")


@dataclass(frozen=True)
class Trainer:
    """One training run on a data set with splits. Searches over seeds and tuned readers are stored
    in ``folder`` (None: not stored) and continued or used again by the same run. ``tuning``, if
    given, stores the tuned readers instead, which do not depend on the seeds. ``reader`` made the
    features; without it, nothing is tuned. ``spent`` seconds of the budget were used before the
    run."""

    examples: Examples
    reader_id: str
    predicates: tuple[str, ...]
    config: TrainingConfig = field(default_factory=TrainingConfig)
    seeds: tuple[int, ...] = SEVEN_SEEDS
    folder: Path | None = None
    on_epoch: EpochCallback | None = None
    on_status: StatusCallback | None = None
    reader: Reader | None = None
    spent: float = 0.0
    on_texts: Progress | None = None
    on_pairs: Progress | None = None
    tuning: Path | None = None

    @property
    def dataset(self) -> Dataset:
        return self.examples.dataset

    @one_thread()
    def run(self) -> Trained:
        """Train a model. Nothing is written except to ``folder`` and ``tuning``."""
        check_seeds(self.seeds)
        for predicate in self.predicates:
            require_trainable(labelled_with(self.dataset, predicate), predicate)
        if self.config.model == "networks":
            return self._run()
        return replace(self, examples=hold_apart(self.examples, self.predicates))._run()

    def _run(self) -> Trained:
        best, reader_choice = self._best_reader()
        chosen = best.chosen
        runtime, aggregator = self._stage_two(chosen.runtime, chosen.examples)
        self._status("fitting on validation entities")
        validation, schema = chosen.examples.split("validation"), self.dataset.schema
        assert validation is not None  # a data set without one was refused
        fitted = {
            name: fit_predicate(runtime, schema[name], validation) for name in self.predicates
        }
        examples = chosen.examples
        scores: dict[Variant, Mapping[str, Scores]] | None = None
        if (refit := chosen.refit) is not None:
            # Validation entities are scored, and the aggregator was trained, with a model that had
            # not seen them; the refitted one takes the aggregator over.
            before = calibrated(runtime, fitted)
            runtime = with_aggregator_of(runtime, refit.runtime)
            examples = with_logits(best.examples, runtime.words)
            if chosen.in_folds is not None:
                fitted = chosen.in_folds.fitted(fitted)
                scores = {"spn": chosen.in_folds.validation_scores(fitted)}
            else:
                scores = {"spn": evaluate_all(before, validation, self._shares, "spn")}
            if runtime.config.aggregator is not None:
                scores["learned"] = evaluate_all(before, validation, self._shares, "learned")
        return finish(
            runtime,
            examples,
            self.predicates,
            self.config,
            histories=best.histories,
            fitted=fitted,
            validation_scores=scores,
            choice=chosen.choice,
            aggregator=aggregator,
            reader_choice=reader_choice,
            tuned=best.tuned,
        )

    def _best_reader(self) -> tuple[FittedReader, ReaderChoice | None]:
        """A model on features of the untuned reader, or of a tuned one if that is better."""
        began = time.monotonic()
        untuned = self._fit(self.examples, self.reader_id)
        seconds = time.monotonic() - began
        reader = ladder_reader(self.reader)
        if reader is None or self.config.model == "networks":
            return untuned, None
        tuning = self._tuning_folder
        ladder = Ladder(
            reader,
            self.predicates,
            partial(self._fit_tuned, untuned),
            self.config.budget,
            self.spent + seconds,
            untuned.chosen.seconds,
            self._ladder_folder(),
            None if tuning is None else tuning / FEATURE_CACHES.name,
            LadderSteps(self.on_status, self.on_texts, self.on_pairs),
        )
        return ladder.climb(untuned)

    def _fit(self, examples: Examples, reader_id: str) -> FittedReader:
        """``reader_id`` is that of the reader of the features."""
        self._status("training all seeds together")
        stage = self._stage_one(examples, reader_id)
        search = search_seeds(stage, self._search_folder(reader_id), self.on_epoch)
        self._status("choosing the best seeds")
        places = search.order[: self.config.members]
        networks = Runtime(*select_members(stage.model, search.tensors, places))
        if self.config.model == "networks":
            chosen = ChosenModel(networks, None, examples)
        else:
            self._status("comparing with linear models")
            chosen = choose_model(networks, examples, self.predicates)
        return FittedReader(examples, chosen, search.histories)

    def _fit_tuned(self, untuned: FittedReader, examples: Examples, reader_id: str) -> FittedReader:
        """On ``examples`` that a tuned reader has read."""
        self._status("fitting linear models")
        seeds = untuned.chosen.runtime.config.seeds
        chosen = choose_linear(reader_id, seeds, examples, self.predicates)
        return FittedReader(examples, chosen, untuned.histories)

    @property
    def _shares(self) -> dict[str, FloatArray]:
        return shares_of_training(self.dataset, self.predicates)

    def _stage_one(self, examples: Examples, reader_id: str) -> StageOne:
        train = examples.rows(self.dataset.positions("train"))
        validation = examples.rows(self.dataset.positions("validation"))
        features, count = examples.features, len(self.seeds)
        heads = heads_of(self.dataset, self.predicates, train, self.config)
        return StageOne(
            model_config(heads, self.config, self.seeds, reader_id, features.shape[1]),
            make_material(
                features,
                labels_of(self.dataset, self.predicates),
                [train] * count,
                [validation] * count,
                self.config,
            ),
            self.config,
            self.seeds,
        )

    def _search_folder(self, reader_id: str) -> Path | None:
        if self.folder is None:
            return None
        settings = self.config.to_dict()
        return self.folder / search_id(
            data=self.dataset.digest,
            reader=reader_id,
            predicates=list(self.predicates),
            config={name: settings[name] for name in settings if name not in AFTER_THE_SEARCH},
            seeds=list(self.seeds),
        )

    @property
    def _tuning_folder(self) -> Path | None:
        return self.folder if self.tuning is None else self.tuning

    def _ladder_folder(self) -> Path | None:
        """Depends on everything that decides what is tuned, but not on the budget: a reader that
        was tuned on all entities is used again with another one. Seeds only change how much time
        is left, so repetitions that share ``tuning`` take the same decisions."""
        if self._tuning_folder is None:
            return None
        return self._tuning_folder / search_id(
            data=self.dataset.digest,
            reader=self.reader_id,
            predicates=list(self.predicates),
            rungs=[asdict(rung) for rung in RUNGS],
            parts=HALVES,
            config={k: v for k, v in self.config.to_dict().items() if k != "budget"},
            seeds=None if self.tuning is not None else list(self.seeds),
        )

    def _stage_two(self, runtime: Runtime, examples: Examples) -> tuple[Runtime, AggregatorHistory]:
        """The model with a trained aggregator, if the config asks for one."""
        if self.config.aggregator is None:
            return runtime, ()
        self._status("training the learned aggregator")
        model = replace(runtime.config, aggregator=self.config.aggregator)
        fresh = fresh_tensors(model, model.seeds)  # without what all members share
        tensors = {name: runtime.tensors.get(name, fresh[name]) for name in fresh}
        stage = StageTwo(model, self.config.stage_two, examples.features)
        train, validation = self._entity_rows("train"), self._entity_rows("validation")
        trained, history = stage.run(tensors, train, validation)
        return Runtime(model, {**runtime.tensors, **trained}), history

    def _entity_rows(self, split: Split) -> dict[str, EntityRows]:
        entities = self.dataset.positions(split)
        top_k = self.config.stage_two.top_k
        return {
            name: EntityRows.of(self.dataset.offsets, self.dataset.labels(name), entities, top_k)
            for name in self.predicates
        }

    def _status(self, step: str) -> None:
        if self.on_status is not None:
            self.on_status(step)


def with_aggregator_of(source: Runtime, model: Runtime) -> Runtime:
    """``model`` with the aggregator of ``source``, if that has one."""
    if source.config.aggregator is None:
        return model
    own = {
        name: tensor for name, tensor in source.tensors.items() if name.startswith(TRAINED_PREFIX)
    }
    config = replace(model.config, aggregator=source.config.aggregator)
    return Runtime(config, {**model.tensors, **own})
