"""Validation entities seen with fewer items than they have.

A fit on whole entities alone cannot tell "each item is overconfident" from "the items share their
errors". Random subsets of every size can.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lpf.combine.combined import Segments

MAX_SIZES = 20  # of an entity with more items, that many sizes spread evenly from 1 to K


def draw_subsets(
    segments: Segments, generator: np.random.Generator
) -> tuple[NDArray[np.intp], Segments, NDArray[np.intp]]:
    """One random subset of every size of every entity.

    Returns the rows of all subsets in turn, their segments, and the entity of each subset.
    """
    rows: list[NDArray[np.intp]] = []
    owners: list[int] = []
    for entity, (start, count) in enumerate(
        zip(segments.offsets[:-1], segments.counts, strict=True)
    ):
        for size in _sizes(int(count)):
            rows.append(start + np.sort(generator.permutation(count)[:size]))
            owners.append(entity)
    counts = np.array([len(chosen) for chosen in rows], dtype=np.intp)
    flat = np.concatenate(rows) if rows else np.empty(0, dtype=np.intp)
    return flat.astype(np.intp), Segments.of_counts(counts), np.array(owners, dtype=np.intp)


def _sizes(count: int) -> NDArray[np.intp]:
    if count <= MAX_SIZES:
        return np.arange(1, count + 1)
    return np.unique(np.linspace(1, count, MAX_SIZES).round().astype(np.intp))
