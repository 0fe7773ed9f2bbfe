"""What every cache does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class CacheStats:
    """Counts since the cache was opened. ``entries`` and ``bytes`` are None where nobody counts
    them; ``bytes`` is about what the entries take in memory. A failure is a call that the server
    behind the cache did not answer as it should."""

    kind: str
    hits: int
    misses: int
    entries: int | None = None
    bytes: int | None = None
    failures: int = 0


@runtime_checkable
class Cache(Protocol):
    """Values by (item, part). ``item`` is the 16-byte content key of a text with its claim;
    ``part`` says what was computed from it and holds everything else that this depends on."""

    def get_many(self, items: Sequence[bytes], part: bytes) -> list[bytes | None]:
        """One value an item, in their order; None where nothing usable is kept."""

    def put_many(self, items: Sequence[bytes], part: bytes, values: Sequence[bytes]) -> None:
        """Keeps one value an item, in place of what was there. May forget it at any time."""

    def forget(self, item: bytes) -> None:
        """Erases all parts of the item, and keeps none of it for a while: a question that was
        under way could put it back. CacheUnavailableError where that cannot be assured."""

    def clear(self) -> None:
        """Erases everything. CacheUnavailableError where that cannot be assured."""

    def stats(self) -> CacheStats: ...

    def close(self) -> None:
        """Lets go of memory and connections. What others share stays."""
