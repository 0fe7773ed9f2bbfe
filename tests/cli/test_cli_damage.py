"""Every column of every table damaged in turn: no traceback, and no silent change of an answer."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import workspaces
from conftest import Commands
from lpf.cli.main import app
from lpf.storage.evidence import NewEvidence
from lpf.storage.facts import NewFact
from lpf.storage.tables import METADATA
from lpf.types import QueryOptions
from lpf.workspace import Workspace, wiring

QUESTION = ("C0001", "level")
COMMANDS = (
    ("query", *QUESTION, "--json"),
    ("batch", "QUESTIONS", "-"),
    ("doctor", "--full", "--json"),
)
# Commands that read these tables besides.
MORE_COMMANDS = {
    "evidence": (("evidence", "list", "--json"), ("evidence", "show", "C0001_E001")),
    "facts": (("facts", "list", "--json"),),
    "ledger": (("ledger", "verify", "--json"),),
    "ledger_contents": (("entities", "--json"), ("review", "queue", "--json")),
}
# Of the right type, but out of range or with another meaning.
HUGE = "9223372036854775807"
DAMAGE = {
    int: ("'abc'", HUGE),
    float: ("'abc'", "1e999"),
    str: ("x'00FF'", "CAST(x'41FFFE' AS TEXT)"),
    bytes: ("'abc'", "x'00'"),
}
SEALED = ("evidence", "superseded_evidence", "features", "facts")
# A row that is about another question is not found for this one: only doctor looks at all rows.
ABOUT = {(table, name) for table in ("evidence", "facts") for name in ("entity_id", "predicate")}
CASES = [
    (table.name, column.name, value)
    for table in METADATA.sorted_tables
    for column in table.columns
    for value in DAMAGE[column.type.python_type]
] + [
    ("evidence", "credibility", "NULL"),
    ("evidence", "commitment", "NULL"),
    ("evidence", "text_content", "NULL"),
    ("features", "vector", "NULL"),
    ("features", "vector", "zeroblob(4 * 384)"),
    ("facts", "value", "NULL"),
    ("ledger", "body", "NULL"),
]


@pytest.fixture(autouse=True)
def opened_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """No damage concerns the reader, so it is opened once."""
    monkeypatch.setattr(wiring, "open_reader", lambda *_, **__: workspaces.reader())


@pytest.fixture(scope="session")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a row in every table."""
    folder = tmp_path_factory.mktemp("used") / "workspace"
    with workspaces.make(folder) as workspace:
        now = datetime.now(UTC)
        workspace.facts.add(
            [NewFact("C0001", "level", "low", now, 0.6), NewFact("C0009", "level", "low", now)]
        )
        workspace.facts.withdraw(2)
        first = workspace.evidence.get("C0001_E001")
        corrected = NewEvidence(first.evidence, first.content_key, bytes(16))
        workspace.evidence.replace([corrected], None, None)
        workspace.__dict__["reader"] = workspaces.reader()
        workspace.index.source.read_missing()
        workspace.vectors.rebuild()
        workspace.query(*QUESTION, QueryOptions(query_text="a question"))
        workspace.evidence.erase("C0002_E001")
        workspace.ledger.checkpoint()
        workspace.contents.update()
        with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
            # Tiles are stored from 256 records on.
            connection.execute("INSERT INTO ledger_tiles VALUES (9, 9, x'00')")
            filled = {name: count(connection, name) for name in METADATA.tables}
    assert all(filled.values()), filled
    return folder


def count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def damage(store: Path, table: str, column: str, value: str) -> bool:
    """False if SQLite does not accept the value, as in the primary key of a row."""
    with closing(sqlite3.connect(store)) as connection:
        if value == "NULL":
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute(
                "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = ?",
                (table,),
            )
            connection.commit()
    with closing(sqlite3.connect(store)) as connection:
        first = f"(SELECT min(rowid) FROM {table})"
        try:
            connection.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = {first}")
        except sqlite3.IntegrityError:
            return False
        connection.commit()
    return True


@dataclass(frozen=True)
class Outcome:
    """What the commands said: exit codes by command, and the answer."""

    codes: dict[str, int]
    answer: dict[str, Any]


