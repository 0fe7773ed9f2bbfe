"""Appending: order, durability, shared commits, failures, and concurrent writers."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ledgers import (
    KEY,
    OTHER_KEY,
    SETTINGS,
    append_from_another_process,
    asked_in,
    content_of,
    created,
    draft,
    execute,
    opened,
)

from lpf.errors import (
    LedgerBrokenError,
    LedgerError,
    LedgerKeyError,
    StoreFullError,
    UnknownRecordError,
)
from lpf.ledger import (
    Draft,
    Ledger,
    LedgerReader,
    QueryText,
    canonical,
    public_bytes,
    record_id,
    reference,
    sequence_of,
    statements,
    verify,
)
from lpf.storage.database import Database


def in_threads(count: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_record_comes_back_as_it_was_given(store_url: str) -> None:
    with opened(store_url) as (database, ledger):
        asked, text = asked_in("Is it compliant?", 7)
        receipt = ledger.append(asked)
        reader = LedgerReader(database)
        record = reader.get(receipt.record_id)
        assert (receipt.record_id, receipt.seq, reader.size) == ("INF00000001", 1, 1)
        assert record.leaf == receipt.leaf
        assert record.fields["record_id"] == "INF00000001"
        assert record.fields["format"] == "lpf-record/1"
        assert record.fields["entity_id"] == "C0007"
        assert reader.expand(record)["settings"] == {"mode": "robust", "temperature": 0.8}
        assert reader.query_text(text.commitment) == text
        assert reader.query_text(b"d" * 32) is None
        assert [found.seq for found in reader.records()] == [1]


def test_ids_can_exceed_eight_digits_and_invalid_ids_are_refused() -> None:
    assert record_id(42) == "INF00000042"
    assert sequence_of(record_id(123_456_789)) == 123_456_789
    for nonsense in ("", "INF42", "INF00000000", "INF000000042", "inf00000042", "INF٠٠٠٠٠٠٤٢"):
        with pytest.raises(UnknownRecordError, match="ids look like"):
            sequence_of(nonsense)


def test_unknown_record(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, _), pytest.raises(UnknownRecordError):
        LedgerReader(database).get("INF00000001")


def test_threads_share_commits_and_leave_no_gap(store_url: str) -> None:
    with opened(store_url, checkpoint_seconds=0.05) as (database, ledger):
        commits, seen = 0, []
        commit = ledger._sequencer.commit

        def counted(entries):
            nonlocal commits
            commits += 1
            return commit(entries)

        ledger._group._commit = counted
        in_threads(16, lambda: seen.extend(ledger.append(draft(n)).seq for n in range(50)))
        assert sorted(seen) == list(range(1, 801))
        assert commits < 400
        verify(database, public_bytes(KEY)).require_ok()


def test_processes_leave_no_gap(store_url: str) -> None:
    with created(store_url) as database:
        spawn = multiprocessing.get_context("spawn")
        work = {"target": append_from_another_process, "args": (store_url, 50)}
        processes = [spawn.Process(**work) for _ in range(4)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        found = verify(database, public_bytes(KEY))
        assert (found.records, found.unsigned_tail, found.findings) == (200, 0, ())


def test_two_ledgers_of_one_store_take_turns_across_tiles(store_url: str) -> None:
    """Each catches up with the other's records: few by their leaves, many by tiles."""
    with created(store_url) as database:
        with Ledger(database, KEY) as first, Ledger(database) as second:
            for count in (1, 3, 255, 600, 2):
                first.append_many([draft(n) for n in range(count)])
                second.append_many([draft(n) for n in range(count)])
        found = verify(database)
        assert (found.records, found.unsigned_tail, found.findings) == (1722, 0, ())
        with Ledger(database, KEY) as again:
            assert again.append(draft()).seq == 1723


def test_catching_up_reads_only_new_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with created(tmp_path / "store.db") as database:
        bounds, run = [], database.run

        def noted(connection, statement, arguments=()):
            if statement is statements.LATEST_CHECKPOINT:
                bounds.append(tuple(arguments))
            return run(connection, statement, arguments)

        first, second = Ledger(database), Ledger(database)
        first.append_many([draft(number) for number in range(600)])
        second.append(draft())
        first.append(draft())
        Ledger(database, KEY).checkpoint()  # at the very record that first knows as the last
        second.append(draft())
        monkeypatch.setattr(database, "run", noted)
        first.append(draft())
        assert bounds == [(602, 603)]
        assert first._sequencer._tip.signed_size == 602


