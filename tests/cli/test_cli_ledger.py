"""ledger: shown, verified, proved, replayed, exported."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lpf.cli.exits import EXIT_NO_ANSWER
from lpf.ledger.merkle import leaf_hash

RECORD = "INF00000002"


@pytest.fixture
def asked(lpf):
    """A workspace with three records."""
    for entity, code in (("C0001", 0), ("C0002", 0), ("C0099", EXIT_NO_ANSWER)):
        lpf("query", entity, "level", code=code)
    return lpf


def tamper(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
        body = connection.execute("SELECT body FROM ledger WHERE seq = 2").fetchone()[0]
        changed = bytes(body).replace(b"C0002", b"C0003")
        connection.execute("UPDATE ledger SET body = ? WHERE seq = 2", (changed,))


def test_records_are_shown(asked) -> None:
    shown = asked("ledger", "show", RECORD).stdout
    for part in (RECORD, "C0002", "C0002_E001", "reader", "leaf"):
        assert part in shown
    document = asked.json("ledger", "show", RECORD)
    assert document["context"]["values"] == ["low", "medium", "high"]
    newest = asked.json("ledger", "show", "--last", 2)["records"]
    assert [record["record_id"] for record in newest] == ["INF00000003", RECORD]
    assert (newest[0]["top_value"], newest[0]["confidence"]) == (None, None)
    assert "no answer" in asked("ledger", "show", "--last", 2).stdout
    assert "level: no answer" in asked("ledger", "show", "INF00000003").stdout
    assert "is not in the ledger" in asked.error("ledger", "show", "INF00000009")
    assert "give the ID" in asked.error("ledger", "show")


def test_a_query_text_is_shown_until_it_is_erased(lpf) -> None:
    lpf("query", "C0001", "level", "--query-text", "late filings")
    lpf("query", "C0001", "level")
    first, second = "INF00000001", RECORD
    assert "query text  late filings" in lpf("ledger", "show", first).stdout
    assert lpf.json("ledger", "show", first)["query_words"] == "late filings"
    assert "query text" not in lpf("ledger", "show", second).stdout
    assert lpf.json("ledger", "show", second)["query_words"] is None
    assert "with --yes" in lpf.error("ledger", "forget", first)
    shown = lpf("ledger", "forget", first, second, "--yes").stdout
    assert shown == f"Erased the text of 1 record.\n{second}: was asked without a text.\n"
    assert "query text  erased" in lpf("ledger", "show", first).stdout
    assert lpf.json("ledger", "forget", first)["without_words"] == {first: "its text is erased"}
    assert "is not in the ledger" in lpf.error("ledger", "forget", "INF00000009")


def test_a_changed_query_text_can_be_erased(lpf) -> None:
    lpf("query", "C0001", "level", "--query-text", "late filings")
    with closing(sqlite3.connect(lpf.folder / "store.db")) as connection, connection:
        connection.execute("UPDATE query_texts SET text = 'early filings'")
    assert lpf.json("ledger", "forget", "INF00000001", "--yes")["erased"] == 1


def test_an_export_may_go_to_standard_output(asked, tmp_path: Path) -> None:
    exported = tmp_path / "ledger.jsonl"
    done = asked("ledger", "export", "-")
    exported.write_text(done.stdout)
    assert done.stderr == "3 records.\n"
    assert asked.json("ledger", "verify", "--export", exported)["records"] == 3
    assert asked.refused("ledger", "export", "-")["field"] == "--json"


def test_a_learned_answer_is_shown_by_its_weights(asked) -> None:
    asked("query", "C0001", "level", "--variant", "learned")
    assert "weight" in asked("ledger", "show", "INF00000004").stdout


def test_an_intact_ledger_verifies(asked, tmp_path: Path) -> None:
    output = asked.json("ledger", "verify")
    assert (output["ok"], output["records"], output["findings"]) == (True, 3, [])
    checkpoint, exported = tmp_path / "checkpoint.json", tmp_path / "ledger.jsonl"
    assert "3 records" in asked("ledger", "checkpoint", "--out", checkpoint).stdout
    assert asked.json("ledger", "export", exported)["records"] == 3
    key = asked.folder / "keys" / "ledger.pub"
    words = ("--trusted", checkpoint, "--key", key)
    assert "The ledger is intact" in asked("ledger", "verify", *words).stdout
    assert not output["against_itself_only"]
    assert asked.json("ledger", "verify", "--export", exported)["against_itself_only"]
    assert asked.json("ledger", "verify", *words, "--export", exported)["ok"]
    assert asked.json("ledger", "verify", "--key", key.read_text().strip())["ok"]


def test_a_changed_record_is_found_with_exit_code_1(asked) -> None:
    tamper(asked.folder)
    output = asked.json("ledger", "verify", code=1)
    assert not output["ok"]
    assert any(RECORD in finding["where"] for finding in output["findings"])
    shown = asked("ledger", "verify", code=1).stdout
    assert "NOT INTACT" in shown
    assert RECORD in shown


def test_another_key_or_a_truncated_ledger_exits_with_1(asked, tmp_path: Path) -> None:
    assert "public key" in asked("ledger", "verify", "--key", "0" * 64, code=1).stdout
    checkpoint, exported = tmp_path / "checkpoint.json", tmp_path / "ledger.jsonl"
    asked("ledger", "export", exported)
    asked("query", "C0001", "level")
    asked("ledger", "checkpoint", "--out", checkpoint)
    words = ("ledger", "verify", "--export", exported, "--trusted", checkpoint)
    assert "truncated" in asked(*words, code=1).stdout


def test_unreadable_input_exits_with_2(asked, tmp_path: Path) -> None:
    assert "cannot be read" in asked.error("ledger", "verify", "--export", tmp_path / "none")
    assert "cannot be read" in asked.error("ledger", "verify", "--key", tmp_path / "none.pub")
    assert "hexadecimal" in asked.error("ledger", "verify", "--key", "x" * 64)
    assert "No such file" in asked.error("ledger", "verify", "--trusted", tmp_path / "none")


def test_a_record_is_proved(asked, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    assert "bundle.json" in asked("ledger", "prove", RECORD, "--out", bundle).stdout
    assert json.loads(bundle.read_text()) == asked.json("ledger", "prove", RECORD)
    assert json.loads(json.loads(bundle.read_text())["body"])["record_id"] == RECORD
    assert "give the ID" in asked.error("ledger", "prove")


def test_a_checkpoint_is_proved_to_extend_another(asked, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    asked("ledger", "checkpoint", "--out", first)
    asked("query", "C0001", "level")
    asked("ledger", "checkpoint", "--out", second)
    bundle = asked.json("ledger", "prove", "--from", first, "--to", second)
    assert (bundle["first"]["size"], bundle["second"]["size"]) == (3, 4)
    assert asked.json("ledger", "prove", "--from", first)["second"]["size"] == 4
    assert "the earlier one first" in asked.error(
        "ledger", "prove", "--from", second, "--to", first
    )


def test_a_checkpoint_needs_a_record(lpf) -> None:
    assert "no record yet" in lpf.error("ledger", "checkpoint")
    assert "no record yet" in lpf("ledger", "show", "--last", 1).stdout


@pytest.mark.parametrize("words", [[], ["--deep"]])
def test_a_record_is_replayed(asked, words: list[str]) -> None:
    output = asked.json("ledger", "replay", RECORD, *words)
    assert output["agrees"]
    assert output["exact"] or words
    assert "the answer is the same" in asked("ledger", "replay", RECORD, *words).stdout


def test_a_replay_that_differs_exits_with_1(asked) -> None:
    with closing(sqlite3.connect(asked.folder / "store.db")) as connection, connection:
        body = bytes(connection.execute("SELECT body FROM ledger WHERE seq = 2").fetchone()[0])
        fields = json.loads(body)
        low, high = (fields["distribution"][value] for value in ("low", "high"))
        fields["distribution"] |= {"low": high, "high": low}
        changed = json.dumps(fields).encode()
        row = (changed, leaf_hash(changed))
        connection.execute("UPDATE ledger SET body = ?, leaf = ? WHERE seq = 2", row)
    assert not asked.json("ledger", "replay", RECORD, code=1)["agrees"]
    assert "DIFFERS by" in asked("ledger", "replay", RECORD, code=1).stdout


def test_an_erased_text_cannot_be_replayed_deeply(asked) -> None:
    asked("evidence", "erase", "C0002_E001", "--yes")
    assert "was erased at" in asked.error("ledger", "replay", RECORD, "--deep")
    assert asked.json("ledger", "replay", RECORD)["exact"]
