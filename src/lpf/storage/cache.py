"""Caches for computed numbers (features, posteriors, factors), stored as bytes.

Losing an entry costs only time, so a failing cache is skipped and the question is answered without
it. Erasure is different: ``forget`` and ``clear`` succeed or raise.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lpf.errors import ConfigError
from lpf.storage.values import without_password

__all__ = [
    "Cache",
    "CacheStats",
    "MemoryCache",
    "NoCache",
    "TieredCache",
    "open_cache",
]

DEFAULT_PREFIX = "lpf"
DEFAULT_TTL_SECONDS = 30 * 86_400
DEFAULT_TIMEOUT_SECONDS = 0.05


@dataclass(frozen=True)
class CacheStats:
    """Counts since the cache was opened. ``entries`` and ``bytes`` (an estimate of the memory
    used) are None if the cache does not count them. ``failures`` counts failed server calls."""

    kind: str
    hits: int
    misses: int
    entries: int | None = None
    bytes: int | None = None
    failures: int = 0


@runtime_checkable
class Cache(Protocol):
    """Values by (item, part). ``item`` is the 16-byte content key of a text with its claim;
    ``part`` says what was computed from it and includes everything else the value depends on."""

    def get_many(self, items: Sequence[bytes], part: bytes) -> list[bytes | None]:
        """One value per item, in order; None if it is not in the cache."""

    def put_many(self, items: Sequence[bytes], part: bytes, values: Sequence[bytes]) -> None:
        """Store one value per item, replacing old ones. They may be dropped at any time."""

    def forget(self, item: bytes) -> None:
        """Erase all parts of an item, and for a while refuse to store it again, since a question
        in progress could put it back. CacheUnavailableError if this cannot be guaranteed."""

    def clear(self) -> None:
        """Erase everything. CacheUnavailableError if this cannot be guaranteed."""

    def stats(self) -> CacheStats: ...

    def close(self) -> None:
        """Free memory and close connections. A shared cache keeps its content."""


DEFAULT_MAX_BYTES = 256 * 2**20
# Python's own overhead per entry, so that the limit is about real memory.
ITEM_OVERHEAD = 400
VALUE_OVERHEAD = 100
# This many erased items are remembered, because a question in progress could put them back.
REMEMBERED_ERASURES = 10_000


class MemoryCache:
    """The cache of one process, with least recently used items dropped first. All parts of an item
    are stored together, so that an item can be forgotten at once."""

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        if max_bytes <= 0:
            raise ConfigError(
                f"must be above 0, got {max_bytes}.",
                field="cache.max_bytes",
                hint="Use cache.url = 'off' for no cache.",
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


class NoCache:
    """A cache that stores nothing."""

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


class TieredCache:
    """A memory cache in front of a cache shared by all processes."""

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
        hits = {}
        for place, value in zip(places, fetched, strict=True):
            if value is not None:
                found[place] = hits[items[place]] = value
        self._put_in_memory(hits, part, erasures)
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

    def _put_in_memory(self, hits: dict[bytes, bytes], part: bytes, erasures: int) -> None:
        """Unless something was erased since the values were fetched: it may be one of them."""
        with self._lock:
            if hits and erasures == self._erasures:
                self._memory.put_many(list(hits), part, list(hits.values()))


_REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


def open_cache(
    url: str | None = None,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    prefix: str = DEFAULT_PREFIX,
    ttl_seconds: int | None = DEFAULT_TTL_SECONDS,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> Cache:
    """Open the cache for a URL: None or ``memory``, ``off``, or the address of a Redis server,
    which is used behind a memory cache. The last three arguments apply to Redis only."""
    if url is None or url == "memory":
        return MemoryCache(max_bytes)
    if url == "off":
        return NoCache()
    if url.startswith(_REDIS_SCHEMES):
        from lpf.storage.redis_cache import RedisCache

        shared = RedisCache(
            url, prefix=prefix, ttl_seconds=ttl_seconds, timeout_seconds=timeout_seconds
        )
        return TieredCache(MemoryCache(max_bytes), shared)
    raise ConfigError(
        "must be 'memory', 'off', or start with redis://, rediss:// or unix://, "
        f"got {without_password(url)}.",
        field="cache.url",
    )
