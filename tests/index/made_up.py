"""A helper that fills a store in one line, and a reader of artificial texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lpf.reading.reader import Features, Progress, Reader, ReadRequest, as_requests
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore, NewEvidence
from lpf.storage.values import to_micros
from lpf.types import Evidence

WIDTH = 8
NOW = datetime(2026, 1, 1, tzinfo=UTC)
AS_OF = to_micros(NOW)


class MadeUpReader(Reader):
    """A unit vector drawn from the text's hash, so equal texts are equal and others are not."""

    def __init__(self, name: str = "made-up", width: int = WIDTH) -> None:
        self._name, self._width, self.texts_read = name, width, 0

    @property
    def reader_id(self) -> str:
        return self._name

    @property
    def width(self) -> int:
        return self._width

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        self.texts_read += len(requests)
        return np.stack([self._vector(request.text) for request in requests])

    def _vector(self, text: str) -> Features:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).normal(size=self._width).astype(np.float32)
        return vector / np.linalg.norm(vector)


def unit_vectors(count: int, width: int, seed: int = 0, clusters: int = 0) -> Features:
    """Random directions, around ``clusters`` centres where given, as texts on topics would be."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, width))
    if clusters:
        centres = random.normal(size=(clusters, width))
        vectors = centres[random.integers(clusters, size=count)] + 0.5 * vectors
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


class Filled:
    """A store and a short way of putting items into it."""

    def __init__(self, database: Database) -> None:
        self.store = EvidenceStore(database)

    def add(
        self,
        *evidence_ids: str,
        reader: Reader | None = None,
        vectors: Any = None,
        width: int = WIDTH,
        **fields: Any,
    ) -> None:
        """Items of entity E and predicate p, read by ``reader``, or with ``vectors`` given to the
        reader "made-up", or without any."""
        common = {"entity_id": "E", "predicate": "p", **fields}
        items = [
            Evidence(name, **{"text_content": f"text of {name}", **common}) for name in evidence_ids
        ]
        if reader is not None:
            requests = [ReadRequest(item.text_content, item.claim) for item in items]
            vectors, width = reader.read_many(requests), reader.width
        name = reader.reader_id if reader is not None else "made-up"
        number = None if vectors is None else self.store.reader_number(name, width)
        features = None if vectors is None else np.asarray(vectors, np.float32)
        self.store.add([new(item) for item in items], features, number)


def new(item: Evidence) -> NewEvidence:
    key = hashlib.sha256(f"{item.text_content}|{item.claim}".encode()).digest()[:16]
    return NewEvidence(item, key, hashlib.sha256(repr(item).encode()).digest())
