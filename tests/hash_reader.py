"""Readers without a network. Features are drawn from a hash of the text: real as far as the seam
goes (deterministic, unit length, one row per item), and as fast as a hash. Stances follow from a
word of the text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from lpf.reading.reader import Features, Progress, Reader, ReadRequest, as_requests
from lpf.reading.stance import HIDDEN_WIDTH, STANCE_WIDTH

# Logits of supports, refutes and neutral.
CUES = {"indeed": (4.0, 0.0, -1.0), "never": (0.0, 4.0, -1.0)}
NO_CUE = (0.0, 0.0, 3.0)


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


class CueReader(Reader):
    """In place of the stance reader: a text that says "indeed" supports its claim, one that says
    "never" refutes it, any other is neutral. The hidden vector is 0."""

    @property
    def reader_id(self) -> str:
        return "cue"

    @property
    def width(self) -> int:
        return STANCE_WIDTH

    @property
    def uses_claim(self) -> bool:
        return True

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        rows = np.zeros((len(requests), STANCE_WIDTH), dtype=np.float32)
        for row, request in zip(rows, requests, strict=True):
            if request.claim is not None:
                cues = [CUES[word] for word in request.text.split() if word in CUES]
                row[HIDDEN_WIDTH:] = cues[0] if cues else NO_CUE
        return rows
