"""Folds of a few entities: each in turn is what the others' model is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpf.datasets import grouped_folds
from lpf.errors import DatasetError
from lpf.training.examples import Examples
from lpf.training.material import Rows, labelled_with

FOLDS = 5
FOLDS_SEED = 42

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Folded:
    """Entities to learn ``predicates`` from. DatasetError where a value has fewer than two."""

    examples: Examples
    predicates: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_two_each(self.examples, self.predicates)

    @cached_property
    def held(self) -> tuple[Places, ...]:
        """The entities of each fold, by the first predicate; those without a value of it are in
        the first fold."""
        dataset, name = self.examples.dataset, self.predicates[0]
        known = np.flatnonzero(dataset.labels(name) >= 0)
        part = dataset.select(known.tolist())
        groups = {entity.group_id or entity.entity_id for entity in part}
        least = int(np.bincount(part.labels(name)).min())
        count = max(2, min(FOLDS, least, len(groups)))
        first, *others = grouped_folds(part, name, count, FOLDS_SEED)
        rest = np.setdiff1d(np.arange(len(dataset)), known)
        return (np.concatenate([known[first], rest]), *(known[fold] for fold in others))

    @property
    def kept(self) -> tuple[Places, ...]:
        """The entities outside of each fold."""
        everybody = np.arange(len(self.examples.dataset))
        return tuple(np.setdiff1d(everybody, places) for places in self.held)

    @property
    def everything(self) -> Rows:
        return np.arange(len(self.examples.features))


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
