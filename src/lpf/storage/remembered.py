"""What was made of the store's evidence, remembered as long as the evidence is the same."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """Values by key, all of one version of the evidence (see ``EvidenceStore.version``): a look
    with a later one drops them all. What came first makes room for what is new."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        # Replaced as one, so that a look needs no lock.
        self._state: tuple[int, dict[Key, Value]] = (0, {})

    def get(self, version: int | None, key: Key) -> Value | None:
        """None where there is nothing, or where ``version`` is none to remember things by."""
        known, values = self._state
        if known == version:
            return values.get(key)
        if version is not None:
            self.forget_before(version)
        return None

    def put(self, version: int | None, key: Key, value: Value) -> None:
        """``version`` must have been looked up before the evidence was read: then a change that
        came between the two is one that the next look notices."""
        with self._lock:
            known, values = self._state
            if known == version:
                if len(values) >= self._most:
                    del values[next(iter(values))]
                values[key] = value

    def forget_before(self, version: int) -> None:
        """What is of an earlier version is dropped, and not taken should it still be on its way."""
        with self._lock:
            if version > self._state[0]:
                self._state = (version, {})
