"""Workspaces and labelled files that a model can be trained on in a second.

Texts repeat a word of their value, and the reader sees nothing but words: what is learned is real,
and no sentence encoder runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lpf.reading.reader import Features, Progress, Reader, ReadRequest, as_requests

LEVELS = ("low", "medium", "high")
WIDTH = 16


class WordReader(Reader):
    """The mean of a direction for each word, drawn from its hash."""

    @property
    def reader_id(self) -> str:
        return f"words@{WIDTH}"

    @property
    def width(self) -> int:
        return WIDTH

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        rows = [
            np.mean([_direction(word) for word in one.text.split()], axis=0) for one in requests
        ]
        if progress is not None:
            progress(len(rows), len(rows))
        return np.array(rows, np.float32).reshape(len(rows), WIDTH)


def _direction(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(WIDTH)


def line(number: int, **changes: Any) -> dict[str, Any]:
    """One entity of a data set with two items; its value goes round with ``number``."""
    value = changes.get("label", LEVELS[number % len(LEVELS)])
    items = [
        {
            "evidence_id": f"C{number:04d}_E{place}",
            "text": f"{value} {value} word{number % 7} item{place}",
            "credibility": 0.9,
        }
        for place in (1, 2)
    ]
    return {"entity_id": f"C{number:04d}", "label": value, "evidence": items, **changes}


def lines(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [line(number, **changes) for number in range(count)]


def in_splits(given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two thirds in train, the rest halved, by blocks of three so that every value is in each."""
    names = ("train", "train", "train", "train", "validation", "test")
    return [{**one, "split": names[place // 3 % 6]} for place, one in enumerate(given)]


def write_lines(path: Path, given: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in given), encoding="utf-8")
    return path
