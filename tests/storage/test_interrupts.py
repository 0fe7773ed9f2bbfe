"""An interrupt at any step of a transaction leaves it committed or rolled back, never open."""

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
from lpf.storage.database import Database
from lpf.storage.migrations import migrate
from lpf.storage.statements import Prepared
from lpf.storage.tables import counters

COUNT = Prepared(select(func.count()).select_from(counters))
MOST_STEPS = 2000


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    with Database(store_url, busy_seconds=0.2) as opened:
        migrate(opened)
        yield opened


def write(database: Database, name: str) -> None:
    with database.transaction() as connection:
        connection.execute(f"INSERT INTO counters VALUES ('{name}', 1)")


def count(database: Database) -> int:
    (found,) = database.rows(COUNT)[0]
    return int(found)


class Interrupt:
    """Trace function that raises KeyboardInterrupt at the ``step``-th event in the module under
    test: function entry, instruction or return."""

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != str(Path(module.__file__)):
            return None
        # Python does not handle signals during garbage collection.
        if frame.f_code.co_name in ("__del__", "_transaction_collected") or event == "exception":
            return None
        frame.f_trace_opcodes = True
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self


def interrupted(database: Database, step: int) -> bool:
    """Return True if the interrupt was raised."""
    interrupt, before = Interrupt(step), sys.gettrace()
    with suppress(KeyboardInterrupt):
        sys.settrace(interrupt)
        try:
            write(database, f"at step {step}")
        finally:
            sys.settrace(before)
    return interrupt.left <= 0


def test_an_interrupt_never_leaves_a_transaction_open(database: Database, store_url: str) -> None:
    with Database(store_url, busy_seconds=0.2) as another:
        step = 1
        while interrupted(database, step):
            assert not database.in_transaction, step
            assert count(database) == count(another), step
            write(another, f"elsewhere {step}")
            write(database, f"afterwards {step}")
            step += 1
            assert step < MOST_STEPS
    assert step > 50, "the trace function must have seen the steps"


def test_an_abandoned_transaction_is_rolled_back_by_the_next(
    database: Database, store_url: str
) -> None:
    """As when the error, and with it the owner of the transaction, is collected elsewhere."""
    left = database.transaction()
    left.__enter__().execute("INSERT INTO counters VALUES ('left', 1)")
    thread_state, database._thread = database._thread, type(database._thread)()
    del left
    gc.collect()
    database._thread = thread_state
    assert database.in_transaction
    write(database, "next")
    assert count(database) == 1
    with Database(store_url, busy_seconds=0.2) as another:
        assert count(another) == 1
