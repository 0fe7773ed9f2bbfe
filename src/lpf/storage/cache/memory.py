"""The cache of one process: what was used longest ago makes room for what is new."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from lpf.errors import ConfigError
from lpf.storage.cache.interface import CacheStats

DEFAULT_MAX_BYTES = 256 * 2**20
# What Python itself takes beside the bytes kept, so that the limit is one of real memory.
ITEM_OVERHEAD = 400
VALUE_OVERHEAD = 100
# A question that was under way during an erasure must not put back what was erased.
REMEMBERED_ERASURES = 10_000


class MemoryCache:
    """All parts of an item lie together and age together, so that forgetting is one removal."""

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        if max_bytes <= 0:
            raise ConfigError(
                f"cache.max_bytes: must be above 0, got {max_bytes}; 'off' keeps nothing."
            )
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, dict[bytes, bytes]] = OrderedDict()
        self._lock = threading.Lock()
        self._forgotten: OrderedDict[bytes, None] = OrderedDict()
        self._count = self._bytes = self._hits = self._misses = 0

    def get_many(self, items: Sequence[bytes], part: bytes) -> list[bytes | None]:
        entries, found = self._entries, []
        with self._lock:
            for item in items:
                value = entries[item].get(part) if item in entries else None
                if value is not None:
                    entries.move_to_end(item)
                found.append(value)
            misses = found.count(None)
            self._misses += misses
            self._hits += len(found) - misses
        return found

    def put_many(self, items: Sequence[bytes], part: bytes, values: Sequence[bytes]) -> None:
        with self._lock:
            for item, value in zip(items, values, strict=True):
                if item not in self._forgotten:
                    self._put(item, part, value)
            while self._bytes > self._max_bytes:
                self._discount(self._entries.popitem(last=False)[1])

    def forget(self, item: bytes) -> None:
        with self._lock:
            self._forgotten[item] = None
            if len(self._forgotten) > REMEMBERED_ERASURES:
                self._forgotten.popitem(last=False)
            parts = self._entries.pop(item, None)
            if parts is not None:
                self._discount(parts)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._count = self._bytes = 0

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats("memory", self._hits, self._misses, self._count, self._bytes)

    def close(self) -> None:
        self.clear()

    def _put(self, item: bytes, part: bytes, value: bytes) -> None:
        parts = self._entries.get(item)
        if parts is None:
            parts = self._entries[item] = {}
            self._bytes += ITEM_OVERHEAD
        else:
            self._entries.move_to_end(item)
        replaced = parts.get(part)
        if replaced is None:
            self._count += 1
        else:
            self._bytes -= _cost(part, replaced)
        parts[part] = value
        self._bytes += _cost(part, value)

    def _discount(self, parts: dict[bytes, bytes]) -> None:
        self._count -= len(parts)
        self._bytes -= ITEM_OVERHEAD + sum(_cost(part, value) for part, value in parts.items())


def _cost(part: bytes, value: bytes) -> int:
    return len(part) + len(value) + VALUE_OVERHEAD
