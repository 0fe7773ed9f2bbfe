"""Placing groups into parts of stated shares, for every value at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def placed_groups(
    counts: NDArray[np.int64], shares: Sequence[float], generator: np.random.Generator
) -> NDArray[np.intp]:
    """The part of each group, [G], for the number of entities it has of each value, [G, V].

    The largest groups are placed first, equal ones in random order, each into the part that brings

        Σ_parts Σ_values (wanted - placed)² / share

    down most, of those parts that have room for it or else the most room. Plain Python numbers are
    alike on every machine, so that no near tie falls another way elsewhere.
    """
    order = generator.permutation(len(counts))
    order = order[np.argsort(-counts.sum(axis=1)[order], kind="stable")]
    parts = [part for part, share in enumerate(shares) if share > 0]
    totals = counts.sum(axis=0).tolist()
    wanted = [[share * total for total in totals] for share in shares]
    room = rounded_shares(sum(totals), shares)
    placed = np.empty(len(counts), dtype=np.intp)
    rows = counts.tolist()
    for group in order.tolist():
        row = rows[group]
        size = sum(row)
        least = min(size, max(room[part] for part in parts))
        roomy = [part for part in parts if room[part] >= least]
        best = max(roomy, key=lambda part: _gain(row, wanted[part]) / shares[part])
        placed[group] = best
        room[best] -= size
        wanted[best] = [want - count for want, count in zip(wanted[best], row, strict=True)]
    return placed


def rounded_shares(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers that sum to ``total``, by largest remainder."""
    exact = [share * total for share in shares]
    whole = [math.floor(number) for number in exact]
    by_remainder = sorted(range(len(shares)), key=lambda part: whole[part] - exact[part])
    for part in by_remainder[: total - sum(whole)]:
        whole[part] += 1
    return whole


def _gain(row: Sequence[int], wanted: Sequence[float]) -> float:
    """How much Σ wanted² falls where ``row`` is taken from ``wanted``."""
    return math.fsum(
        count * (2.0 * want - count) for count, want in zip(row, wanted, strict=True) if count
    )
