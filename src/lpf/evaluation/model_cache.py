"""Trained models of studies, each trained once and kept with what its training cost.

Networks that several methods of a train_spec share: trained once, and charged to each.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lpf.baselines import ItemModels, Shared
from lpf.errors import ArtefactFormatError, StorageError
from lpf.evaluation.feature_cache import LessonExamples
from lpf.evaluation.specs import TrainSpec
from lpf.evaluation.variants import DEFAULT_ENSEMBLE, OPTIONS, best_members
from lpf.model.artefact import load_model
from lpf.model.runtime import Runtime
from lpf.storage.atomic_files import write_atomically
from lpf.training import Examples, StageTwoConfig, Trainer, TrainingConfig
from lpf.training.config import ModelKind
from lpf.training.history import SeedHistory

FORMAT = 1
# The networks with what was repaired in them; the reading that ``lpf train`` chooses; and to the
# letter of the paper.
Recipe = Literal["networks", "chosen", "published"]


@dataclass(frozen=True)
class StudyModel:
    """All seeds of a search as members, best first, but of a chosen reading those that answer;
    ``histories`` in the order they were given;
    ``seconds`` is what the search took."""

    runtime: Runtime
    histories: tuple[SeedHistory, ...]
    seconds: float


@dataclass(frozen=True)
class ModelCache:
    """Models by train_spec and recipe."""

    folder: Path

    def model(
        self,
        train_spec: TrainSpec,
        examples: Examples,
        reader_id: str,
        predicate: str,
        recipe: Recipe,
    ) -> StudyModel:
        home = self._home(train_spec, recipe)
        if not (home / "training.json").is_file():
            self._train(home, train_spec, examples, reader_id, predicate, recipe)
        return _loaded(home)

    def kept(self, train_spec: TrainSpec) -> StudyModel:
        """Networks that were trained before."""
        return _loaded(self._home(train_spec, "networks"))

    def _home(self, train_spec: TrainSpec, recipe: Recipe) -> Path:
        """The seed of other methods is no part of a search, unless it chooses its entities."""
        searched = train_spec if train_spec.entities is not None else replace(train_spec, seed=0)
        return self.folder / f"{searched.key}{'' if recipe == 'networks' else f'-{recipe}'}"

    def _train(
        self,
        home: Path,
        train_spec: TrainSpec,
        examples: Examples,
        reader_id: str,
        predicate: str,
        recipe: Recipe,
    ) -> None:
        config = _config(recipe, len(train_spec.seeds))
        learned = examples.select(_learned(examples))
        begin = perf_counter()
        trained = Trainer(learned, reader_id, (predicate,), config, train_spec.seeds).run()
        seconds = perf_counter() - begin
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": trained.save(home),
            "seconds": seconds,
            "histories": [one.to_dict() for one in trained.histories],
        }
        # Last: a model without this file is not there yet.
        write_atomically(home / "training.json", json.dumps(document).encode())


def _learned(examples: Examples) -> NDArray[np.intp]:
    """Everybody but those who are asked about: training never holds them in its hands."""
    return np.flatnonzero([entity.split != "test" for entity in examples.dataset])


def _config(recipe: Recipe, seeds: int) -> TrainingConfig:
    if recipe == "published":
        return replace(TrainingConfig.paper(), members=seeds)
    model: ModelKind = "best" if recipe == "chosen" else "networks"
    plain = TrainingConfig(stage_two=StageTwoConfig(), model=model)
    # The chosen one has the members of any other training: linear ones belong together.
    return plain if recipe == "chosen" else replace(plain, members=seeds)


def _loaded(home: Path) -> StudyModel:
    """ArtefactError where a file is damaged."""
    path = home / "training.json"
    try:
        document = json.loads(path.read_bytes())
        version, seconds = document["version"], float(document["seconds"])
        histories = tuple(SeedHistory.from_dict(one) for one in document["histories"])
    except FileNotFoundError as error:
        raise StorageError(
            f"{path}: the model that gave these answers is gone. Nothing was told. Remove the "
            f"folder {home.parent.parent / 'answers'} as well, and repeat: all is computed again."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ArtefactFormatError(
            f"{path}: cannot be read ({error}). Nothing was answered with it. Remove the folder it "
            "is in and repeat: the model is trained again."
        ) from error
    return StudyModel(load_model(home / version).runtime(), histories, seconds)


# Trained to the letter of the paper, and nobody else's.
PUBLISHED = "lpf_learned_published"
# As ``lpf train`` leaves it: networks or a linear reading.
CHOSEN = "lpf_chosen"
OVER_FACTORS = "vae_only"
OVER_ITEMS = (
    "deterministic_average",
    "deterministic_ensemble_average",
    "spn_only",
    "majority_vote",
    "confidence_vote",
    "stacking",
    "dawid_skene",
)
OVER_FOLDS = ("stacking", "dawid_skene")


class SharedModels:
    """None is trained before a method asks for it. ``shelf`` keeps those of LPF."""

    def __init__(self, learned: LessonExamples, shelf: ModelCache) -> None:
        self.learned, self.shelf = learned, shelf
        # As wide a search as LPF's own.
        self._items = ItemModels(searched=len(learned.train_spec.seeds))

    @cached_property
    def model(self) -> StudyModel:
        return self._trained("networks")

    @cached_property
    def published(self) -> StudyModel:
        return self._trained("published")

    @cached_property
    def chosen(self) -> StudyModel:
        return self._trained("chosen")

    def variant_model(self, name: str) -> StudyModel:
        """The one that a variant of LPF answers with."""
        if name == CHOSEN:
            return self.chosen
        return self.published if name == PUBLISHED else self.model

    def shared(self, name: str) -> Shared:
        """What the method shares with others; no model for those that do without, which would be
        trained for nothing. The one trained to the letter is left to variants."""
        if not name.startswith(OVER_FACTORS):
            return Shared(items=self._items)
        return Shared(best_members(self.model.runtime, DEFAULT_ENSEMBLE), items=self._items)

    def seconds(self, name: str) -> float:
        """How long it took to train what the method shares, which is done here if not before."""
        if name in OPTIONS:
            return self.variant_model(name).seconds
        if name.startswith(OVER_FACTORS):
            return self.model.seconds
        classified = self._item_seconds if name in OVER_ITEMS else 0.0
        return classified + (self._fold_seconds if name in OVER_FOLDS else 0.0)

    def _trained(self, recipe: Recipe) -> StudyModel:
        learned = self.learned
        return self.shelf.model(
            learned.train_spec, learned.examples, learned.reader_id, learned.predicate, recipe
        )

    @cached_property
    def _item_seconds(self) -> float:
        return self._timed(self._items.model)

    @cached_property
    def _fold_seconds(self) -> float:
        return self._timed(self._items.out_of_fold)

    def _timed(self, training: Callable[[Examples, Examples, str, int], object]) -> float:
        begin = perf_counter()
        learned = self.learned
        training(learned.train, learned.validation, learned.predicate, learned.train_spec.seed)
        return perf_counter() - begin
