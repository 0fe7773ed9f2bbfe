"""An entity's items combined again: all, some of them, or with other weights.

Everything that an answer was computed from is at hand, in a live answer as in a record, so that
"what if this item were not there" needs neither model nor store. Groups of copies, familiarity and
relevance stay as they were found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lpf.combine.combined import Combined, combine_average
from lpf.combine.occurrence import LEAST, cases_of, log_absent
from lpf.combine.paper import combine_paper
from lpf.combine.robust import RobustParameters, combine_robust, log_likelihood_ratios
from lpf.items import GroupArray, Segments
from lpf.types import LOG_EPSILON, FloatArray

Places = NDArray[np.intp]
BLOCK_ROWS = 200_000  # items that are combined together, over all selections


class Recombination(Protocol):
    """``answers`` [S, V] from the items at each of S selections, and ``without_each`` [K, V] from
    all items but one. An empty selection gives the answer without evidence."""

    def answers(self, selections: Sequence[Places]) -> FloatArray: ...

    def without_each(self) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class RobustItems:
    """The K items of a robust answer: ``potential`` [K, V] at the fitted temperature, the others as
    ``combine_robust`` takes them. ``log_prior`` [V] is what they multiply, and ``alone`` [V] the
    logarithm of the answer without any item."""

    potential: FloatArray
    credibility: FloatArray
    shares: FloatArray
    log_prior: FloatArray
    alone: FloatArray
    parameters: RobustParameters
    groups: GroupArray | None = None
    sources: GroupArray | None = None
    familiarity: FloatArray | None = None
    relevance: FloatArray | None = None
    silent: FloatArray | None = None
    stances: FloatArray | None = None
    ratios: FloatArray | None = None

    def answers(self, selections: Sequence[Places]) -> FloatArray:
        return in_blocks(selections, self.alone, self._some)

    def weighted(self, weights: FloatArray) -> FloatArray:
        """The answer [V] if each item counts ``weights`` [K] times as much as it did."""
        given = np.ones(len(self.potential)) if self.familiarity is None else self.familiarity
        changed = replace(self, familiarity=given * weights)
        return np.asarray(changed.answers([np.arange(len(self.potential))])[0])

    def combined(self) -> Combined:
        """All items, with what each contributes."""
        everyone = np.arange(len(self.potential))
        return self._combine(everyone, Segments.one(len(everyone)))

    @property
    def copy_counts(self) -> Places:
        """The size of each item's group of copies, 1 without copies, [K]."""
        return np.asarray(np.bincount(self._copies)[self._copies])

    def _some(self, rows: Places, segments: Segments) -> FloatArray:
        return self._combine(rows, segments).distribution

    def _combine(self, rows: Places, segments: Segments) -> Combined:
        return combine_robust(
            self.potential[rows],
            self.credibility[rows],
            self.shares,
            np.tile(self.log_prior, (len(segments), 1)),
            segments,
            self.parameters,
            None if self.groups is None else self.groups[rows],
            None if self.sources is None else self.sources[rows],
            None if self.familiarity is None else self.familiarity[rows],
            None if self.relevance is None else self.relevance[rows],
            self.silent,
            None if self.stances is None else self.stances[rows],
            self.ratios,
        )

    def without_each(self) -> FloatArray:
        """In time proportional to K: all that items share are sums, from which one item's term is
        taken away."""
        ratio = self._log_ratio
        if self._has_source_switch or not np.isfinite(ratio).all():
            return self.answers(_all_but_one(len(self.potential)))
        familiar = np.ones(len(ratio)) if self.familiarity is None else self.familiarity
        said = familiar if self.relevance is None else familiar * self.relevance
        total = self._sums_without(said)
        scale = 1.0 / (1.0 + np.maximum(total - 1.0, 0.0) * self.parameters.rho)
        scores = scale[:, None] * self._sums_without(said[:, None] * ratio)
        if self.silent is not None and self.relevance is not None:
            quiet = self._sums_without(familiar * (1.0 - self.relevance))
            unused = np.where(quiet > 0.0, np.maximum(1.0 - scale * total, 0.0), 0.0)
            scores = scores + unused[:, None] * np.log(self.silent / self.shares)
        if self.stances is not None and self.ratios is not None:
            logs = log_absent(self.stances, np.ones(len(ratio)))
            absent = np.exp(self._sums_without(familiar[:, None] * logs))
            scores = scores + _log_occurrence(absent, self._sums_without(familiar), self.ratios)
        scores = self.log_prior + self.parameters.trust * scores
        if len(ratio) == 1:
            scores = self.alone[None]
        return normalised_rows(scores)

    def _sums_without(self, terms: FloatArray) -> FloatArray:
        """For each item the sum over all others of ``terms`` [K, ...], each divided by the number
        of copies of its item that are left."""
        copies = self._copies
        sizes = np.bincount(copies)[copies].astype(np.float64)
        if (sizes == 1.0).all():
            return np.asarray(terms.sum(axis=0) - terms)
        widen = (slice(None), *(None,) * (terms.ndim - 1))
        shared = terms / sizes[widen]
        of_group = np.zeros((int(copies.max()) + 1, *terms.shape[1:]))
        np.add.at(of_group, copies, terms)
        left = of_group[copies] - terms  # of the item's own group
        own = left / np.maximum(sizes - 1.0, 1.0)[widen]
        others = shared.sum(axis=0) - of_group[copies] / sizes[widen]
        return np.asarray(others + np.where((sizes > 1.0)[widen], own, 0.0))

    @cached_property
    def _copies(self) -> Places:
        """The group of each item; an item without copies is a group of its own."""
        count = len(self.potential)
        if self.groups is None:
            return np.arange(count)
        names = np.where(self.groups >= 0, self.groups, np.arange(count) + count)
        return np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.intp)

    @cached_property
    def _log_ratio(self) -> FloatArray:
        """log λᵢ; 0 for an item that does not count at all."""
        epsilon = self.parameters.item_epsilon(self.credibility)
        rows = log_likelihood_ratios(self.potential, epsilon, self.shares)
        counts = np.ones(len(rows)) if self.familiarity is None else self.familiarity
        counts = counts if self.relevance is None else counts * self.relevance
        return np.where((counts <= 0.0)[:, None], 0.0, rows)

    @property
    def _has_source_switch(self) -> bool:
        return self.sources is not None and self.parameters.source_epsilon > 0.0