def run_all(folder: Path, table: str) -> Outcome:
    questions = folder / "questions.csv"
    questions.write_text("entity_id,predicate\nC0001,level\n")
    codes, answer = {}, {}
    more = [words for start, words in MORE_COMMANDS.items() if table.startswith(start)]
    for words in (*COMMANDS, *(one for several in more for one in several)):
        line = [str(questions) if word == "QUESTIONS" else word for word in words]
        done: Result = CliRunner().invoke(app, Commands(folder).line(*line))
        name = " ".join(words[:2])
        assert done.exit_code in (0, 1, 2, 4), (name, done.output, done.exception)
        assert "Traceback" not in done.output, (name, done.output)
        codes[name] = done.exit_code
        if words[0] == "query" and done.exit_code in (0, 4):
            answer = json.loads(done.stdout)
    return Outcome(codes, answer)


@pytest.fixture(scope="session")
def untouched(used: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("untouched") / "workspace"
    shutil.copytree(used, folder)
    outcome = run_all(folder, "evidence")
    assert outcome.answer["source"] == "inference"
    assert outcome.codes["query C0001"] == 0
    return outcome


@pytest.mark.parametrize(("table", "column", "value"), CASES)
def test_a_damaged_cell_gives_a_named_error_or_a_note(
    used: Path, untouched: Outcome, tmp_path: Path, table: str, column: str, value: str
) -> None:
    folder = tmp_path / "workspace"
    shutil.copytree(used, folder)
    if not damage(folder / "store.db", table, column, value):
        pytest.skip("SQLite does not accept this value here")
    outcome = run_all(folder, table)
    if outcome.answer and (table, column) not in ABOUT:
        same = outcome.answer["distribution"] == pytest.approx(untouched.answer["distribution"])
        assert same or outcome.answer["left_out"]["damaged"], outcome.answer
    if table in SEALED and column != "row_id":
        assert outcome.codes["doctor --full"] == 1


def test_a_damaged_table_of_contents_is_made_again(used: Path, tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    shutil.copytree(used, folder)
    lpf = Commands(folder)
    before = lpf.json("entities")
    assert damage(folder / "store.db", "ledger_contents", "predicate", "x'00FF'")
    assert lpf.refused("entities")["kind"] == "StoreDamagedError"
    checks = lpf.json("doctor", "--full", code=1)["checks"]
    assert any("lpf ledger reindex" in (one["remedy"] or "") for one in checks)
    lpf("ledger", "reindex")
    assert lpf.json("entities") == before


def test_a_swapped_vector_is_noticed(used: Path, tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    shutil.copytree(used, folder)
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        rows = [row for (row,) in connection.execute("SELECT row_id FROM features LIMIT 2")]
        name = connection.execute(
            "SELECT evidence_id FROM evidence WHERE row_id = ?", rows[:1]
        ).fetchone()[0]
        connection.execute(
            "UPDATE features SET vector = (SELECT vector FROM features WHERE row_id = ?)"
            " WHERE row_id = ?",
            rows[::-1],
        )
        connection.commit()
    lpf = Commands(folder)
    answer = lpf.json("query", *QUESTION)
    assert answer["left_out"]["damaged"] == 1
    assert name not in answer["evidence_chain"]
    assert any(name in note and "doctor --full" in note for note in answer["notes"])
    record = lpf.json("ledger", "show", answer["record_id"])
    assert record["notes"] == answer["notes"]
    checks = lpf.json("doctor", "--full", code=1)["checks"]
    assert any(name in check["message"] for check in checks if check["state"] == "fault")
    with Workspace.open(folder) as workspace:
        workspace.__dict__["reader"] = workspaces.reader()
        replayed = workspace.replay("INF00000001", deep=True)
    assert any(name in fault for fault in replayed.faults)
    assert not replayed.agrees


def test_a_changed_text_is_not_shown(used: Path, tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    shutil.copytree(used, folder)
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        connection.execute(
            "UPDATE evidence SET text_content = 'swapped' WHERE evidence_id = 'C0001_E002'"
        )
        connection.commit()
    lpf = Commands(folder)
    shown = lpf("query", *QUESTION)
    assert "swapped" not in shown.output
    assert "C0001_E002" in shown.stderr
    listed = lpf("evidence", "list", "--json", code=1)
    document = json.loads(listed.stdout)
    assert [item["evidence_id"] for item in document["damaged"]] == ["C0001_E002"]
    assert "swapped" not in listed.output
    assert "C0001_E002" in lpf.error("evidence", "show", "C0001_E002")
    lpf("evidence", "erase", "C0001_E002", "--yes")
    assert lpf.json("evidence", "list")["damaged"] == []


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
        connection.execute(statement)


def test_a_damaged_old_version_leaves_the_item_usable(lpf, tmp_path: Path) -> None:
    for text in ("Second version.", "Third version."):
        lpf("evidence", "edit", "C0001_E001", "--text", text)
    change(lpf.folder, "UPDATE superseded_evidence SET text_content = 'swapped' WHERE version = 2")
    shown = lpf.json("evidence", "show", "C0001_E001", code=1)
    assert shown["text_content"] == "Third version."
    assert [one["version"] for one in shown["earlier_versions"]] == [1]
    (damaged,) = shown["damaged"]
    assert damaged["evidence_id"] == "C0001_E001"
    assert "version 2" in damaged["reason"]
    plain = lpf("evidence", "show", "C0001_E001", code=1)
    assert "swapped" not in plain.output
    lpf("evidence", "disclose", "C0001_E001", "--out", tmp_path / "text.json")
    assert json.loads((tmp_path / "text.json").read_text())["text"] == "Third version."
    assert lpf.json("evidence", "edit", "C0001_E001", "--text", "Fourth.")["version"] == 4


def test_pages_go_on_after_damaged_items(lpf) -> None:
    damaged = ("C0001_E001", "C0001_E002", "C0001_E004")
    change(lpf.folder, f"UPDATE evidence SET text_content = 'x' WHERE evidence_id IN {damaged}")
    listed, named, after = [], set(), ()
    while True:
        words = ("evidence", "list", "--limit", "1", *after, "--json")
        page = CliRunner().invoke(app, lpf.line(*words))
        document = json.loads(page.stdout)
        listed += [item["evidence_id"] for item in document["evidence"]]
        named |= {item["evidence_id"] for item in document["damaged"]}
        if document["next_after"] is None:
            break
        after = ("--after", document["next_after"])
    expected = ["C0001_E003", "C0001_E005", *(f"C0002_E00{n}" for n in (1, 2, 3))]
    assert listed == expected
    assert named == set(damaged)
    after_damaged = lpf.json("evidence", "list", "--after", "C0001_E004")
    assert [item["evidence_id"] for item in after_damaged["evidence"]] == expected[1:]


@pytest.fixture
def with_damaged_fact(lpf) -> Any:
    """Fact 2, about C0002, was changed in the store."""
    lpf("facts", "set", "C0001", "level", "low")
    lpf("facts", "set", "C0002", "level", "low", "--at", "2026-01-02", "--source", "audit")
    change(lpf.folder, "UPDATE facts SET seal = x'00' WHERE fact_id = 2")
    return lpf


def test_a_damaged_fact_stops_only_its_own_question(with_damaged_fact, tmp_path: Path) -> None:
    lpf, questions, answers = with_damaged_fact, tmp_path / "in.csv", tmp_path / "out.jsonl"
    questions.write_text("entity_id,predicate\nC0001,level\nC0002,level\nC0009,level\n")
    counts = lpf.json("batch", questions, answers, "--skip-bad")
    assert (counts["answered"], counts["without_answer"], counts["errors"]) == (1, 1, 1)
    first, second, third = map(json.loads, answers.read_text().splitlines())
    assert (first["entity_id"], third["entity_id"]) == ("C0001", "C0009")
    assert second["error"]["line"] == 3
    assert "facts 2" in second["error"]["message"]
    refused = lpf.refused("batch", questions, tmp_path / "none.jsonl")
    assert refused["message"].startswith("line 3 ")
    assert not (tmp_path / "none.jsonl").exists()


def test_a_damaged_fact_is_left_out_of_the_ranking(with_damaged_fact) -> None:
    ranking = with_damaged_fact.json("rank", "level", code=1)
    assert [one["entity_id"] for one in ranking["ranked"]] == ["C0001"]
    assert ranking["asked"] == 1
    assert [one["entity_id"] for one in ranking["failed"]] == ["C0002"]
    assert "C0002" in with_damaged_fact("rank", "level", code=1).stderr


def test_a_damaged_fact_is_withdrawn_and_added_again(with_damaged_fact) -> None:
    lpf = with_damaged_fact
    withdrawn = lpf.json("facts", "withdraw", 2)
    assert withdrawn["facts"] == []
    assert len(withdrawn["notes"]) == 1
    words = ("C0002", "level", "low", "--at", "2026-01-02", "--source", "audit")
    assert [fact["value"] for fact in lpf.json("facts", "set", *words)["facts"]] == ["low"]
    assert lpf.json("query", "C0002", "level")["record_id"]
