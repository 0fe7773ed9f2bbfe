"""Writes records in the background: the caller only appends them to a queue.

Queued records are lost if the process dies before they are written; ``flush`` and ``close`` wait
for all of them. No failure is hidden: while the store is full, busy or unreachable, records are
retried; any other failure is raised by the next call of any kind.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from lpf.errors import (
    LedgerError,
    StorageError,
    StoreBusyError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from lpf.ledger.records import Draft

WINDOW_SECONDS = 0.02
RETRY_SECONDS = 1.0
MOST_WAITING = 100_000
MOST_UNWRITTEN = 10_000  # while the store fails; beyond that new records are refused
MakeDraft = Callable[[], Draft]

# Temporary failures, and those that an administrator can fix. After any other failure the
# same records would fail again and block all later ones.
_RETRIED = (StoreBusyError, StoreFullError, StoreReadOnlyError, StoreUnavailableError)


class BackgroundWriter:
    """One background thread that writes queued records in groups."""

    def __init__(
        self,
        check: Callable[[Draft], None],
        submit: Callable[[Sequence[Draft]], object],
    ) -> None:
        """``check`` raises for a draft that must not be submitted."""
        self._check = check
        self._submit = submit
        self._closed = False
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Also called in the child of a fork, which has no copy of the thread: pending records are
        written by the parent."""
        self._queue: deque[MakeDraft] = deque()
        self._drafting = 0
        self._drafts: list[Draft] = []  # not on disk yet
        self._attempts = 0
        self._last_failed = 0  # number of the last attempt that failed
        self._stuck: StorageError | None = None
        self._failures: list[Exception] = []
        self._idle = True
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._done = threading.Condition()
        self._running = False
        self._thread: threading.Thread | None = None

    @property
    def pending(self) -> int:
        return len(self._queue) + self._drafting + len(self._drafts)

    def put(self, make_draft: MakeDraft) -> None:
        """Queues a record. Waits only if very many records are queued already."""
        if self._failures or self._closed or self._stuck is not None:
            self._refuse()
        self._queue.append(make_draft)
        # In this order: the thread sets idle before it looks at the queue, so either it
        # sees the new record, or this sees that it is idle.
        if self._idle:
            self._wake_thread()
        if len(self._queue) > MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Returns when all queued records are on disk; LedgerError if some could not be written."""
        with self._done:
            before = self._attempts
            self._hurry.set()
            if self.pending:
                self._wake_thread()
            self._done.wait_for(lambda: self.pending == 0 or self._gave_up(before))
            left = self.pending if self._gave_up(before) else 0
        self._hurry.clear()
        self._raise_failures(left)

    def close(self) -> None:
        """Like ``flush``, but accepts no more records. If it fails, it may be called again."""
        self._closed = True
        with self._done:
            self._hurry.set()
            if self.pending:
                self._wake_thread()
            self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._raise_failures(self.pending)

    def _gave_up(self, before: int) -> bool:
        """Return True if an attempt after the first ``before`` attempts failed."""
        return self._last_failed > before or not self._running

    def _wake_thread(self) -> None:
        with self._done:
            if not self._running:
                self._running = True
                self._thread = threading.Thread(target=self._work, name="lpf-ledger", daemon=True)
                self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        try:
            while not self._closed:
                self._wait_for_work()
                self._write()
            self._write()  # records that were queued just before closing
        finally:
            with self._done:
                self._running = False
                self._done.notify_all()

    def _wait_for_work(self) -> None:
        self._idle = True
        if not self._queue and not self._drafts and not self._closed:
            self._wake.wait()
        self._idle = False
        self._wake.clear()
        if not self._closed:
            self._hurry.wait(RETRY_SECONDS if self._drafts else WINDOW_SECONDS)

    def _write(self) -> None:
        with self._done:
            self._attempts += 1
        self._drafting = len(self._queue)
        makers = [self._queue.popleft() for _ in range(self._drafting)]
        self._drafts += [draft for draft in map(self._draft, makers) if draft is not None]
        self._drafting = 0
        failure = self._submitted() if self._drafts else None
        with self._done:
            self._stuck = failure
            if failure is None:
                self._drafts = []
            else:
                self._last_failed = self._attempts
            self._done.notify_all()

    def _submitted(self) -> StorageError | None:
        """Submits all drafts. Returns the error if they should be submitted again."""
        try:
            self._submit(self._drafts)
        except _RETRIED as error:
            return error
        except Exception as error:
            self._note([error] * len(self._drafts))
        return None

    def _draft(self, make_draft: MakeDraft) -> Draft | None:
        """None if the draft cannot be made; the rest of its group is written all the same."""
        try:
            draft = make_draft()
            self._check(draft)
        except Exception as error:
            self._note([error])
            return None
        return draft

    def _note(self, failures: list[Exception]) -> None:
        with self._done:
            self._failures += failures

    def _refuse(self) -> None:
        """LedgerError if the writer is closed, has failures to report, or too many records wait."""
        if self._failures:
            self._raise_failures(0, " The record given now was not accepted either.")
        if self._closed:
            raise LedgerError("the ledger is closed; nothing was written. Open it again to append.")
        if self.pending >= MOST_UNWRITTEN:
            self._raise_failures(self.pending, " The record given now was not accepted.")

    def _raise_failures(self, left: int, addition: str = "") -> None:
        """LedgerError if records failed, or if ``left`` records are not written yet."""
        with self._done:
            failures, self._failures = self._failures, []
        messages = []
        if failures:
            messages.append(
                f"{len(failures)} queued records are not in the ledger. "
                f"The first failed with: {failures[0]} Fix that, and repeat them."
            )
        if left:
            messages.append(
                f"{left} queued records are not in the ledger yet. They are "
                f"retried as long as this process runs. Cause: {self._stuck}"
            )
        if messages:
            raise LedgerError(" ".join(messages) + addition) from next(iter(failures), self._stuck)
