"""Rows changed from outside: every lookup rejects them and names the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ledgers import KEY, SETTINGS, created, draft, execute, opened

from lpf.errors import InputFileError, LedgerBrokenError
from lpf.ledger import (
    Ledger,
    LedgerReader,
    Verification,
    export,
    prove_inclusion,
    public_bytes,
    reference,
    verify,
)
from lpf.ledger.merkle import leaf_hash
from lpf.storage.database import Database

BODY = "INF00000005: its body is not the one that was recorded"
AS_TEXT = "UPDATE ledger SET body = REPLACE(body, 'C0004', 'C0009') WHERE seq = 5"
AS_BYTES = "UPDATE ledger SET body = CAST(REPLACE(body, 'C0004', 'C0009') AS BLOB) WHERE seq = 5"
LEAF_AS_TEXT = "UPDATE ledger SET leaf = HEX(leaf) WHERE seq = 5"
COUNT = 30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    """30 records, each with its checkpoint."""
    with created(tmp_path / "store.db") as database:
        with Ledger(database, KEY, checkpoint_seconds=0) as ledger:
            for number in range(COUNT):
                ledger.append(draft(number))
        yield database


def texts(found: Verification) -> list[str]:
    return [str(finding) for finding in found.findings]


@pytest.mark.parametrize("change", [AS_TEXT, AS_BYTES, LEAF_AS_TEXT])
def test_a_changed_record_is_not_returned(store: Database, tmp_path: Path, change: str) -> None:
    reader = LedgerReader(store)
    sound = reader.get("INF00000005")
    execute(store, change)
    for look_up in (
        lambda: reader.get("INF00000005"),
        lambda: list(reader.records()),
        lambda: prove_inclusion(store, "INF00000005"),
        lambda: export(store, tmp_path / "export.jsonl"),
    ):
        with pytest.raises(LedgerBrokenError, match=BODY) as broken:
            look_up()
        assert broken.value.findings[0].startswith(BODY)
    assert not list(tmp_path.glob("*export*"))
    with pytest.raises(LedgerBrokenError, match=BODY):
        reader.expand(replace(sound, body=b"{}"))
    assert reader.get("INF00000004").record_id == "INF00000004"


@pytest.mark.parametrize("change", ["REPLACE(body, 'robust', 'paper')", "x'7b7d'", "7"])
def test_a_changed_blob_is_not_returned(store: Database, tmp_path: Path, change: str) -> None:
    execute(store, f"UPDATE ledger_blobs SET body = {change}")
    reader = LedgerReader(store)
    record = reader.get("INF00000001")
    for look_up in (
        lambda: reader.blob(bytes.fromhex(reference(SETTINGS)["blob"])),
        lambda: reader.expand(record),
        lambda: prove_inclusion(store, "INF00000001"),
        lambda: export(store, tmp_path / "export.jsonl"),
    ):
        with pytest.raises(LedgerBrokenError, match=r"blob [0-9a-f]{64}: its body is not the one"):
            look_up()


@pytest.mark.parametrize("body", [b"[]", b"no JSON", b"\xff"])
def test_a_body_that_is_not_an_object_is_rejected(store: Database, body: bytes) -> None:
    execute(store, "UPDATE ledger SET body = ?, leaf = ? WHERE seq = 5", body, leaf_hash(body))
    with pytest.raises(LedgerBrokenError, match="INF00000005: its body is not"):
        assert LedgerReader(store).get("INF00000005").fields


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ledger SET leaf = HEX(leaf)",
        "UPDATE ledger SET leaf = 7 WHERE seq = 5",
        f"UPDATE ledger SET leaf = x'00' WHERE seq = {COUNT}",
        "UPDATE ledger SET checkpoint = CAST(checkpoint AS TEXT)",
        "UPDATE ledger SET checkpoint = x'7b7d'",
        "UPDATE ledger_identity SET public_key = HEX(public_key)",
    ],
)
def test_nothing_is_appended_to_invalid_rows(store: Database, change: str) -> None:
    execute(store, change)
    with pytest.raises(LedgerBrokenError):
        Ledger(store, KEY)


def test_tiles_of_the_wrong_type_are_rejected(tmp_path: Path) -> None:
    with opened(tmp_path / "store.db") as (database, ledger):
        ledger.append_many([draft(number) for number in range(600)])
        ledger.checkpoint()
        execute(database, "UPDATE ledger_tiles SET hashes = HEX(hashes)")
        with pytest.raises(LedgerBrokenError, match="tile 0 of level 1"):
            Ledger(database, KEY)
        with pytest.raises(LedgerBrokenError, match="tile 0 of level"):
            prove_inclusion(database, "INF00000001")


def test_a_checkpoint_of_the_wrong_type_is_rejected(store: Database, tmp_path: Path) -> None:
    execute(store, "UPDATE ledger SET checkpoint = CAST(checkpoint AS TEXT)")
    with pytest.raises(LedgerBrokenError, match="INF00000005: its checkpoint was changed"):
        LedgerReader(store).get("INF00000005")
    with pytest.raises(LedgerBrokenError, match="newest checkpoint"):
        LedgerReader(store).latest_checkpoint()
    with pytest.raises(LedgerBrokenError, match="INF00000001: its checkpoint was changed"):
        export(store, tmp_path / "export.jsonl")


def test_a_ledger_knows_if_it_can_sign(store: Database) -> None:
    assert Ledger(store, KEY).signs
    assert not Ledger(store).signs


def test_a_deleted_record_is_one_finding(store: Database) -> None:
    execute(store, "DELETE FROM ledger WHERE seq = 7")
    found = texts(verify(store))
    assert found[0] == "INF00000007: is missing"
    assert found[1].startswith("checkpoint of INF00000008: root: expected")
    assert found[1].endswith("; and 22 later checkpoints")
    assert len(found) == 2
    execute(store, "DELETE FROM ledger WHERE seq BETWEEN 8 AND 9")
    assert (
        texts(verify(store))[0]
        == "INF00000007: is missing, and so are all others up to INF00000009"
    )


def test_one_change_is_reported_once(store: Database) -> None:
    execute(store, AS_TEXT)
    assert texts(verify(store)) == ["INF00000005: body: has the wrong type text"]
    execute(store, "UPDATE ledger SET body = CAST(body AS BLOB) WHERE seq = 5")
    found = texts(verify(store))
    assert [text.split(":")[0] for text in found] == ["INF00000005", "checkpoint of INF00000005"]
    assert found[1].endswith("; and 25 later checkpoints")


def test_records_moved_into_a_gap_are_reported_once(store: Database) -> None:
    execute(store, "DELETE FROM ledger WHERE seq = 7")
    execute(store, "UPDATE ledger SET seq = seq - 1, checkpoint = NULL WHERE seq > 7")
    assert texts(verify(store)) == [
        "INF00000007: record_id: expected 'INF00000007', found 'INF00000008'; and 22 later records"
    ]


def test_an_empty_body_is_found(store: Database) -> None:
    execute(store, "UPDATE ledger SET body = x'' WHERE seq = 5")
    assert "INF00000005: its body is not the one that was recorded" in texts(verify(store))[0]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_limit_of_findings_includes_counted_ones(store: Database, limit: int) -> None:
    execute(store, "UPDATE ledger SET leaf = zeroblob(32) WHERE seq > 20")
    execute(store, "DELETE FROM ledger WHERE seq = 7")
    assert len(verify(store, most_findings=limit).findings) == limit


@pytest.mark.parametrize(
    "content", ["", "{", "no export", '{"format":"lpf-checkpoint/1"}', "{}\n" * 9]
)
def test_a_file_that_is_not_an_export_is_rejected(tmp_path: Path, content: str) -> None:
    (tmp_path / "file").write_text(content)
    with pytest.raises(InputFileError, match="is not an export of a ledger"):
        verify(tmp_path / "file")


def test_a_store_given_as_an_export_is_rejected(store: Database, tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="is not an export"):
        verify(tmp_path / "store.db")


def test_an_invalid_trusted_checkpoint_or_key_is_rejected(store: Database) -> None:
    checkpoint = LedgerReader(store).latest_checkpoint()
    assert checkpoint is not None
    unsigned = checkpoint.to_bytes().replace(b'"size":30', b'"size":31')
    for trusted in (b"", b"{", b"[]", b"{}", b"\xff", unsigned):
        with pytest.raises(InputFileError, match="trusted checkpoint"):
            verify(store, trusted=trusted)
    for key in (b"", b"short", bytes(33)):
        with pytest.raises(InputFileError, match="a public key has 32 bytes"):
            verify(store, key)


def test_the_result_says_what_the_ledger_was_compared_with(store: Database) -> None:
    key, checkpoint = public_bytes(KEY), LedgerReader(store).latest_checkpoint()
    assert checkpoint is not None
    trusted = checkpoint.to_bytes()
    assert verify(store).against == "itself"
    assert verify(store, key).against == "the given key"
    assert verify(store, trusted=trusted).against == "a trusted checkpoint"
    found = verify(store, key, trusted)
    assert found.against == "a trusted checkpoint and the given key"
    assert (found.ok, found.keyed, found.trusted) == (True, True, True)
