"""Group commit: callers that arrive while a commit is running share the next one.

A commit costs one wait for the disk, however many records it holds. The first caller leads: on its
own thread it commits everything queued, while later callers wait. The lead then passes from caller
to caller in order of arrival. A caller whose records were committed returns its receipts; one whose
records were not commits everything queued by then. So a single caller never waits for another
thread, and many callers share one wait for the disk.

Callers are woken one by one because Python runs one thread at a time: woken together they would
compete for the interpreter. A woken caller usually returns with its next record before it yields
the interpreter, so that record is queued when the lead reaches the callers still waiting.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence

from lpf.errors import LedgerError
from lpf.ledger.records import Draft, Receipt

Commit = Callable[[Sequence[Draft]], list[Receipt]]

_UNKNOWN = LedgerError(
    "the thread that was writing was interrupted; it is not known whether the record was written. "
    "Look at the end of the ledger before repeating it."
)


class _Waiting:
    """One caller's drafts. Its lock is held until the lead reaches it."""

    __slots__ = ("drafts", "error", "receipts", "wake")

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self.drafts = drafts
        self.receipts: list[Receipt] | None = None
        self.error: Exception | None = None
        self.wake = threading.Lock()
        self.wake.acquire()

    @property
    def is_served(self) -> bool:
        return self.receipts is not None or self.error is not None

    def rouse(self) -> None:
        """Safe to call more than once."""
        if self.wake.locked():
            self.wake.release()

    def outcome(self) -> list[Receipt]:
        if self.error is not None:
            # A copy: threads that raise the same object would write into each other's traceback.
            raise copy.copy(self.error) from self.error
        assert self.receipts is not None
        return self.receipts


class GroupCommit:
    """``commit`` is only ever called by one thread at a time."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        # Served callers stay in it, at the front, until the lead has passed them: if one is
        # interrupted, the lead still finds all others.
        self._queue: list[_Waiting] = []
        self._leader: _Waiting | None = None

    def submit(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Returns when ``drafts`` are on disk. An error of the shared transaction is raised in
        every caller that had drafts in it."""
        mine = _Waiting(drafts)
        try:
            try:
                if not self._is_to_lead(mine):
                    mine.wake.acquire()
                if not mine.is_served:
                    self._serve()
            finally:
                self._leave(mine)
        finally:
            self._leave(mine)  # does nothing, unless Ctrl-C interrupted the first call
        return mine.outcome()

    def _is_to_lead(self, mine: _Waiting) -> bool:
        with self._lock:
            self._queue.append(mine)
            if self._leader is None:
                self._leader = mine
            return self._leader is mine

    def _serve(self) -> None:
        with self._lock:
            group = self._queue.copy()
        for waiting in group:
            waiting.error = _UNKNOWN  # remains if this thread is interrupted
        try:
            receipts = self._commit([draft for each in group for draft in each.drafts])
        except Exception as error:
            for waiting in group:
                waiting.error = error
            return
        first = 0
        for waiting in group:
            last = first + len(waiting.drafts)
            waiting.receipts, waiting.error = receipts[first:last], None
            first = last

    def _leave(self, mine: _Waiting) -> None:
        """Every step may be repeated, and passing on the lead is the last one: until the next
        caller has been woken, the leader's second call wakes it."""
        with self._lock:
            if mine in self._queue:
                self._queue.remove(mine)
            if self._leader is mine:
                if self._queue:
                    self._queue[0].rouse()
                self._leader = self._queue[0] if self._queue else None
