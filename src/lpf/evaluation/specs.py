"""One cell of a table of results: a method, what it is trained on and what it is tested on.

Cells are plain values. The key of a cell is a hash of everything that its result depends on, so a
result that is stored under it never has to be computed again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from lpf.training.config import SEVEN_SEEDS

if TYPE_CHECKING:
    from lpf.datasets import Dataset

# Raise this when methods, features or domains give other results, or when the form of keys changes.
GENERATION = 13

Setting = bool | int | float | str
Settings = tuple[tuple[str, Setting], ...]


@dataclass(frozen=True)
class DomainData:
    """A generated data set of 900 entities; ``changes`` are settings such as ``copies=0.2``."""

    domain: str
    preset: str = "paper"
    seed: int = 1
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileData:
    """A data file, or a data set in memory with its name as ``path``. ``digest`` identifies its
    content. ``fold`` is the test fold of ``folds``; with 0 folds, the splits of the file hold.
    ``protected`` is a field of the entities by which results are split."""

    path: str
    digest: str
    predicate: str | None = None
    folds: int = 0
    fold: int = 0
    protected: str | None = None


Data = DomainData | FileData


@dataclass(frozen=True)
class TrainSpec:
    """Training data. ``seeds`` are those of LPF's networks, ``seed`` that of every other method.
    ``entities`` limits the number of training entities; validation entities all stay."""

    data: Data
    seed: int = 1
    seeds: tuple[int, ...] = SEVEN_SEEDS
    entities: int | None = None

    @cached_property
    def key(self) -> str:
        return _key(self)


class DatasetChange(Protocol):
    """A change to the evidence of test entities, such as dropping some of it.

    An implementation is frozen, hashable, comparable and picklable: it is part of a cell and is
    sent to worker processes. The same input must always give the same output.
    """

    @property
    def content(self) -> tuple[Setting, ...]:
        """What identifies the change. It becomes part of the key under which results are stored,
        so equal changes must have equal content, and different ones different content."""
        ...

    def apply(self, dataset: Dataset, predicate: str) -> Dataset:
        """``dataset`` holds the test entities only. Their order, IDs and labels must stay."""
        ...


@dataclass(frozen=True)
class EvalSpec:
    """Test entities: those of the training data's own file or domain, or ``entities`` new ones
    generated from ``data``. Their evidence is first changed by ``change``, then cut to the best
    ``top_k`` items."""

    data: DomainData | None = None
    entities: int = 0
    change: DatasetChange | None = None
    top_k: int | None = None

    @property
    def is_changed(self) -> bool:
        """True if the evidence is not the original evidence."""
        return self.change is not None or self.top_k is not None


@dataclass(frozen=True)
class Cell:
    """``settings`` change the method (see ``variants``), or identify the code of an own method."""

    train_spec: TrainSpec
    eval_spec: EvalSpec
    method: str
    settings: Settings = ()

    def __post_init__(self) -> None:
        plain = tuple((name, _whole(value)) for name, value in self.settings)
        object.__setattr__(self, "settings", plain)

    @cached_property
    def key(self) -> str:
        return _key(self)


def _whole(value: Setting) -> Setting:
    """2 for 2.0: cells that are equal must have one key."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _key(spec: TrainSpec | Cell) -> str:
    text = json.dumps([GENERATION, _plain(spec)], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _plain(value: object) -> object:
    """As JSON-compatible data. A file is identified by its digest: moving it changes nothing."""
    if isinstance(value, EvalSpec):
        change = None if value.change is None else list(value.change.content)
        return [_plain(value.data), value.entities, change, value.top_k]
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        if isinstance(value, FileData):
            names.remove("path")
        return {name: _plain(getattr(value, name)) for name in names}
    return value
