"""A cache of what was computed from the store's evidence, valid until the evidence changes."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

from lpf.storage.connections import register_fork_reset

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class VersionedCache(Generic[Key, Value]):
    """Values by key, all of one version of the evidence (see ``EvidenceStore.version``). A look-up
    with another version drops them all. The oldest value makes room for a new one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._least = 0  # anything read at an earlier version may contain an item erased since
        # Replaced as a whole, so that a look-up needs no lock.
        self._state: tuple[int, dict[Key, Value]] = (0, {})
        self.reset_after_fork()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Also called in the child of a fork, where a thread that held the lock does not exist."""
        self._lock = threading.Lock()

    def get(self, version: int | None, key: Key) -> Value | None:
        """None if there is no value, or if ``version`` is None (nothing can be cached then)."""
        known, values = self._state
        if known == version:
            return values.get(key)
        if version is not None:
            with self._lock:
                self._start(version)
        return None

    def put(self, version: int | None, key: Key, value: Value) -> None:
        """``version`` must have been read before the evidence was: a change between the two then
        shows at the next look-up."""
        with self._lock:
            known, values = self._state
            if known == version and known >= self._least:
                if len(values) >= self._most:
                    del values[next(iter(values))]
                values[key] = value

    def forget_before(self, version: int) -> None:
        """Drop all values of other versions; ``put`` rejects values of earlier ones from now on."""
        with self._lock:
            self._least = max(self._least, version)
            self._start(version)

    def _start(self, version: int) -> None:
        """``version`` may also be earlier than the known one, if the store was restored from a
        backup or threads overtook each other. Then values are only computed again."""
        if version != self._state[0]:
            self._state = (version, {})