@dataclass(frozen=True, eq=False)
class PaperItems:
    """The K items of an answer in paper mode: ``potential`` [K, V] and ``weight`` [K]."""

    potential: FloatArray
    weight: FloatArray
    log_prior: FloatArray
    alone: FloatArray

    def answers(self, selections: Sequence[Places]) -> FloatArray:
        return in_blocks(selections, self.alone, self._some)

    def weighted(self, weights: FloatArray) -> FloatArray:
        changed = replace(self, weight=self.weight * weights)
        return np.asarray(changed.answers([np.arange(len(self.weight))])[0])

    def _some(self, rows: Places, segments: Segments) -> FloatArray:
        base = np.tile(self.log_prior, (len(segments), 1))
        return combine_paper(self.potential[rows], self.weight[rows], base, segments).distribution

    def without_each(self) -> FloatArray:
        terms = self.weight[:, None] * np.log(self.potential + LOG_EPSILON)
        if len(terms) == 1:
            return np.asarray(np.exp(self.alone)[None])
        return normalised_rows(self.log_prior + terms.sum(axis=0) - terms)


@dataclass(frozen=True, eq=False)
class AveragedItems:
    """The K items of an answer that is the mean of their factors ``potential`` [K, V]."""

    potential: FloatArray
    alone: FloatArray

    def answers(self, selections: Sequence[Places]) -> FloatArray:
        return in_blocks(selections, self.alone, self._some)

    def weighted(self, weights: FloatArray) -> FloatArray:
        if not weights.any():
            return np.asarray(np.exp(self.alone))
        return np.asarray(weights @ self.potential / weights.sum())

    def _some(self, rows: Places, segments: Segments) -> FloatArray:
        return combine_average(self.potential[rows], segments).distribution

    def without_each(self) -> FloatArray:
        if len(self.potential) == 1:
            return np.asarray(np.exp(self.alone)[None])
        others = self.potential.sum(axis=0) - self.potential
        return np.asarray(others / (len(self.potential) - 1))


def in_blocks(
    selections: Sequence[Places],
    alone: FloatArray,
    combine: Callable[[Places, Segments], FloatArray],
) -> FloatArray:
    """Answers [S, V] to ``selections``, of which as many are combined together as memory allows;
    ``alone`` [V] is the logarithm of the answer to an empty one."""
    counts = np.array([len(rows) for rows in selections], dtype=np.intp)
    found = np.tile(np.exp(alone), (len(selections), 1))
    filled = np.flatnonzero(counts)
    blocks = np.cumsum(counts[filled]) // BLOCK_ROWS
    for block in np.unique(blocks):
        places = filled[blocks == block]
        rows = np.concatenate([selections[place] for place in places])
        found[places] = combine(rows, Segments.of_counts(counts[places]))
    return found


def normalised_rows(scores: FloatArray) -> FloatArray:
    """Logarithms [S, V], up to a constant in each row, to distributions."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _all_but_one(count: int) -> list[Places]:
    everyone = np.arange(count)
    return [np.delete(everyone, place) for place in range(count)]


def _log_occurrence(absent: FloatArray, counted: FloatArray, ratios: FloatArray) -> FloatArray:
    """log Λ [K, V] from the chances ``absent`` [K, 3] that no item takes a stance; 0 where nothing
    is counted."""
    likelihood = cases_of(absent) @ ratios
    return np.where((counted > 0.0)[:, None], np.log(np.maximum(likelihood, LEAST)), 0.0)
