"""A cache that keeps nothing, for those who want every number computed anew."""

from __future__ import annotations

from collections.abc import Sequence

from lpf.storage.cache.interface import CacheStats


class NoCache:
    def __init__(self) -> None:
        self._misses = 0

    def get_many(self, items: Sequence[bytes], part: bytes) -> list[bytes | None]:
        self._misses += len(items)
        return [None] * len(items)

    def put_many(self, items: Sequence[bytes], part: bytes, values: Sequence[bytes]) -> None:
        pass

    def forget(self, item: bytes) -> None:
        pass

    def clear(self) -> None:
        pass

    def stats(self) -> CacheStats:
        return CacheStats(kind="off", hits=0, misses=self._misses)

    def close(self) -> None:
        pass
