"""What every way of combining returns, and how items are laid out by entity.

Items of E entities lie one after the other in arrays of N rows; ``Segments`` says where each
entity's begin. One entity is the case E = 1, nothing else.

The plain average of the items' factors: what Algorithm 5 (line 31) falls back on where the
circuit does not cover a predicate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lpf.errors import EvidenceError, ImpossibleEvidenceError
from lpf.types import FloatArray

Space = Literal["log", "probability"]
_START = np.zeros(1, dtype=np.intp)


@dataclass(frozen=True)
class Segments:
    """Entity e owns the rows offsets[e] .. offsets[e+1]; an entity may own none."""

    offsets: NDArray[np.intp]

    @classmethod
    def of_counts(cls, counts: Sequence[int] | NDArray[np.intp]) -> Segments:
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.intp))

    @staticmethod
    @lru_cache(maxsize=256)
    def one(count: int) -> Segments:
        """All rows belong to one entity."""
        return Segments(np.array([0, count], dtype=np.intp))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> NDArray[np.intp]:
        """The entity of each row, [N]."""
        return np.repeat(np.arange(len(self)), self.counts)

    def sum(self, rows: FloatArray) -> FloatArray:
        """Sums [N, ...] by entity -> [E, ...]; zero where an entity owns no row.

        Always by ``reduceat``, whose order of adding does not depend on E: an answer made among
        many is recomputed alone to the last bit."""
        if len(self) == 1 and len(rows):
            return np.asarray(np.add.reduceat(rows, _START, axis=0))
        filled = np.flatnonzero(self.counts)
        total = np.zeros((len(self), *rows.shape[1:]))
        if len(filled):
            # reduceat would repeat a row for an empty segment, so only filled ones take part.
            total[filled] = np.add.reduceat(rows, self.offsets[filled], axis=0)
        return total

    def check(self, count: int) -> None:
        """Refuses segments that do not cover ``count`` items one after the other."""
        if self.offsets[0] != 0 or (len(self) > 1 and bool((np.diff(self.offsets) < 0).any())):
            raise EvidenceError("segments must start at 0 and never fall.")
        if int(self.offsets[-1]) != count:
            raise EvidenceError(f"segments cover {int(self.offsets[-1])} items of {count}.")


@dataclass(frozen=True, slots=True)
class Combined:
    """Answers for E entities.

    ``distribution`` [E, V]. In log space, ``base`` [E, V] plus the entity's ``contributions``
    [N, V] is the answer before normalising; in probability space they add up to the answer itself.
    ``parts`` holds what each item's contribution was made of, [N] or [N, V] by name.
    """

    distribution: FloatArray
    base: FloatArray
    contributions: FloatArray
    segments: Segments
    space: Space = "log"
    parts: Mapping[str, FloatArray] = field(default_factory=dict)

    @property
    def log_evidence(self) -> FloatArray:
        """The logarithm of what was divided out, [E]; zero in probability space."""
        if self.space == "probability":
            return np.zeros(len(self.segments))
        scores = self.base + self.segments.sum(self.contributions)
        return np.asarray(np.logaddexp.reduce(scores, axis=1))


def normalised(
    log_prior: FloatArray,
    contributions: FloatArray,
    segments: Segments,
    parts: Mapping[str, FloatArray],
) -> Combined:
    """Adds up in log space and normalises; ``log_prior`` is [V] for all or [E, V].
    ImpossibleEvidenceError where nothing is left."""
    base = _one_row_each(log_prior, len(segments))
    scores = base + segments.sum(contributions)
    top = np.maximum.reduce(scores, axis=1, keepdims=True)
    if not np.minimum.reduce(top, axis=None, initial=np.inf) > -np.inf:
        _refuse(top[:, 0])
    weights = np.exp(scores - top)
    total = np.add.reduce(weights, axis=1, keepdims=True)
    return Combined(weights / total, base, contributions, segments, "log", parts)


def _one_row_each(log_prior: FloatArray, entities: int) -> FloatArray:
    if log_prior.ndim == 2:
        return log_prior
    return log_prior[None] if entities == 1 else np.tile(log_prior, (entities, 1))


def _refuse(top: FloatArray) -> None:
    rows = np.flatnonzero(~np.isfinite(top))
    raise ImpossibleEvidenceError(
        f"entities at positions {rows[:10].tolist()} ({len(rows)} in all): evidence and known "
        "facts rule out every value. Nothing was answered; look for a factor with a zero and a "
        "fact that contradict each other."
    )


def combine_average(potential: FloatArray, segments: Segments) -> Combined:
    """Each item contributes Φᵢ/K; the contributions add up to the answer in probability space."""
    segments.check(len(potential))
    if (segments.counts == 0).any():
        empty = np.flatnonzero(segments.counts == 0)[:10].tolist()
        raise EvidenceError(f"entities at positions {empty} have no item to average.")
    contributions = potential / segments.counts[segments.owner][:, None]
    distribution = segments.sum(contributions)
    nothing = np.zeros_like(distribution)
    return Combined(distribution, nothing, contributions, segments, "probability")
