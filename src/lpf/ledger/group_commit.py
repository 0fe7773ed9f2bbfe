"""Group commit: whoever comes while a commit is under way shares the next one.

A commit costs a wait for the disk, whatever it holds. The first caller to come leads: on its own
thread it commits all that is queued. Those who come meanwhile wait. The lead then goes from one to
the next, in the order they came: who was served takes his receipts and passes it on, who was not
commits all that is queued by then. A single caller thus never waits for another thread, and many
callers share one wait for the disk.

They are woken one by one because Python runs one at a time: woken together they would only fight
for the interpreter. And who is woken mostly comes back with his next record before he lets the
interpreter go, so that it is in the queue when the lead reaches those who were not served.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence

from lpf.errors import LedgerError
from lpf.ledger.records import Draft, Receipt

Commit = Callable[[Sequence[Draft]], list[Receipt]]

_UNKNOWN = LedgerError(
    "the thread that was writing was interrupted; whether the record was kept is not known. Look "
    "at the end of the ledger before repeating it."
)


class _Waiting:
    """One caller's drafts. Its lock is held until the lead comes to it."""

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
        # Those who were served are in it too, and first, until the lead has gone through them: one
        # that is interrupted leaves everybody where the lead finds them.
        self._queue: list[_Waiting] = []
        self._leader: _Waiting | None = None

    def submit(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Returns when ``drafts`` are on disk. An error of the shared transaction is raised in
        each caller that had a part in it."""
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
            self._leave(mine)  # does nothing, unless Ctrl-C came within the first
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
            waiting.error = _UNKNOWN  # which an interrupt leaves as it is
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
        """Each step may be repeated, and to give up the lead is the last: until the next has been
        woken, it is the leader's second call that wakes it."""
        with self._lock:
            if mine in self._queue:
                self._queue.remove(mine)
            if self._leader is mine:
                if self._queue:
                    self._queue[0].rouse()
                self._leader = self._queue[0] if self._queue else None
