"""Shared by the tests of ingestion: a fast reader, a schema, and helpers that write files."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lpf.errors import EvidenceError
from lpf.reading.reader import Features, Progress, Reader, ReadRequest, as_requests
from lpf.schema import Predicate, Schema

LEVELS = Predicate("level", ("low", "medium", "high"))
SCHEMA = Schema((LEVELS, Predicate("outcome", ("clean", "qualified"))))
ONE_PREDICATE = Schema((LEVELS,))


class HashReader(Reader):
    """Unit vectors from a hash of text and claim: deterministic, with nothing to load."""

    def __init__(self, uses_claim: bool = False, unreadable: str = "UNREADABLE") -> None:
        self._uses_claim = uses_claim
        self._unreadable = unreadable
        self.texts_read = 0

    @property
    def reader_id(self) -> str:
        return "hash-8"

    @property
    def width(self) -> int:
        return 8

    @property
    def uses_claim(self) -> bool:
        return self._uses_claim

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        for number, request in enumerate(requests):
            if self._unreadable in request.text:
                raise EvidenceError("cannot be read.", field=f"items[{number}].text")
        self.texts_read += len(requests)
        rows = [_vector(f"{request.text}|{request.claim}") for request in requests]
        return np.stack(rows).astype(np.float32)


def _vector(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    drawn = np.random.default_rng(seed).standard_normal(8)
    return drawn / np.linalg.norm(drawn)


def row(**fields: object) -> dict:
    return {"entity_id": "C1", "predicate": "level", "text_content": "a text", **fields}


def numbered_rows(count: int, entities: int = 7) -> list[dict]:
    return [row(entity_id=f"C{n % entities}", text_content=f"text {n}") for n in range(count)]


def write_jsonl(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def write_csv(path: Path, rows: Sequence[dict]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
