"""A reader without a network: features drawn from a hash of the text. Real as far as the seam
goes (deterministic, unit length, one row per item), and as fast as a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from lpf.reading.reader import Features, Progress, Reader, ReadRequest, as_requests


class HashReader(Reader):
    def __init__(self, width: int = 384) -> None:
        self._width = width

    @property
    def reader_id(self) -> str:
        return f"hash@{self._width}"

    @property
    def width(self) -> int:
        return self._width

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        rows = np.empty((len(requests), self._width), dtype=np.float32)
        for place, request in enumerate(requests):
            rows[place] = self._row(request.text)
            if progress is not None:
                progress(place + 1, len(requests))
        return rows

    def _row(self, text: str) -> Features:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        row = np.random.default_rng(seed).standard_normal(self._width)
        return (row / np.linalg.norm(row)).astype(np.float32)
