"""The plain average of the items' factors: what Algorithm 5 (line 31) falls back on where the
circuit does not cover a predicate."""

from __future__ import annotations

import numpy as np

from lpf.combine.combined import Combined, Segments
from lpf.errors import EvidenceError
from lpf.types import FloatArray


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
