"""Texts to features, each text once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

import numpy as np

from lpf.classifier.entities import Entity
from lpf.errors import ConfigError, EvidenceError
from lpf.factors.keys import content_key
from lpf.reading import Reader, ReadRequest, open_reader
from lpf.types import Float32Array

Key = tuple[str, bytes]

MOST_KEPT = 100_000  # texts: 150 MB of the default reader's features
DEFAULT_READER = "minilm"


class Memory:
    """Features of texts read before, by what they depend on; the oldest go first. A classifier
    shares it with its clones, so that cross-validation reads each text once. Texts are not kept,
    and a pickled memory comes back empty."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._rows: dict[Key, Float32Array] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> tuple[type[Memory], tuple[int]]:
        return Memory, (self._most,)

    def features(self, reader: Reader, entities: Sequence[Entity]) -> Float32Array:
        """Of all items, entity by entity, [N, width]."""
        requests = _requests(reader, entities)
        keys = [(reader.reader_id, content_key(one.text, one.claim)) for one in requests]
        with self._lock:
            rows = {key: self._rows[key] for key in keys if key in self._rows}
        missing = {k: one for k, one in zip(keys, requests, strict=True) if k not in rows}
        if missing:
            fresh = dict(zip(missing, reader.read_many(list(missing.values())), strict=True))
            self._keep(fresh)
            rows |= fresh
        return np.array([rows[key] for key in keys], np.float32).reshape(-1, reader.width)

    def _keep(self, fresh: dict[Key, Float32Array]) -> None:
        with self._lock:
            # A row alone: a view would hold on to all that was read with it.
            self._rows |= {key: row.copy() for key, row in fresh.items()}
            for key in list(self._rows)[: max(0, len(self._rows) - self._most)]:
                del self._rows[key]


def choose_reader(reader: str | Reader | None, with_claim: bool) -> Reader:
    """The reader itself where one is given, else the one of that name, opened once a process."""
    if isinstance(reader, str) or reader is None:
        return _opened(reader or DEFAULT_READER, with_claim)
    if reader.uses_claim != with_claim:
        uses = "needs a claim" if reader.uses_claim else "does not read claims"
        raise ConfigError(
            f"reader: {reader.reader_id} {uses}, which does not fit the entities. Nothing was "
            "read; give every entity a claim and a reader that uses it, or neither."
        )
    return reader


def claims_in(entities: Sequence[Entity], name: str = "X") -> bool:
    """Whether these entities are to be read against claims. EvidenceError where only some with
    evidence have one."""
    claimed = [e.claim is not None for e in entities if e.evidence]
    if any(claimed) and not all(claimed):
        raise EvidenceError(
            f"{name}: {claimed.count(False)} of {len(claimed)} entities with evidence have no "
            "claim. Nothing was read; give every entity a claim, or none."
        )
    return any(claimed)


def _requests(reader: Reader, entities: Sequence[Entity]) -> list[ReadRequest]:
    return [
        ReadRequest(item.text_content, entity.claim if reader.uses_claim else None)
        for entity in entities
        for item in entity.evidence
    ]


@lru_cache(maxsize=4)
def _opened(name: str, with_claim: bool) -> Reader:
    return open_reader(name, with_claim=with_claim)