@pytest.mark.slow
def test_tiles_of_the_third_level(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        for _ in range(14):
            ledger.append_many([Draft({"n": n}) for n in range(5000)])
        ledger.checkpoint()
        verify(database).require_ok()


def test_nothing_to_append(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (_, ledger):
        assert ledger.append_many([]) == []
        assert ledger.checkpoint() is None


def test_checkpoints_are_signed_when_due(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db", checkpoint_seconds=3600) as (database, ledger):
        reader = LedgerReader(database)
        for number in range(3):
            ledger.append(draft(number))
        assert [bool(record.checkpoint) for record in reader.records()] == [True, False, False]
        signed = ledger.checkpoint()
        assert signed is not None
        assert signed.size == 3
        assert ledger.checkpoint() == signed == reader.latest_checkpoint()
        with Ledger(database, KEY, checkpoint_seconds=0) as eager:
            eager.append(draft())
            assert reader.get("INF00000004").checkpoint is not None


def test_without_the_key_records_stay_unsigned(tmp_path: Path) -> None:
    with created(tmp_path / "store.db") as database, Ledger(database) as ledger:
        ledger.append(draft())
        with pytest.raises(LedgerKeyError, match="no signing key"):
            ledger.checkpoint()
        assert verify(database).unsigned_tail == 1


def test_the_key_of_another_ledger_is_refused(store_url: str) -> None:
    with created(store_url) as database:
        assert Ledger.create(database, public_bytes(KEY)) == LedgerReader(database).identity
        with pytest.raises(LedgerKeyError, match="is not that of the ledger"):
            Ledger(database, OTHER_KEY)
        with pytest.raises(LedgerKeyError):
            Ledger.create(database, public_bytes(OTHER_KEY))
        with pytest.raises(LedgerKeyError, match="32 bytes"):
            Ledger.create(database, b"short")


def test_a_store_without_a_ledger_says_so(tmp_path: Path) -> None:
    with created(tmp_path / "store.db") as database:
        execute(database, "DELETE FROM ledger_identity")
        with pytest.raises(LedgerError, match="no ledger yet"):
            Ledger(database)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: Draft({"record_id": "INF00000001"}), "record_id"),
        (lambda: Draft({"format": "mine"}), "format"),
        (lambda: Draft({"a": reference(b"{}")}), "neither draft nor store"),
        (lambda: Draft({"a": 1}, (b"{}",)), "does not refer to it"),
        (lambda: Draft({"a": reference(b"{ }")}, (b"{ }",)), "not canonical"),
        (lambda: Draft({"a": reference(b"{")}, (b"{",)), "not canonical"),
        (lambda: Draft({"a": float("nan")}), "nan"),
        (lambda: Draft({}, texts=(QueryText(b"c", b"s", "a\x00b"),)), "NUL"),
        (lambda: Draft({}, texts=(QueryText(b"c", b"s", "\ud800"),)), "surrogate"),
        (lambda: Draft({}, texts=(QueryText(b"c", b"s", "a"),)), "is not the commitment"),
        (
            lambda: Draft({"query_text": "a"}, texts=(asked_in("a")[1],)),
            "query_text does not name it",
        ),
    ],
)
def test_a_draft_that_could_not_be_verified_is_refused(
    tmp_path: Path, bad: Callable[[], Draft], message: str
) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        with pytest.raises(LedgerError, match=message):
            ledger.append(bad())
        assert LedgerReader(database).size == 0


