"""Trained models of studies, each trained once and kept with what its training cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lpf.errors import ArtefactFormatError, StorageError
from lpf.experiments.cells import Lesson
from lpf.model.artefact import load_model
from lpf.model.runtime import Runtime
from lpf.storage.files import write_atomically
from lpf.training import Examples, StageTwoConfig, Trainer, TrainingConfig
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
class ModelShelf:
    """Models by lesson and recipe."""

    folder: Path

    def model(
        self, lesson: Lesson, examples: Examples, reader_id: str, predicate: str, recipe: Recipe
    ) -> StudyModel:
        home = self._home(lesson, recipe)
        if not (home / "training.json").is_file():
            self._train(home, lesson, examples, reader_id, predicate, recipe)
        return _loaded(home)

    def kept(self, lesson: Lesson) -> StudyModel:
        """Networks that were trained before."""
        return _loaded(self._home(lesson, "networks"))

    def _home(self, lesson: Lesson, recipe: Recipe) -> Path:
        """The seed of other methods is no part of a search, unless it chooses its entities."""
        searched = lesson if lesson.entities is not None else replace(lesson, seed=0)
        return self.folder / f"{searched.key}{'' if recipe == 'networks' else f'-{recipe}'}"

    def _train(
        self,
        home: Path,
        lesson: Lesson,
        examples: Examples,
        reader_id: str,
        predicate: str,
        recipe: Recipe,
    ) -> None:
        config = _config(recipe, len(lesson.seeds))
        learned = examples.select(_learned(examples))
        begin = perf_counter()
        trained = Trainer(learned, reader_id, (predicate,), config, lesson.seeds).run()
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
    plain = TrainingConfig(stage_two=StageTwoConfig(), reading=recipe)
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
