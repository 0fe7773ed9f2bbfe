"""Records that may be written a moment later: the caller only appends to a queue.

Queued records are lost if the process dies before they are written; ``flush`` and ``close`` wait
for all of them. No failure is hidden: while the store is full, busy or unreachable, records are
kept and tried again; any other failure is raised by the next call of any kind.
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
MOST_KEPT = 10_000  # while the store fails; beyond that new records are refused
MakeDraft = Callable[[], Draft]

# Failures that pass by themselves or that an administrator can fix. After any other failure the
# same records would fail again, and block all that come after them.
_PASSING = (StoreBusyError, StoreFullError, StoreReadOnlyError, StoreUnavailableError)


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
        self._being_made = 0
        self._made: list[Draft] = []  # and not on disk
        self._attempts = 0
        self._last_failed = 0  # which attempt
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
        return len(self._queue) + self._being_made + len(self._made)

    def put(self, make_draft: MakeDraft) -> None:
        """Waits only if far too much is queued already."""
        if self._failures or self._closed or self._stuck is not None:
            self._refuse()
        self._queue.append(make_draft)
        # In this order: the thread declares itself idle before it looks at the queue, so either it
        # sees what was put or this sees that it is idle.
        if self._idle:
            self._rouse()
        if len(self._queue) > MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Returns when all queued records are on disk; LedgerError if some could not be written."""
        with self._done:
            before = self._attempts
            self._hurry.set()
            if self.pending:
                self._rouse()
            self._done.wait_for(lambda: self.pending == 0 or self._gave_up(before))
            left = self.pending if self._gave_up(before) else 0
        self._hurry.clear()
        self._raise_failures(left)

    def close(self) -> None:
        """As ``flush``, and accepts no more records. If it fails, it may be called again."""
        self._closed = True
        with self._done:
            self._hurry.set()
            if self.pending:
                self._rouse()
            self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._raise_failures(self.pending)

    def _gave_up(self, before: int) -> bool:
        """Return True if an attempt failed that began after the first ``before``."""
        return self._last_failed > before or not self._running

    def _rouse(self) -> None:
        with self._done:
            if not self._running:
                self._running = True
                self._thread = threading.Thread(target=self._work, name="lpf-ledger", daemon=True)
                self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        try:
            while not self._closed:
                self._rest()
                self._write()
            self._write()  # what was queued between the last look and closing
        finally:
            with self._done:
                self._running = False
                self._done.notify_all()

    def _rest(self) -> None:
        self._idle = True
        if not self._queue and not self._made and not self._closed:
            self._wake.wait()
        self._idle = False
        self._wake.clear()
        if not self._closed:
            self._hurry.wait(RETRY_SECONDS if self._made else WINDOW_SECONDS)

    def _write(self) -> None:
        with self._done:
            self._attempts += 1
        self._being_made = len(self._queue)
        makers = [self._queue.popleft() for _ in range(self._being_made)]
        self._made += [draft for draft in map(self._draft, makers) if draft is not None]
        self._being_made = 0
        failure = self._submitted() if self._made else None
        with self._done:
            self._stuck = failure
            if failure is None:
                self._made = []
            else:
                self._last_failed = self._attempts
            self._done.notify_all()

    def _submitted(self) -> StorageError | None:
        """The error after which to try again, if there was one."""
        try:
            self._submit(self._made)
        except _PASSING as error:
            return error
        except Exception as error:
            self._note([error] * len(self._made))
        return None

    def _draft(self, make_draft: MakeDraft) -> Draft | None:
        """One draft that cannot be made must not take the others of its group with it."""
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
        """LedgerError unless one more record may wait for a store that fails."""
        if self._failures:
            self._raise_failures(0, " The record given now was not accepted either.")
        if self._closed:
            raise LedgerError("the ledger is closed; nothing was written. Open it again to append.")
        if self.pending >= MOST_KEPT:
            self._raise_failures(self.pending, " The record given now was not accepted.")

    def _raise_failures(self, left: int, addition: str = "") -> None:
        """LedgerError if records failed, or if ``left`` records are not written yet."""
        with self._done:
            failures, self._failures = self._failures, []
        messages = []
        if failures:
            messages.append(
                f"{len(failures)} records that were to be written later are not in the ledger. "
                f"The first failed with: {failures[0]} Fix that, and repeat them."
            )
        if left:
            messages.append(
                f"{left} records that were to be written later are not in the ledger yet. They are "
                f"kept and tried again as long as this process lives; why: {self._stuck}"
            )
        if messages:
            raise LedgerError(" ".join(messages) + addition) from next(iter(failures), self._stuck)
