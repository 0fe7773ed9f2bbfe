"""The result of combining factors, and the plain average of factors.

The average is the fallback of Algorithm 5 (line 31) if the circuit does not cover a
predicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lpf.errors import EvidenceError, ImpossibleEvidenceError
from lpf.items import Segments
from lpf.types import FloatArray

Space = Literal["log", "probability"]


@dataclass(frozen=True, slots=True)
class Combined:
    """Answers for E entities.

    ``distribution`` [E, V]. In log space, ``base`` [E, V] plus the entity's ``contributions``
    [N, V] is the answer before normalising; in probability space they add up to the answer itself.
    ``parts`` holds what each item's contribution was computed from, [N] or [N, V] by name.
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
    ImpossibleEvidenceError if every value of an entity is ruled out."""
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
