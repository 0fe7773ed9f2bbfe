"""Group commit: whoever comes while a commit is under way shares the next one.

A commit costs a wait for the disk, whatever it holds. The first caller to come leads: on its own
thread it commits all that is queued. Those who come meanwhile wait; when the leader is done it
wakes those it served and makes the first in the queue the next leader. A single caller thus never
waits for another thread, and many callers share one wait for the disk.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence

from lpf.errors import LedgerError
from lpf.ledger.entries import Entry
from lpf.ledger.records import Receipt

# How often a leader gives way without anybody coming before it sets out.
_PATIENCE = 8

Commit = Callable[[Sequence[Entry]], list[Receipt]]


class _Waiting:
    """One caller's entries. Its lock is held until it is served or told to lead."""

    __slots__ = ("entries", "error", "receipts", "wake")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.receipts: list[Receipt] | None = None
        self.error: Exception | None = None
        self.wake = threading.Lock()
        self.wake.acquire()

    @property
    def is_served(self) -> bool:
        return self.receipts is not None or self.error is not None

    def rouse(self) -> None:
        """May be called again: nobody waits twice."""
        if self.wake.locked():
            self.wake.release()

    def outcome(self) -> list[Receipt]:
        if self.error is not None:
            # A copy: threads that raise one object would write into each other's traceback.
            raise copy.copy(self.error) from self.error
        assert self.receipts is not None
        return self.receipts


class GroupCommit:
    """``commit`` is only ever called by one thread at a time."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        # Holds the leader and its group too, until they are served: one that is interrupted before
        # it commits leaves everybody where the next leader finds them.
        self._queue: list[_Waiting] = []
        self._leader: _Waiting | None = None
        self._last_size = 1

    def submit(self, entries: Sequence[Entry]) -> list[Receipt]:
        """Returns when ``entries`` are on disk. An error of the shared transaction is raised in
        each caller that had a part in it."""
        mine = _Waiting(entries)
        try:
            try:
                if not self._is_to_lead(mine):
                    mine.wake.acquire()
                if not mine.is_served:
                    self._lead()
            finally:
                self._leave(mine)
        finally:
            self._leave(mine)  # does nothing, unless Ctrl-C came within the first
        return mine.outcome()

    def _is_to_lead(self, mine: _Waiting) -> bool:
        with self._lock:
            self._queue.append(mine)
            if self._leader is None:
                self._leader = mine
            return self._leader is mine

    def _lead(self) -> None:
        self._wait_for_company()
        with self._lock:
            group = self._queue.copy()
        self._last_size = len(group)
        self._serve(group)

    def _wait_for_company(self) -> None:
        """Those who were served together mostly come back together: a commit that set out with
        the first of them would leave the others to the next. Gives way as long as more come."""
        idle = 0
        while len(self._queue) < self._last_size and idle < _PATIENCE:
            queued = len(self._queue)
            time.sleep(0)
            idle = 0 if len(self._queue) > queued else idle + 1

    def _serve(self, group: list[_Waiting]) -> None:
        unknown = LedgerError(
            "the thread that was writing was interrupted; whether the record was kept is not "
            "known. Look at the end of the ledger before repeating it."
        )
        for waiting in group:
            waiting.error = unknown  # which an interrupt leaves as it is
        try:
            receipts = iter(self._commit([e for waiting in group for e in waiting.entries]))
        except Exception as error:
            for waiting in group:
                waiting.error = error
            return
        for waiting in group:
            waiting.receipts = [next(receipts) for _ in waiting.entries]
            waiting.error = None

    def _leave(self, mine: _Waiting) -> None:
        """Each step may be repeated, and the leader goes last: until all are awake, it is still
        the one whose next call wakes them."""
        with self._lock:
            if self._leader is mine:
                for waiting in self._queue:
                    if waiting.is_served:
                        waiting.rouse()
                left = [each for each in self._queue if not each.is_served and each is not mine]
                if left:
                    left[0].rouse()
                self._queue, self._leader = left, left[0] if left else None
            elif mine in self._queue:
                self._queue.remove(mine)
