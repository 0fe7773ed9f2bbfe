"""How sure a model's answers about held-out entities were, and whether they were right.

Stored with the model as one row per entity, from which the prediction set of any coverage and the
deferral of any risk are computed when a question is asked. ``training.held_out`` chooses the
entities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lpf.metrics.deferral import deferral_cutoff, nearest, smallest_risk
from lpf.metrics.groups import Groups, few_groups
from lpf.metrics.prediction_sets import cutoff, cutoffs_by_value, surprise
from lpf.model.config import HELD_OUT_COLUMNS
from lpf.model.layout import HELD_OUT
from lpf.types import Float32Array, FloatArray

# "apart": entities that were used for nothing else, so that what is said of coverage and risk holds
# exactly. "shared": entities that chose settings or parameters too, though with few of them the fit
# that answers does not know the entity; what is said holds about.
HeldOutKind = Literal["apart", "shared"]
MOST_NEAREST, FEWEST_NEAREST = 100, 20  # answers that are about as sure as one that is asked for


@dataclass(frozen=True, eq=False)
class HeldOutAnswers:
    """Answers about E held-out entities. ``labels`` and ``top`` [E] are the positions of the true
    and of the most probable value, ``label_surprise`` and ``top_surprise`` [E] their surprises (see
    ``metrics.prediction_sets``), ``groups`` [E] the numbers of the entities' groups, ``values`` how
    many values there are."""

    kind: HeldOutKind
    values: int
    labels: NDArray[np.intp]
    top: NDArray[np.intp]
    label_surprise: Float32Array
    top_surprise: Float32Array
    groups: Groups

    @classmethod
    def from_answers(
        cls, kind: HeldOutKind, distribution: FloatArray, labels: NDArray[np.intp], groups: Groups
    ) -> HeldOutAnswers:
        """From answers [E, V], the true values [E] and the groups [E]."""
        surprises, rows = surprise(distribution), np.arange(len(labels))
        top = distribution.argmax(axis=1)
        values = distribution.shape[1]
        return cls(kind, values, labels, top, surprises[rows, labels], surprises[rows, top], groups)

    @classmethod
    def of(
        cls, kind: HeldOutKind, values: int, tensors: Mapping[str, Float32Array], predicate: str
    ) -> HeldOutAnswers:
        labels, top, label_surprise, top_surprise, groups = tensors[f"{HELD_OUT}{predicate}"].T
        return cls(
            kind,
            values,
            labels.astype(np.intp),
            top.astype(np.intp),
            label_surprise,
            top_surprise,
            groups.astype(np.intp),
        )

    def tensors(self, predicate: str) -> dict[str, Float32Array]:
        columns = (self.labels, self.top, self.label_surprise, self.top_surprise, self.groups)
        assert len(columns) == HELD_OUT_COLUMNS
        stacked = np.stack([np.asarray(column, np.float32) for column in columns], axis=1)
        return {f"{HELD_OUT}{predicate}": np.ascontiguousarray(stacked)}

    def __len__(self) -> int:
        return len(self.labels)

    def __getstate__(self) -> dict[str, object]:
        """Without its caches, which cannot be pickled."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def right(self) -> NDArray[np.bool_]:
        """[E]."""
        return np.asarray(self.top == self.labels)

    @property
    def confidence(self) -> FloatArray:
        """The probability of each answer, [E]."""
        return np.exp(-np.asarray(self.top_surprise, np.float64))

    @cached_property
    def group_count(self) -> int:
        return len(np.unique(self.groups))

    @property
    def has_few_groups(self) -> bool:
        """True if what is said of coverage and risk may not hold for entities of another group."""
        return few_groups(self.groups.tolist()) is not None

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Which values any of the entities has, [V]."""
        return np.bincount(self.labels, minlength=self.values) > 0

    def cutoffs(self, coverage: float, by_value: bool) -> FloatArray:
        """The largest surprise that belongs to a set, for each value [V]. If groups are few, their
        entities count one by one: sets that hold for new groups would have all values."""
        return self._cutoffs(coverage, by_value)

    def deferral_cutoff(self, max_risk: float) -> float | None:
        """The surprise from which on answers are deferred; None if the risk cannot be kept."""
        return self._deferral_cutoff(max_risk)

    @cached_property
    def smallest_risk(self) -> float | None:
        """The smallest risk that can be kept; None if none can."""
        rows = self._independent
        return smallest_risk(self.top_surprise[rows], self.right[rows])

    def answered(self, cutoff: float) -> float:
        """The share of the entities whose answers are not deferred."""
        return float((self.top_surprise < cutoff).mean())

    @property
    def independent(self) -> int:
        """How many entities are independent of each other."""
        return len(self._independent)

    def nearest(self, surprise: float) -> tuple[int, int]:
        """(right, of how many) answers that were about as sure."""
        most = int(np.clip(len(self) // 5, FEWEST_NEAREST, MOST_NEAREST))
        return nearest(self.top_surprise, self.right, surprise, most)

    @cached_property
    def _independent(self) -> NDArray[np.intp]:
        """One entity of every group, the first (they are stored in random order); all, if groups
        are few."""
        if self.has_few_groups:
            return np.arange(len(self))
        return np.sort(np.unique(self.groups, return_index=True)[1])

    @cached_property
    def _cutoffs(self) -> Callable[[float, bool], FloatArray]:
        groups = None if self.has_few_groups else self.groups

        def make(coverage: float, by_value: bool) -> FloatArray:
            if by_value:
                return cutoffs_by_value(
                    self.label_surprise, self.labels, self.values, coverage, groups
                )
            return np.full(self.values, cutoff(self.label_surprise, coverage, groups))

        return lru_cache(maxsize=64)(make)

    @cached_property
    def _deferral_cutoff(self) -> Callable[[float], float | None]:
        rows = self._independent
        found = self.top_surprise[rows], self.right[rows]
        return lru_cache(maxsize=64)(lambda max_risk: deferral_cutoff(*found, max_risk))
