"""An interrupt between any two steps of a transaction leaves it whole or undone, and never open."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import func, select

from lpf.storage import database as module
from lpf.storage.connections import Prepared
from lpf.storage.database import Database
from lpf.storage.migrations import migrate
from lpf.storage.tables import counters

COUNT = Prepared(select(func.count()).select_from(counters))
MOST_STEPS = 2000


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    with Database(store_url, busy_seconds=0.2) as opened:
        migrate(opened)
        yield opened


def write(database: Database, name: str) -> None:
    with database.writing() as connection:
        connection.execute(f"INSERT INTO counters VALUES ('{name}', 1)")


def count(database: Database) -> int:
    (found,) = database.rows(COUNT)[0]
    return int(found)


class Interrupt:
    """Raises KeyboardInterrupt at the ``step``-th step taken in the module under test: on entry of
    a function, between two instructions of it, or on its return."""

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != str(Path(module.__file__)):
            return None
        # Python itself does not look for signals while it collects what nobody refers to.
        if frame.f_code.co_name in ("__del__", "_forsaken") or event == "exception":
            return None
        frame.f_trace_opcodes = True
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self


def interrupted(database: Database, step: int) -> bool:
    """Whether there were so many steps."""
    interrupt, before = Interrupt(step), sys.gettrace()
    with suppress(KeyboardInterrupt):
        sys.settrace(interrupt)
        try:
            write(database, f"at step {step}")
        finally:
            sys.settrace(before)
    return interrupt.left <= 0


def test_at_no_step_does_an_interrupt_leave_a_transaction_open(
    database: Database, store_url: str
) -> None:
    with Database(store_url, busy_seconds=0.2) as another:
        step = 1
        while interrupted(database, step):
            assert not database.is_writing, step
            assert count(database) == count(another), step
            write(another, f"elsewhere {step}")
            write(database, f"afterwards {step}")
            step += 1
            assert step < MOST_STEPS
    assert step > 50, "the steps must have been seen"


def test_what_was_left_open_in_another_thread_is_rolled_back_by_its_next(
    database: Database, store_url: str
) -> None:
    """As when the error, and with it the owner of the transaction, is let go of elsewhere."""
    left = database.writing()
    left.__enter__().execute("INSERT INTO counters VALUES ('left', 1)")
    here, database._here = database._here, type(database._here)()
    del left
    gc.collect()
    database._here = here
    assert database.is_writing
    write(database, "next")
    assert count(database) == 1
    with Database(store_url, busy_seconds=0.2) as another:
        assert count(another) == 1
