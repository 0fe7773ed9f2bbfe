"""The memory that recording uses."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from lpf.items import Items
from lpf.orchestrator.recording import INLINE_ITEMS, Context, draft_of
from lpf.results import QueryResult
from lpf.types import QueryOptions

VALUES = ("low", "high")


def result_of(items: int, seed: int) -> QueryResult:
    random = np.random.default_rng(seed)
    ones, numbers = np.ones(items), np.arange(items)
    used = Items(
        np.zeros((items, 1), np.float32),
        tuple(f"{seed}_E{number}" for number in range(items)),
        commitments=tuple(random.bytes(32) for _ in range(items)),
        credibility=ones,
        groups=numbers,
        sources=numbers,
        scores=ones,
        considered=items,
        weight=ones,
        potential=random.random((items, len(VALUES))),
        mean_sigma=random.random(items),
    )
    asked = QueryOptions()
    return QueryResult(
        "E", "level", VALUES, [0.5, 0.5], "inference", "spn", asked, 1, 1, evidence=used
    )


@pytest.mark.parametrize(
    ("items", "count", "most_bytes"), [(500, 20, 100_000), (INLINE_ITEMS, 1500, 7_000_000)]
)
def test_recording_uses_little_memory(items: int, count: int, most_bytes: int) -> None:
    context = Context({})
    draft_of(result_of(items, count), context)
    tracemalloc.start()
    try:
        for seed in range(count):
            draft_of(result_of(items, seed), context)
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < most_bytes
