"""What a question comes with: evidence of one or many entities, and known facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lpf.combine.combined import Segments
from lpf.errors import EvidenceError
from lpf.types import Float32Array, FloatArray, KeyArray

GroupArray = NDArray[np.int64]


@dataclass(frozen=True)
class Items:
    """Evidence of one or many entities: ``features`` [N, width] and, where known, what goes with
    each item. ``keys`` are where its randomness comes from (see ``factors.keys``); ``credibility``
    is NaN where unknown; ``groups`` number copies and ``sources`` sources within an entity, -1 for
    none."""

    features: Float32Array
    ids: Sequence[str] = ()
    keys: KeyArray | None = None
    credibility: FloatArray | None = None
    groups: GroupArray | None = None
    sources: GroupArray | None = None
    segments: Segments | None = None

    def __post_init__(self) -> None:
        for name in ("keys", "credibility", "groups", "sources"):
            array = getattr(self, name)
            if array is not None and len(array) != len(self.features):
                raise EvidenceError(f"{name}: {len(array)} for {len(self.features)} items.")
        if self.credibility is not None and _outside_unit(self.credibility):
            raise EvidenceError("credibility: must lie in [0, 1] (NaN where unknown).")


@dataclass(frozen=True)
class Facts:
    """Known facts of one entity about other predicates: certain ones as values, others as
    likelihood vectors over the predicate's values."""

    hard: Mapping[str, str] = field(default_factory=dict)
    soft: Mapping[str, FloatArray] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.hard or self.soft)


def _outside_unit(credibility: FloatArray) -> bool:
    if not len(credibility):
        return False
    # fmin and fmax pass over NaN, which stands for unknown.
    return bool(np.fmin.reduce(credibility) < 0.0 or np.fmax.reduce(credibility) > 1.0)
