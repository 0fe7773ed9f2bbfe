"""Query texts: bound to their records, erasable, and verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledgers import asked_in, draft, execute, opened

from lpf.errors import LedgerBrokenError, UnknownRecordError
from lpf.ledger import LedgerReader, erase_query_texts, export, verify


def test_erased_texts_are_gone_and_the_ledger_stays_valid(store_url: str, tmp_path: Path) -> None:
    asked = [asked_in(f"Who asked {number}?", number) for number in range(3)]
    with opened(store_url) as (database, ledger):
        ledger.append_many([draft(9), *(each for each, _ in asked)])
        assert erase_query_texts(database, ["INF00000001", "INF00000002", "INF00000004"]) == 2
        reader = LedgerReader(database)
        kept = [reader.query_text(text.commitment) for _, text in asked]
        assert kept == [None, asked[1][1], None]
        assert erase_query_texts(database, ["INF00000002"]) == 0
        verify(database).require_ok()
        export(database, tmp_path / "export.jsonl")
        verify(tmp_path / "export.jsonl").require_ok()


def test_nothing_is_erased_if_one_record_is_unknown(tmp_path: Path) -> None:
    asked, text = asked_in("Why?")
    with opened(tmp_path / "store.db") as (database, ledger):
        ledger.append(asked)
        with pytest.raises(UnknownRecordError):
            erase_query_texts(database, ["INF00000001", "INF00000002"])
        assert LedgerReader(database).query_text(text.commitment) == text


CHANGES = [
    ("UPDATE query_texts SET text = 'forged'", "commitment: expected"),
    ("UPDATE query_texts SET salt = x'00'", "commitment: expected"),
    ("UPDATE query_texts SET salt = CAST(salt AS TEXT)", "salt: has the wrong type text"),
    ("UPDATE query_texts SET text = CAST(text AS BLOB)", "text: has the wrong type blob"),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_forged_texts_are_found_and_not_returned(
    tmp_path: Path, change: str, expected: str
) -> None:
    asked, text = asked_in("Is it compliant?")
    with opened(tmp_path / "store.db") as (database, ledger):
        ledger.append(asked)
        execute(database, change)
        found = [str(each) for each in verify(database).findings]
        assert any(f"query text {text.commitment.hex()}: {expected}" in each for each in found)
        with pytest.raises(LedgerBrokenError, match="was changed"):
            LedgerReader(database).query_text(text.commitment)


def test_texts_without_a_record_are_found(store_url: str) -> None:
    asked, _ = asked_in("Is it compliant?")
    _, foreign = asked_in("Slipped in", 1)
    with opened(store_url) as (database, ledger):
        ledger.append(asked)
        row = (foreign.commitment, foreign.salt, foreign.text)
        execute(database, "INSERT INTO query_texts VALUES (?, ?, ?)", *row)
        (found,) = verify(database).findings
        assert str(found) == f"query text {foreign.commitment.hex()}: no record refers to it"
