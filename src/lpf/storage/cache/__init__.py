"""What was computed and can be computed again: features, posteriors, factors, as bytes.

Losing any of it costs time and nothing else, so a cache that fails is left aside and a question is
answered without it. Only an erasure insists: ``forget`` and ``clear`` succeed or say that they did
not.
"""

from __future__ import annotations

from lpf.storage.cache.factory import open_cache
from lpf.storage.cache.interface import Cache, CacheStats
from lpf.storage.cache.memory import MemoryCache
from lpf.storage.cache.off import NoCache
from lpf.storage.cache.shared import RedisCache
from lpf.storage.cache.tiered import TieredCache

__all__ = [
    "Cache",
    "CacheStats",
    "MemoryCache",
    "NoCache",
    "RedisCache",
    "TieredCache",
    "open_cache",
]
