"""What was made of the store's evidence, remembered as long as the evidence is the same."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

from lpf.storage.connections import register_fork_reset

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class VersionedCache(Generic[Key, Value]):
    """Values by key, all of one version of the evidence (see ``EvidenceStore.version``): a look
    with another one drops them all. What came first makes room for what is new."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._least = 0  # what was read at an earlier version may hold what was erased since
        # Replaced as one, so that a look needs no lock.
        self._state: tuple[int, dict[Key, Value]] = (0, {})
        self.reset_after_fork()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Called in the child of a fork too: the lock may be held by a thread that is not here."""
        self._lock = threading.Lock()

    def get(self, version: int | None, key: Key) -> Value | None:
        """None where there is nothing, or where ``version`` is none to remember things by."""
        known, values = self._state
        if known == version:
            return values.get(key)
        if version is not None:
            with self._lock:
                self._start(version)
        return None

    def put(self, version: int | None, key: Key, value: Value) -> None:
        """``version`` must have been looked up before the evidence was read: then a change that
        came between the two is one that the next look notices."""
        with self._lock:
            known, values = self._state
            if known == version and known >= self._least:
                if len(values) >= self._most:
                    del values[next(iter(values))]
                values[key] = value

    def forget_before(self, version: int) -> None:
        """What is of another version is dropped; of an earlier one nothing is taken any more,
        should it still be on its way."""
        with self._lock:
            self._least = max(self._least, version)
            self._start(version)

    def _start(self, version: int) -> None:
        """An earlier version than the known one is that of a store put back from a backup, or of a
        look that was overtaken by a later one, which costs no more than to work things out anew."""
        if version != self._state[0]:
            self._state = (version, {})
