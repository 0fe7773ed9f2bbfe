"""Artificial answers to all cells of a study, without networks and of any quality."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lpf.evaluation.predictions import Costs, Predictions
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.specs import Cell, DomainData, EvalSpec, FileData

VALUES = ("low", "medium", "high")


@dataclass(frozen=True)
class Skill:
    """``signal`` is the distance of the truth from noise, ``sharpness`` the power that answers are
    raised to before a temperature is fitted; ``error`` is the error of a crashed run."""

    signal: float = 2.0
    sharpness: float = 1.0
    error: str | None = None


def keep_made(
    folder: Path,
    cells: Iterable[Cell],
    skill: Callable[[Cell], Skill] = lambda _: Skill(),
    entities: int = 60,
) -> None:
    store = ResultStore(folder)
    for cell in dict.fromkeys(cells):
        store.save(cell, made(cell, skill(cell), entities))


def made(cell: Cell, skill: Skill, entities: int = 60) -> Predictions:
    """The entities depend on the eval_spec alone. So does most of the noise: methods that read the
    same texts make the same errors."""
    asked = np.random.default_rng(zlib.crc32(repr(_who(cell)).encode()))
    own = np.random.default_rng(zlib.crc32(repr(_what(cell)).encode()))
    labels = asked.integers(len(VALUES), size=entities)
    noise = asked.normal(size=(entities, len(VALUES)))
    noise = noise + 0.1 * own.normal(size=noise.shape)
    scores = skill.signal * np.eye(len(VALUES))[labels] + noise
    broken = skill.error is not None
    return Predictions(
        raw=None if broken else _softmax(skill.sharpness * scores),
        tempered=None if broken else _softmax(scores),
        labels=labels,
        counts=np.full(entities, 5),
        credibility=asked.uniform(0.6, 1.0, size=entities),
        entity_ids=tuple(f"e{place}" for place in range(entities)),
        values=VALUES,
        temperature=None if broken else (float(np.log(skill.sharpness)), 0.0),
        costs=Costs(1.0, 2.0, 1000.0, 10_000, 100_000),
        error=skill.error,
    )


def _what(cell: Cell) -> Cell:
    """Where a file lies changes nothing. Not the cell's key: that changes with every generation of
    results, and the tests' answers should not."""
    data = cell.train_spec.data
    if isinstance(data, FileData):
        data = replace(data, path="")
    return replace(cell, train_spec=replace(cell.train_spec, data=data))


def _who(cell: Cell) -> tuple[DomainData | object, int]:
    """What was done to the evidence leaves the entities the same."""
    eval_spec = replace(cell.eval_spec, change=None, top_k=None)
    return (
        (cell.train_spec.data, 0)
        if eval_spec == EvalSpec()
        else (eval_spec.data, eval_spec.entities)
    )


def _softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
