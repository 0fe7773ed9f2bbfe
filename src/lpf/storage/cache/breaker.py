"""When to leave a server alone: one that is down must not add a timeout to every question."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

REST_SECONDS = 5.0


class Breaker:
    """Counts failures, says each kind of them once, and after an outage lets one caller a rest
    try whether the server is back."""

    def __init__(
        self,
        name: str,
        rest_seconds: float = REST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures = 0
        self._name = name
        self._rest_seconds = rest_seconds
        self._clock = clock
        self._resting_until: float | None = None
        self._said: set[type[Exception]] = set()
        self._lock = threading.Lock()

    def lets_through(self) -> bool:
        if self._resting_until is None:
            return True
        with self._lock:
            until, now = self._resting_until, self._clock()
            if until is None or now < until:
                return until is None
            self._resting_until = now + self._rest_seconds  # the others rest on meanwhile
            return True

    def succeeded(self) -> None:
        if self._resting_until is None:
            return
        with self._lock:
            self._resting_until = None
            self._said.clear()
        log.info("%s: answers again.", self._name)

    def failed(self, error: Exception, *, outage: bool) -> None:
        """``outage``: the server could not be reached at all, so the next call would fail too."""
        with self._lock:
            self.failures += 1
            if outage:
                self._resting_until = self._clock() + self._rest_seconds
            fresh = type(error) not in self._said
            self._said.add(type(error))
        if fresh:
            log.warning(
                "%s: the cache failed and is done without, questions take longer (%s: %s).",
                self._name,
                type(error).__name__,
                error,
            )
