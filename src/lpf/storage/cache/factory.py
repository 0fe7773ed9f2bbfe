"""Which cache an address means."""

from __future__ import annotations

from lpf.errors import ConfigError
from lpf.storage.cache.interface import Cache
from lpf.storage.cache.memory import DEFAULT_MAX_BYTES, MemoryCache
from lpf.storage.cache.off import NoCache
from lpf.storage.cache.shared import (
    DEFAULT_PREFIX,
    DEFAULT_TIMEOUT_SECONDS,
    DEFAULT_TTL_SECONDS,
    RedisCache,
)
from lpf.storage.cache.tiered import TieredCache

_REDIS = ("redis://", "rediss://", "unix://")


def open_cache(
    url: str | None = None,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    prefix: str = DEFAULT_PREFIX,
    ttl_seconds: int | None = DEFAULT_TTL_SECONDS,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> Cache:
    """``None`` or ``memory``, ``off``, or the address of a Redis, which then lies behind memory.
    ``prefix``, ``ttl_seconds`` and ``timeout_seconds`` are for Redis alone."""
    if url is None or url == "memory":
        return MemoryCache(max_bytes)
    if url == "off":
        return NoCache()
    if url.startswith(_REDIS):
        shared = RedisCache(
            url, prefix=prefix, ttl_seconds=ttl_seconds, timeout_seconds=timeout_seconds
        )
        return TieredCache(MemoryCache(max_bytes), shared)
    raise ConfigError(
        "cache.url: must be 'memory', 'off', or start with redis://, rediss:// or unix://, "
        f"got {url.partition('://')[0]!r}."
    )
