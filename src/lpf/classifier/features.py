"""From texts to features: the reader of a classifier, and a cache so that it reads a text once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

import numpy as np

from lpf.classifier.entities import Entity
from lpf.errors import ConfigError
from lpf.factors.keys import content_key
from lpf.reading import Reader, ReadRequest, open_reader
from lpf.types import Float32Array

CacheKey = tuple[str, bytes]

MAX_CACHED = 100_000  # texts: 150 MB of the default reader's features
DEFAULT_READER = "minilm"


class TextFeatureCache:
    """Features by reader, text and claim; the oldest are dropped first.

    A classifier shares its cache with its clones, so that cross-validation reads each text once.
    The texts themselves are not stored, and an unpickled cache is empty.
    """

    def __init__(self, max_cached: int = MAX_CACHED) -> None:
        self._max_cached = max_cached
        self._rows: dict[CacheKey, Float32Array] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[TextFeatureCache], tuple[int]]:
        return TextFeatureCache, (self._max_cached,)

    def features(self, reader: Reader, entities: Sequence[Entity]) -> Float32Array:
        """Features of all items, entity by entity, [N, width]. What a reader adds to those of its
        base is not stored: it takes little time."""
        if reader.base is not reader:
            return reader.extend(self.features(reader.base, entities), _requests(reader, entities))
        requests = _requests(reader, entities)
        keys = [
            (reader.reader_id, content_key(request.text, request.claim)) for request in requests
        ]
        with self._lock:
            rows = {key: self._rows[key] for key in keys if key in self._rows}
        missing = {k: one for k, one in zip(keys, requests, strict=True) if k not in rows}
        if missing:
            fresh = dict(zip(missing, reader.read_many(list(missing.values())), strict=True))
            self._add(fresh)
            rows |= fresh
        return np.array([rows[key] for key in keys], np.float32).reshape(-1, reader.width)

    def _add(self, fresh: dict[CacheKey, Float32Array]) -> None:
        with self._lock:
            # A view would keep the whole array that it was read in alive, so each row is copied.
            self._rows |= {key: row.copy() for key, row in fresh.items()}
            for key in list(self._rows)[: max(0, len(self._rows) - self._max_cached)]:
                del self._rows[key]


def _requests(reader: Reader, entities: Sequence[Entity]) -> list[ReadRequest]:
    return [
        ReadRequest(item.text_content, entity.claim if reader.uses_claim else None)
        for entity in entities
        for item in entity.evidence
    ]


def choose_reader(reader: str | Reader | None, with_claim: bool) -> Reader:
    """``reader`` itself, or the reader of that name, which is opened once per process. ConfigError
    if a given reader needs claims and there are none, or the other way round."""
    if isinstance(reader, str) or reader is None:
        return _open_once(reader or DEFAULT_READER, with_claim)
    if reader.uses_claim != with_claim:
        uses = "needs a claim" if reader.uses_claim else "does not read claims"
        raise ConfigError(
            f"{reader.reader_id} {uses}, which does not fit the entities. Nothing was read; give "
            "every entity a claim and a reader that uses it, or neither.",
            field="reader",
        )
    return reader


@lru_cache(maxsize=4)
def _open_once(name: str, with_claim: bool) -> Reader:
    return open_reader(name, with_claim=with_claim)
