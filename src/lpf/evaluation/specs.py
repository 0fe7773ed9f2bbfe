"""One cell of a table: which method, taught with what, asked about whom.

Cells are plain values. Their key is a hash of all that their answers depend on, so a result that
is kept under it never has to be computed again, whichever study asks for it next.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property

from lpf.training.config import SEVEN_SEEDS

# To be raised when methods, features or domains change what they answer.
GENERATION = 1

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
    """A data set's file. ``digest`` is that of its bytes. Of ``folds`` folds, ``fold`` is asked
    about; without folds, the splits of the file hold. ``protected`` is a field of the entities by
    which results are to be told apart."""

    path: str
    digest: str
    predicate: str | None = None
    folds: int = 0
    fold: int = 0
    protected: str | None = None


Data = DomainData | FileData


@dataclass(frozen=True)
class TrainSpec:
    """What is learned from. ``seeds`` are those of LPF's search, ``seed`` that of every other
    method. ``entities`` bounds the entities that are learned from; validation keeps its own."""

    data: Data
    seed: int = 1
    seeds: tuple[int, ...] = SEVEN_SEEDS
    entities: int | None = None

    @cached_property
    def key(self) -> str:
        return _key(self)


@dataclass(frozen=True)
class EvalSpec:
    """Who is asked about: the train_spec's own test entities, or ``entities`` new ones of a domain.
    Then what is done to their evidence: ``perturbation`` at a ``level``, and the best ``top_k``
    items kept."""

    data: DomainData | None = None
    entities: int = 0
    perturbation: str | None = None
    level: float = 0.0
    top_k: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", float(self.level))  # 1 and 1.0 must have one key


@dataclass(frozen=True)
class Cell:
    """``settings`` change the method: see ``variants``."""

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
    plain = _without_places(asdict(spec))
    text = json.dumps([GENERATION, plain], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _without_places(plain: object) -> object:
    """A file that was moved is the same file: its digest stands for it."""
    if isinstance(plain, dict):
        return {
            name: _without_places(inner)
            for name, inner in plain.items()
            if not (name == "path" and "digest" in plain)
        }
    return plain
