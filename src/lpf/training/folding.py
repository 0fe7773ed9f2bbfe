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
