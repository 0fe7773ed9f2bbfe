"""Records that may be written a moment later: the caller pays for a look at a queue, no more.

What is put here is lost when the process dies within the window; ``flush`` and ``close`` wait for
all of it. A failure is never swallowed: the next call of any kind raises it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from lpf.errors import LedgerError
from lpf.ledger.entries import Entry
from lpf.ledger.records import Draft

WINDOW_SECONDS = 0.02
MOST_WAITING = 100_000
MakeDraft = Callable[[], Draft]


class Later:
    """One background thread that turns what is queued into groups of records."""

    def __init__(
        self, make_entry: Callable[[Draft], Entry], submit: Callable[[Sequence[Entry]], object]
    ) -> None:
        self._make_entry = make_entry
        self._submit = submit
        self._queue: deque[MakeDraft] = deque()
        self._under_way = 0
        self._failures: list[Exception] = []
        self._idle = True
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._done = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def pending(self) -> int:
        return len(self._queue) + self._under_way

    def put(self, make_draft: MakeDraft) -> None:
        """Waits only where far too much is queued already."""
        if self._failures or self._closed:
            self._refuse()
        self._queue.append(make_draft)
        # In this order: the thread declares itself idle before it looks at the queue, so either it
        # sees what was put or this sees that it is idle.
        if self._idle:
            self._rouse()
        if len(self._queue) > MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Returns when all that was put is on disk; LedgerError if some of it cannot be."""
        self._hurry.set()
        with self._done:
            self._done.wait_for(lambda: self.pending == 0)
        self._hurry.clear()
        self._raise_failures()

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._hurry.set()
            self._wake.set()
            self._thread.join()
        self._raise_failures()

    def _rouse(self) -> None:
        with self._done:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="lpf-ledger", daemon=True)
                self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        while True:
            self._idle = True
            if not self._queue:
                if self._closed:
                    return
                self._wake.wait()
            self._idle = False
            self._wake.clear()
            if not self._closed:
                self._hurry.wait(WINDOW_SECONDS)
            self._write(len(self._queue))

    def _write(self, count: int) -> None:
        self._under_way = count
        makers = [self._queue.popleft() for _ in range(count)]
        entries = [entry for entry in map(self._entry, makers) if entry is not None]
        try:
            if entries:
                self._submit(entries)
        except Exception as error:
            self._note([error] * len(entries))
        with self._done:
            self._under_way = 0
            self._done.notify_all()

    def _entry(self, make_draft: MakeDraft) -> Entry | None:
        """One draft that cannot be made must not take the others of its group with it."""
        try:
            return self._make_entry(make_draft())
        except Exception as error:
            self._note([error])
            return None

    def _note(self, failures: list[Exception]) -> None:
        with self._done:
            self._failures += failures

    def _refuse(self) -> None:
        self._raise_failures(" What was given now was not taken either.")
        raise LedgerError("the ledger is closed; nothing was written. Open it again to append.")

    def _raise_failures(self, addition: str = "") -> None:
        with self._done:
            failures, self._failures = self._failures, []
        if failures:
            raise LedgerError(
                f"{len(failures)} records that were to be written later are not in the ledger. "
                f"The first failed with: {failures[0]} Mend that, and repeat them.{addition}"
            ) from failures[0]
