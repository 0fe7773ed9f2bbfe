"""What a question is answered from."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.types import Float32Array, FloatArray


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The items of one question, best first: K of ``considered`` that were found.

    ``features`` are [K, width]; ``credibility`` [K] is NaN where unknown; ``timestamps`` are in
    microseconds. ``groups`` [K] number copies among these items, -1 for an item without any;
    ``sources`` [K] number sources, -1 for unknown. ``below_credibility`` were left out by the
    minimum, ``dated_later`` by their dates, ``cut`` by top_k.

    ``made`` is where others keep what they make of exactly these items, whenever these are asked
    for; it is dropped with what is remembered of the items themselves. ``scores`` [K] hang on the
    moment asked about, so nothing in ``made`` may be made of them.
    """

    row_ids: tuple[int, ...]
    ids: tuple[str, ...]
    content_keys: tuple[bytes, ...]
    commitments: tuple[bytes, ...]
    features: Float32Array
    credibility: FloatArray
    timestamps: tuple[int | None, ...]
    groups: NDArray[np.int64]
    sources: NDArray[np.int64]
    considered: int
    below_credibility: int
    dated_later: int
    cut: int
    made: dict[Hashable, Any]
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.ids)