def test_a_blob_is_stored_once(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        ledger.append_many([draft(1), draft(2)])
        ledger.append(Draft({"settings": reference(SETTINGS)}))
        with Ledger(database) as another:
            another.append(draft(3))
            another.append(Draft({"settings": reference(SETTINGS)}))
        assert database.connection.execute("SELECT count(*) FROM ledger_blobs").fetchone() == (1,)
        verify(database).require_ok()


def test_a_blob_is_written_again_if_its_first_commit_failed(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        commit = ledger._group._commit

        def fail(_: object) -> list[object]:
            raise StoreFullError("on purpose")

        ledger._group._commit = fail
        with pytest.raises(StoreFullError, match="on purpose"):
            ledger.append(draft(1))
        ledger._group._commit = commit
        receipts = [ledger.append(draft(number)) for number in (2, 3)]
        reader = LedgerReader(database)
        for receipt in receipts:
            expanded = reader.expand(reader.get(receipt.record_id))
            assert canonical(expanded["settings"]) == SETTINGS
        verify(database).require_ok()


def fill(database: Database) -> None:
    pages = database.connection.execute("PRAGMA page_count").fetchone()[0]
    database.connection.execute(f"PRAGMA max_page_count={pages}")


def test_a_full_disk_fails_the_whole_group_and_stores_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        ledger.append(draft())
        errors, started = [], threading.Barrier(8)
        commit = ledger._sequencer.commit

        def on_a_full_disk(entries):
            fill(database)
            return commit(entries)

        ledger._group._commit = on_a_full_disk

        def append() -> None:
            started.wait()
            try:
                ledger.append(draft(1, note="x" * 100_000))
            except StoreFullError as error:
                errors.append(error)

        in_threads(8, append)
        assert len(errors) == 8
        assert len(set(map(id, errors))) == 8
        ledger._group._commit = commit
        assert ledger.append(draft(2)).seq == 2
        verify(database).require_ok()


def test_later_is_written_in_groups_and_flush_waits(store_url: str) -> None:
    with created(store_url) as database:
        reader = LedgerReader(database)
        with Ledger(database, KEY) as ledger:
            for number in range(500):
                ledger.append_later(lambda number=number: draft(number))
            ledger.flush()
            assert ledger.pending == 0
            entities = [record.fields["entity_id"] for record in reader.records()]
            assert entities == [f"C{number:04d}" for number in range(500)]
            ledger.append_later(draft)
        assert reader.size == 501
        verify(database).require_ok()


def test_later_wakes_up_again_after_a_pause(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        for size in (1, 2):
            ledger.append_later(draft)
            for _ in range(200):
                if LedgerReader(database).size == size:
                    break
                time.sleep(0.01)
            assert LedgerReader(database).size == size


def test_a_failed_async_record_is_reported_and_others_are_written(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        ledger.append_later(draft)
        ledger.append_later(lambda: Draft({"a": float("nan")}))
        with pytest.raises(LedgerError, match="1 queued records"):
            ledger.flush()
        assert LedgerReader(database).size == 1
        ledger.append_later(lambda: Draft({"a": 1 / 0}))
        while ledger.pending:
            time.sleep(0.005)
        with pytest.raises(LedgerError, match="division by zero"):
            ledger.append_later(draft)
    with pytest.raises(LedgerError, match="closed"):
        ledger.append_later(draft)


def test_history_rewritten_under_an_open_ledger_is_noticed(store_url: str) -> None:
    with created(store_url) as database:
        ledger = Ledger(database, KEY)
        ledger.append_many([draft(number) for number in range(5)])
        execute(database, "UPDATE ledger SET leaf = ? WHERE seq = 5", b"0" * 32)
        with pytest.raises(LedgerBrokenError, match="INF00000005") as broken:
            ledger.append(draft())
        assert broken.value.findings
        execute(database, "DELETE FROM ledger WHERE seq > 3")
        with pytest.raises(LedgerBrokenError, match="ended at INF00000005"):
            ledger.append(draft())


def test_a_tree_that_does_not_match_is_not_signed(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        ledger.append_many([draft(number) for number in range(300)])
        ledger.checkpoint()
        execute(database, "UPDATE ledger_tiles SET hashes = zeroblob(32) WHERE level = 1")
        with pytest.raises(LedgerBrokenError, match="does not match"):
            Ledger(database, KEY)
        execute(database, "DELETE FROM ledger_tiles")
        with pytest.raises(LedgerBrokenError, match="hashes are missing"):
            Ledger(database, KEY)


def test_canonical_is_what_is_stored(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        body = LedgerReader(database).get(ledger.append(draft(3)).record_id).body
        expected = {**content_of(3), "format": "lpf-record/1", "record_id": "INF00000001"}
        assert body == canonical(expected)
