"""Trained models, each trained once and stored with its training time.

``SharedModels`` are the networks that several methods of one training spec share. Their training
time is charged to each method.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lpf.baselines import ItemModels, Shared, needs_of
from lpf.errors import ArtefactFormatError, StorageError
from lpf.evaluation.feature_cache import SpecExamples
from lpf.evaluation.method_names import CHOSEN
from lpf.evaluation.specs import Setting, TrainSpec
from lpf.evaluation.variants import DEFAULT_ENSEMBLE, OPTIONS, best_members
from lpf.model.artefact import load_model
from lpf.model.runtime import Runtime
from lpf.reading import Reader
from lpf.reading.tuned import TunedReader
from lpf.storage.atomic_files import write_atomically
from lpf.training import Examples, StageTwoConfig, Trainer, TrainingConfig
from lpf.training.config import DEFAULT_BUDGET, ModelKind
from lpf.training.history import SeedHistory

FORMAT = 1
TUNING = "tuning"  # tuned readers, which all repetitions of a fold share
# "networks": LPF's networks with our corrections. "chosen": what ``lpf train`` chooses, networks or
# a linear model. "published": exactly as in the paper.
Recipe = Literal["networks", "chosen", "published"]


@dataclass(frozen=True)
class StudyModel:
    """All seeds of a search as members, best first; a "chosen" model has only those that answer.
    ``histories`` are in the order of the seeds, ``seconds`` is the time of the whole search.
    ``tuned`` is the reader of a "chosen" model, if it was tuned."""

    runtime: Runtime
    histories: tuple[SeedHistory, ...]
    seconds: float
    tuned: TunedReader | None = None


@dataclass(frozen=True)
class ModelCache:
    """A folder of models by training spec and recipe."""

    folder: Path

    def model(
        self,
        train_spec: TrainSpec,
        examples: Examples,
        reader: Reader,
        predicate: str,
        recipe: Recipe,
        budget: float = DEFAULT_BUDGET,
    ) -> StudyModel:
        """``budget`` is that of a "chosen" model."""
        home = self._home(train_spec, recipe)
        if recipe == "chosen" and budget != DEFAULT_BUDGET:
            home = home.with_name(f"{home.name}-{budget:g}")
        if not (home / "training.json").is_file():
            config = replace(_config(recipe, len(train_spec.seeds)), budget=budget)
            self._train(home, train_spec, examples, reader, predicate, config)
        return _loaded(home)

    def load(self, train_spec: TrainSpec) -> StudyModel:
        """Networks that were trained before; StorageError if there are none."""
        return _loaded(self._home(train_spec, "networks"))

    def _home(self, train_spec: TrainSpec, recipe: Recipe) -> Path:
        """The seed of other methods does not matter, unless it selects the training entities."""
        searched = train_spec if train_spec.entities is not None else replace(train_spec, seed=0)
        return self.folder / f"{searched.key}{'' if recipe == 'networks' else f'-{recipe}'}"

    def _train(
        self,
        home: Path,
        train_spec: TrainSpec,
        examples: Examples,
        reader: Reader,
        predicate: str,
        config: TrainingConfig,
    ) -> None:
        learned = examples.select(_learned(examples))
        begin = perf_counter()
        trained = Trainer(
            learned,
            reader.reader_id,
            (predicate,),
            config,
            train_spec.seeds,
            reader=reader,
            tuning=self.folder / TUNING,
        ).run()
        seconds = perf_counter() - begin
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": trained.save(home),
            "seconds": seconds,
            "histories": [one.to_dict() for one in trained.histories],
        }
        # Written last: a model without this file is not complete.
        write_atomically(home / "training.json", json.dumps(document).encode())


def _learned(examples: Examples) -> NDArray[np.intp]:
    """All but test entities: training never gets those."""
    return np.flatnonzero([entity.split != "test" for entity in examples.dataset])


def _config(recipe: Recipe, seeds: int) -> TrainingConfig:
    if recipe == "published":
        return replace(TrainingConfig.paper(), members=seeds)
    model: ModelKind = "best" if recipe == "chosen" else "networks"
    plain = TrainingConfig(stage_two=StageTwoConfig(), model=model)
    # A chosen model has the default number of members: linear ones belong together. The networks of
    # studies take every text at its full weight, as published.
    return plain if recipe == "chosen" else replace(plain, members=seeds, unfamiliar="full")


def _loaded(home: Path) -> StudyModel:
    """ArtefactError if a file is corrupted."""
    path = home / "training.json"
    try:
        document = json.loads(path.read_bytes())
        version, seconds = document["version"], float(document["seconds"])
        histories = tuple(SeedHistory.from_dict(one) for one in document["histories"])
    except FileNotFoundError as error:
        raise StorageError(
            f"{path} is missing: the model of these results was removed.",
            hint=f"Remove the folder {home.parent.parent / 'answers'} too and repeat: "
            "everything is computed again.",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ArtefactFormatError(
            f"{path} cannot be read ({error}).",
            hint="Remove the folder it is in and repeat: the model is trained again.",
        ) from error
    model = load_model(home / version)
    return StudyModel(model.runtime(), histories, seconds, model.tuned)


# Uses the model that is trained exactly as in the paper.
PUBLISHED = "lpf_learned_published"


class SharedModels:
    """Each is trained when a method first needs it. ``model_cache`` stores those of LPF."""

    def __init__(self, examples: SpecExamples, model_cache: ModelCache) -> None:
        self.examples, self.model_cache = examples, model_cache
        # As many seeds as LPF's own search.
        self._items = ItemModels(searched=len(examples.train_spec.seeds))
        self._chosen: dict[float, StudyModel] = {}

    @cached_property
    def model(self) -> StudyModel:
        return self._trained("networks")

    @cached_property
    def published(self) -> StudyModel:
        return self._trained("published")

    def chosen(self, budget: float = DEFAULT_BUDGET) -> StudyModel:
        """What ``lpf train`` chooses with a budget of this many seconds."""
        if budget not in self._chosen:
            self._chosen[budget] = self._trained("chosen", budget)
        return self._chosen[budget]

    def variant_model(self, name: str, settings: Mapping[str, Setting] | None = None) -> StudyModel:
        """The model that a variant of LPF uses."""
        if name == CHOSEN:
            return self.chosen(float((settings or {}).get("budget", DEFAULT_BUDGET)))
        return self.published if name == PUBLISHED else self.model

    def shared(self, name: str) -> Shared:
        """What the method shares with others. Methods that need no model get none, so that none is
        trained for them; the published model is used by variants only."""
        if needs_of(name) != "networks":
            return Shared(items=self._items)
        return Shared(best_members(self.model.runtime, DEFAULT_ENSEMBLE), items=self._items)

    def seconds(self, name: str, settings: Mapping[str, Setting] | None = None) -> float:
        """Training time of what the method shares; it is trained here if it was not before."""
        if name in OPTIONS:
            return self.variant_model(name, settings).seconds
        if needs_of(name) == "networks":
            return self.model.seconds
        if needs_of(name) == "items":
            return self._item_seconds
        if needs_of(name) == "item folds":
            return self._item_seconds + self._fold_seconds
        return 0.0

    def _trained(self, recipe: Recipe, budget: float = DEFAULT_BUDGET) -> StudyModel:
        spec = self.examples
        return self.model_cache.model(
            spec.train_spec, spec.examples, spec.reader, spec.predicate, recipe, budget
        )

    @cached_property
    def _item_seconds(self) -> float:
        return self._timed(self._items.model)

    @cached_property
    def _fold_seconds(self) -> float:
        return self._timed(self._items.out_of_fold)

    def _timed(self, training: Callable[[Examples, Examples, str, int], object]) -> float:
        begin = perf_counter()
        spec = self.examples
        training(spec.train, spec.validation, spec.predicate, spec.train_spec.seed)
        return perf_counter() - begin
