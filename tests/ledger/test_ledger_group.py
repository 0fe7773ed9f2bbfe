"""Leaders and followers, with a commit that the test holds up."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence

import pytest

from lpf.errors import LedgerError
from lpf.ledger.entries import Entry
from lpf.ledger.group import GroupCommit
from lpf.ledger.records import Receipt, record_id

ENTRY = Entry(b"", b"", {}, ())


class SlowCommit:
    """Waits in each commit until the test lets it go; notes the sizes of the groups."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.go = threading.Semaphore(0)
        self.entered = threading.Semaphore(0)
        self.error: BaseException | None = None

    def __call__(self, entries: Sequence[Entry]) -> list[Receipt]:
        self.entered.release()
        self.go.acquire()
        if self.error is not None:
            raise self.error
        start = sum(self.sizes)
        self.sizes.append(len(entries))
        numbers = range(start + 1, start + len(entries) + 1)
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
            self.receipts = self.group.submit([ENTRY] * self.count)
        except BaseException as error:
            self.error = error


def until_queued(group: GroupCommit, count: int) -> None:
    while len(group._queue) < count:
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
    assert group.submit([ENTRY])[0].seq == 2


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
        group.submit([ENTRY])
    interrupter.join()
    commit.go.release(2)
    callers[0].join()
    assert group.submit([ENTRY])[0].seq == 2
    assert commit.sizes == [1, 1]
