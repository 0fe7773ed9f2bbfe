"""Leaders and followers of a group commit, with a commit that the test delays."""

from __future__ import annotations

import json
import linecache
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType

import pytest

import lpf.ledger.group_commit as group_module
from lpf.errors import LedgerError
from lpf.ledger.group_commit import GroupCommit
from lpf.ledger.records import Draft, Receipt, record_id

DRAFT = Draft({})


class SlowCommit:
    """Waits in each commit until the test lets it go; notes the sizes of the groups."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.go = threading.Semaphore(0)
        self.entered = threading.Semaphore(0)
        self.error: BaseException | None = None

    def __call__(self, drafts: Sequence[Draft]) -> list[Receipt]:
        self.entered.release()
        self.go.acquire()
        if self.error is not None:
            raise self.error
        start = sum(self.sizes)
        self.sizes.append(len(drafts))
        numbers = range(start + 1, start + len(drafts) + 1)
        return [Receipt(record_id(number), number, b"") for number in numbers]


class Caller(threading.Thread):
    def __init__(self, group: GroupCommit, count: int = 1) -> None:
        super().__init__()
        self.group, self.count = group, count
        self.receipts: list[Receipt] = []
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.receipts = self.group.submit([DRAFT] * self.count)
        except BaseException as error:
            self.error = error


def until_queued(group: GroupCommit, followers: int) -> None:
    while len(group._queue) < followers + 1:
        time.sleep(0.001)


def with_followers(commit: SlowCommit, counts: Sequence[int]) -> tuple[GroupCommit, list[Caller]]:
    """A leader within its commit, and followers behind it."""
    group = GroupCommit(commit)
    callers = [Caller(group)]
    commit.entered.acquire()
    for place, count in enumerate(counts, 1):
        callers.append(Caller(group, count))
        until_queued(group, place)
    return group, callers


def test_followers_share_the_next_commit_in_their_order() -> None:
    commit = SlowCommit()
    _, callers = with_followers(commit, [2, 1, 3])
    commit.go.release(2)
    for caller in callers:
        caller.join()
    assert commit.sizes == [1, 6]
    numbers = [[receipt.seq for receipt in caller.receipts] for caller in callers]
    assert numbers == [[1], [2, 3], [4], [5, 6, 7]]


def test_an_interrupted_leader_tells_its_followers_that_the_outcome_is_unknown() -> None:
    commit = SlowCommit()
    group, callers = with_followers(commit, [1, 1])
    commit.go.release()
    callers[0].join()
    commit.entered.acquire()
    commit.error = KeyboardInterrupt()
    commit.go.release()
    for caller in callers[1:]:
        caller.join()
    kinds = {type(caller.error) for caller in callers[1:]}
    assert kinds == {KeyboardInterrupt, LedgerError}
    commit.error = None
    commit.go.release()
    assert group.submit([DRAFT])[0].seq == 2


def test_an_interrupted_follower_leaves_the_queue() -> None:
    commit = SlowCommit()
    group, callers = with_followers(commit, [])

    def interrupt() -> None:
        until_queued(group, 1)
        time.sleep(0.05)  # it is in the queue an instant before it waits
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        group.submit([DRAFT])
    interrupter.join()
    commit.go.release(2)
    callers[0].join()
    assert group.submit([DRAFT])[0].seq == 2
    assert commit.sizes == [1, 1]


class Notes:
    """Commits at once, but for the first, and notes what it was given."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.go = threading.Event()
        self.entered = threading.Event()

    def __call__(self, drafts: Sequence[Draft]) -> list[Receipt]:
        self.entered.set()
        self.go.wait()
        self.drafts += drafts
        return [Receipt(record_id(1), 1, draft.seal(1)[1]) for draft in drafts]


class Named(threading.Thread):
    """Submits one draft that bears its name. Is interrupted at the ``step``-th line it runs of the
    group's code: a thread of Python's own gets no signal, so the tracing raises in its place."""

    def __init__(self, group: GroupCommit, name: str, step: int = 0) -> None:
        super().__init__(name=name, daemon=True)
        self.group, self.step, self.lines = group, step, 0
        self.outcome: object = None
        self.start()

    def run(self) -> None:
        if self.step:
            sys.settrace(self._trace)
        try:
            self.outcome = self.group.submit([Draft({"name": self.name})])
        except (KeyboardInterrupt, LedgerError) as error:
            self.outcome = error
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> object:
        if frame.f_code.co_filename != group_module.__file__:
            return None
        # The way out of a "with" is traced as a line, but Python takes no signal there.
        source = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not source.lstrip().startswith("with "):
            self.lines += 1
            if self.lines == self.step:
                raise KeyboardInterrupt
        return self._trace

    def ended(self) -> object:
        self.join(10)
        assert not self.is_alive(), "waits for ever"
        return self.outcome


def until(condition: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("waits for ever")


def interrupted_at(step: int) -> bool:
    """A caller that comes to lead a group of two is interrupted; whether it ran that far."""
    commit = Notes()
    group = GroupCommit(commit)
    first = Named(group, "first")
    commit.entered.wait()
    victim = Named(group, "victim", step)
    until(lambda: not victim.is_alive() or len(group._queue) == 2)
    follower = Named(group, "follower")
    until(lambda: len(group._queue) == 2 + victim.is_alive())
    commit.go.set()
    assert isinstance(first.ended(), list)
    victim.ended(), follower.ended()
    written = [json.loads(draft.seal(1)[1])["name"] for draft in commit.drafts]
    assert len(set(written)) == len(written), "an entry was written twice"
    if isinstance(follower.outcome, list):
        assert b'"follower"' in follower.outcome[0].leaf
        assert "follower" in written
    else:
        assert "was interrupted" in str(follower.outcome)
    assert isinstance(Named(group, "next").ended(), list)
    assert group._queue == []
    return isinstance(victim.outcome, KeyboardInterrupt)


def test_an_interrupt_at_any_line_leaves_no_thread_waiting() -> None:
    step = 1
    while interrupted_at(step):
        step += 1
    assert step > 30
