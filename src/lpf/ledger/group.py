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
        self._queue: list[_Waiting] = []
        self._leader: _Waiting | None = None
        self._last_size = 1

    def submit(self, entries: Sequence[Entry]) -> list[Receipt]:
        """Returns when ``entries`` are on disk. An error of the shared transaction is raised in
        each caller that had a part in it."""
        mine = _Waiting(entries)
        with self._lock:
            self._queue.append(mine)
            leads = self._leader is None
            if leads:
                self._leader = mine
        if not leads:
            self._wait(mine)
        if not mine.is_served:
            self._lead()
        return mine.outcome()

    def _wait(self, mine: _Waiting) -> None:
        try:
            mine.wake.acquire()
        except BaseException:  # Ctrl-C: nobody must wait for a leader that went away
            with self._lock:
                if mine in self._queue:
                    self._queue.remove(mine)
                was_to_lead = self._leader is mine
            if was_to_lead:
                self._pass_on()
            raise

    def _lead(self) -> None:
        self._wait_for_company()
        with self._lock:
            group, self._queue = self._queue, []
        self._last_size = len(group)
        try:
            self._serve(group)
        finally:
            self._pass_on()
            for waiting in group:
                waiting.wake.release()

    def _wait_for_company(self) -> None:
        """Those who were served together mostly come back together: a commit that set out with
        the first of them would leave the others to the next. Gives way as long as more come."""
        idle = 0
        while len(self._queue) < self._last_size and idle < _PATIENCE:
            queued = len(self._queue)
            time.sleep(0)
            idle = 0 if len(self._queue) > queued else idle + 1

    def _serve(self, group: list[_Waiting]) -> None:
        try:
            receipts = iter(self._commit([e for waiting in group for e in waiting.entries]))
            for waiting in group:
                waiting.receipts = [next(receipts) for _ in waiting.entries]
        except Exception as error:
            for waiting in group:
                waiting.error = error
        except BaseException:
            for waiting in group:
                waiting.error = LedgerError(
                    "the thread that was writing was interrupted; whether the record was kept is "
                    "not known. Look at the end of the ledger before repeating it."
                )
            raise

    def _pass_on(self) -> None:
        with self._lock:
            self._leader = successor = self._queue[0] if self._queue else None
        if successor is not None:
            successor.wake.release()
