"""Records written in the background, with a failing store and with forks."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from ledgers import KEY, created, draft, opened

from lpf.errors import LedgerError, StoreFullError, StoreUnavailableError
from lpf.ledger import Ledger, LedgerReader, public_bytes, verify
from lpf.ledger import background_writer as later_module
from lpf.ledger.background_writer import BackgroundWriter
from lpf.storage.database import Database


class Disk:
    """Limits the pages of whatever connection commits, as a full disk does."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self.is_full = True
        self._database = database
        self._commit = ledger._sequencer.commit
        ledger._group._commit = self.commit

    def commit(self, entries):
        pages = 1 if self.is_full else 1 << 30
        self._database.connection.execute(f"PRAGMA max_page_count={pages}")
        return self._commit(entries)


def large(number: int):
    return draft(number, note="x" * 20_000)


def test_a_temporarily_full_disk_loses_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        ledger.append(draft())
        disk = Disk(database, ledger)
        for number in range(20):
            ledger.append_later(lambda number=number: large(number))
        with pytest.raises(LedgerError, match=r"20 queued records .* not in the ledger yet.*full"):
            ledger.flush()
        assert ledger.pending == 20
        ledger.append_later(lambda: large(20))  # taken, behind the others
        disk.is_full = False
        ledger.flush()
        assert ledger.pending == 0
        entities = [record.fields["entity_id"] for record in LedgerReader(database).records(2)]
        assert entities == [f"C{number:04d}" for number in range(21)]
        verify(database, public_bytes(KEY)).require_ok()


def test_writing_is_retried_automatically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_module, "RETRY_SECONDS", 0.01)
    written, outcomes = threading.Event(), iter([StoreFullError("full"), None])

    def submit(_: object) -> None:
        if error := next(outcomes):
            raise error
        written.set()

    later = BackgroundWriter(lambda made: made, submit)
    later.put(draft)
    assert written.wait(10)
    later.close()


def test_closing_reports_unwritten_records_and_can_be_repeated(tmp_path: Path) -> None:
    with created(tmp_path / "store.db") as database:
        ledger = Ledger(database, KEY)
        ledger.append(draft())
        disk = Disk(database, ledger)
        for number in range(3):
            ledger.append_later(lambda number=number: large(number))
        with pytest.raises(LedgerError, match="3 queued records"):
            ledger.close()
        disk.is_full = False
        ledger.close()
        assert LedgerReader(database).size == 4


def test_the_queue_of_pending_records_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_module, "MOST_UNWRITTEN", 5)
    full = True

    def submit(_: object) -> None:
        if full:
            raise StoreFullError("no room")

    later = BackgroundWriter(lambda made: made, submit)
    later.put(draft)
    with pytest.raises(LedgerError, match="1 queued records"):
        later.flush()
    for _ in range(4):
        later.put(draft)
    with pytest.raises(LedgerError, match=r"5 queued records .*no room.* was not accepted"):
        later.put(draft)
    full = False
    later.flush()
    later.put(draft)
    later.close()


def test_records_with_unknown_outcome_are_not_written_twice(tmp_path: Path) -> None:
    """A connection that breaks in the commit itself leaves open if the records were written."""
    with opened(tmp_path / "store.db") as (database, ledger):
        commit = database._commit

        def broken(connection: object) -> None:
            commit(connection)
            raise StoreUnavailableError("the connection broke")

        database._commit = broken
        ledger.append_later(draft)
        with pytest.raises(LedgerError, match="the connection broke"):
            ledger.flush()
        with pytest.raises(LedgerError, match="the connection broke"):
            ledger.append(draft())
        database._commit = commit
        ledger.flush()
        assert LedgerReader(database).size == 2


def in_a_fork(work: Callable[[], None]) -> int:
    """The exit code of a child that runs ``work``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from Python 3.12 a fork beside threads warns
        child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(30)  # one that waits for ever must not hold up the test
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_appends_with_a_thread_of_its_own(store_url: str) -> None:
    with opened(store_url) as (database, ledger):
        ledger.append_later(draft)
        ledger.flush()

        def child() -> None:
            ledger.append_later(lambda: draft(1))
            ledger.close()

        assert in_a_fork(child) == 0
        ledger.append_later(lambda: draft(2))
        ledger.flush()
        entities = [record.fields["entity_id"] for record in LedgerReader(database).records()]
        assert entities == ["C0000", "C0001", "C0002"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_write_pending_records(tmp_path: Path) -> None:
    """The fork comes while a commit is under way, with all locks of it held."""
    with opened(tmp_path / "store.db") as (database, ledger):
        entered, go = threading.Event(), threading.Event()
        commit = ledger._sequencer.commit

        def held(entries):
            with ledger._sequencer._lock:
                entered.set()
                go.wait()
            return commit(entries)

        ledger._group._commit = held
        ledger.append_later(draft)
        entered.wait()

        def child() -> None:
            assert ledger.pending == 0
            ledger.append(draft(1))
            ledger.close()

        assert in_a_fork(child) == 0
        go.set()
        ledger.flush()
        entities = [record.fields["entity_id"] for record in LedgerReader(database).records()]
        assert entities == ["C0001", "C0000"]
