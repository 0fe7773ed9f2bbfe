"""Training data that take seconds: a small data set of a domain, and files whose short texts mostly
reveal the label. Each model is trained once per test run."""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lpf.datasets import Dataset
from lpf.evaluation.own_method import own_settings
from lpf.evaluation.runner import Runner
from lpf.evaluation.specs import Cell, DomainData, EvalSpec, FileData, TrainSpec
from lpf.evaluation.workbench import Workbench

DATA = DomainData("compliance", changes=("entities=120", "items=3"))
TRAIN_SPEC = TrainSpec(DATA, seed=1, seeds=(1, 2, 3))
TINY = ("entities=60", "items=2")
WORDS = {
    "good": ("praised by all", "won a prize", "works very well", "all were pleased"),
    "bad": ("failed again", "was sent back", "broke at once", "all complained"),
}

Entity = dict[str, Any]


@dataclass(frozen=True)
class Reworded:
    """A ``DatasetChange``: the texts of the first ``items`` items of each entity are replaced."""

    items: int
    text: str = "Nothing is known."

    @property
    def content(self) -> tuple[str | int, ...]:
        return ("reworded", self.items, self.text)

    def apply(self, dataset: Dataset, predicate: str) -> Dataset:
        assert dataset.schema[predicate]
        changed = (
            replace(
                entity,
                evidence=tuple(
                    replace(item, text=self.text, truth=None) if place < self.items else item
                    for place, item in enumerate(entity.evidence)
                ),
                truth=None,
            )
            for entity in dataset
        )
        return replace(dataset, entities=tuple(changed))


@cache
def bench() -> Workbench:
    """``TRAIN_SPEC`` with its model, shared by all tests."""
    return Workbench(TRAIN_SPEC, kept_folder("bench"))


def kept_folder(name: str) -> Path:
    """Gone when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix=f"lpf-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def entities(number: int, *, items: int = 2, right: float = 0.85) -> list[Entity]:
    """Half are good, half bad; of their texts a share ``right`` says so. No two are the same."""
    generator = np.random.default_rng(5)
    made = []
    for place in range(number):
        label = ("good", "bad")[place % 2]
        stated = [label if generator.random() < right else ("bad", "good")[place % 2]] * items
        made.append(
            {
                "entity_id": f"e{place}",
                "label": label,
                "evidence": [
                    {
                        "evidence_id": f"e{place}-{item}",
                        "text": f"Part {place}-{item} {generator.choice(WORDS[says])}.",
                    }
                    for item, says in enumerate(stated)
                ],
            }
        )
    return made


def in_splits(rows: Sequence[Entity], split: Callable[[int], str | None]) -> list[Entity]:
    return [{**row, "split": split(place)} for place, row in enumerate(rows)]


def all_three(place: int) -> str:
    """Six of ten to train on, two to validate, two to test."""
    return ("train", "train", "train", "dev", "test")[place // 2 % 5]


def written(path: Path, rows: Sequence[Entity]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def file_data(path: Path, **changes: Any) -> FileData:
    return FileData(str(path), hashlib.sha256(path.read_bytes()).hexdigest(), **changes)


def own_cells(
    train_spec: TrainSpec, name: str, eval_specs: Sequence[EvalSpec] = (EvalSpec(),)
) -> list[Cell]:
    return [Cell(train_spec, eval_spec, name, own_settings(name)) for eval_spec in eval_specs]


@cache
def two_train_specs() -> tuple[Cell, ...]:
    """Two little train_specs of two methods each, one of which trains a network."""
    methods = {1: ("lpf_robust", "prior"), 2: ("logistic_mean", "oracle")}
    return tuple(
        Cell(
            TrainSpec(DomainData("compliance", seed=seed, changes=TINY), seeds=(1,)),
            EvalSpec(),
            name,
        )
        for seed, names in methods.items()
        for name in names
    )


@cache
def finished() -> Path:
    """A folder in which ``two_train_specs`` were run by one worker. Not to be changed."""
    folder = kept_folder("finished")
    Runner(folder, workers=1).run(two_train_specs())
    return folder


def times(folder: Path) -> dict[Path, int]:
    """When each file of it was written last."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.stat().st_mtime_ns for path in files}
