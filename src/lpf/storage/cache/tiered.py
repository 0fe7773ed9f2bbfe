"""The memory of this process in front of what all processes share."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from lpf.storage.cache.interface import Cache, CacheStats


class TieredCache:
    def __init__(self, memory: Cache, shared: Cache) -> None:
        self._memory = memory
        self._shared = shared
        self._lock = threading.Lock()
        self._erasures = 0

    def get_many(self, items: Sequence[bytes], part: bytes) -> list[bytes | None]:
        found = self._memory.get_many(items, part)
        if None not in found:
            return found
        erasures = self._erasures
        places = [place for place, value in enumerate(found) if value is None]
        fetched = self._shared.get_many([items[place] for place in places], part)
        arrived = {}
        for place, value in zip(places, fetched, strict=True):
            if value is not None:
                found[place] = arrived[items[place]] = value
        self._remember(arrived, part, erasures)
        return found

    def put_many(self, items: Sequence[bytes], part: bytes, values: Sequence[bytes]) -> None:
        self._memory.put_many(items, part, values)
        self._shared.put_many(items, part, values)

    def forget(self, item: bytes) -> None:
        try:
            self._shared.forget(item)
        finally:
            with self._lock:
                self._erasures += 1
                self._memory.forget(item)

    def clear(self) -> None:
        try:
            self._shared.clear()
        finally:
            with self._lock:
                self._erasures += 1
                self._memory.clear()

    def stats(self) -> CacheStats:
        memory, shared = self._memory.stats(), self._shared.stats()
        return CacheStats(
            kind=f"{memory.kind}+{shared.kind}",
            hits=memory.hits + shared.hits,
            misses=shared.misses,
            entries=memory.entries,
            bytes=memory.bytes,
            failures=memory.failures + shared.failures,
        )

    def close(self) -> None:
        self._memory.close()
        self._shared.close()

    def _remember(self, arrived: dict[bytes, bytes], part: bytes, erasures: int) -> None:
        """A value that was on its way here while something was erased may be the erased one."""
        with self._lock:
            if arrived and erasures == self._erasures:
                self._memory.put_many(list(arrived), part, list(arrived.values()))
