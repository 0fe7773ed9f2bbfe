"""Killed at any moment, nothing that was acknowledged is lost.

A child ingests, asks and appends until SIGKILL strikes at a random moment, hundreds of times on one
workspace. Afterwards every acknowledged record and item is there, ids have no gap, the tree
verifies, the index answers, and repeating the ingestion gives the store that an undisturbed one
gives.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from crash_worker import ITEMS

import workspaces
from builders import model_config, sharp_tensors
from hash_reader import HashReader
from lpf.ledger.verifier import verify
from lpf.model.artefact import save_model
from lpf.workspace import Workspace

FILES = 40
WORKER = Path(__file__).parent / "crash_worker.py"


def prepare(folder: Path, store_url: str | None) -> None:
    with Workspace.create(folder, workspaces.schema(), store_url=store_url) as workspace:
        workspace.__dict__["reader"] = HashReader()
        config = model_config(1, reader_id=HashReader().reader_id)
        tensors = sharp_tensors(config)
        workspace.use_model(save_model(folder / "models", config, tensors, workspaces.CARD))
        for number in range(FILES):
            write_file(folder.parent / f"evidence-{number}.csv", f"X{number:03d}")
        write_file(folder.parent / "start.csv", *(f"C{number:04d}" for number in range(5)))
        workspace.ingest(folder.parent / "start.csv")


def write_file(path: Path, *entities: str) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["evidence_id", "entity_id", "predicate", "text", "credibility"])
        for entity in entities:
            for item in range(ITEMS):
                text = f"{entity} says thing {item} in words of its own"
                writer.writerow([f"{entity}_E{item:03d}", entity, "level", text, 0.9])


@contextmanager
def mother(folder: Path, longest: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(WORKER), str(folder), str(longest)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        yield process
        process.stdin.close()


def killed(folder: Path, times: int, longest: float) -> list[list[str]]:
    """What was acknowledged before each of ``times`` kills, ``longest`` seconds after the child
    was ready at the latest."""
    said: list[list[str]] = []
    with mother(folder, longest) as process:
        for seed in range(times):
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
            for line in process.stdout:
                words = line.split()
                assert words[0] != "failed", line
                if words[0] == "gone":
                    break
                said.append(words)
    return said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "times", "longest"), [("sqlite", 220, 0.25), ("postgres", 60, 0.6)]
)
def test_nothing_that_was_acknowledged_is_lost(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, times: int, longest: float
) -> None:
    url = request.getfixturevalue("postgres").fresh_url() if kind == "postgres" else None
    folder = tmp_path / "workspace"
    prepare(folder, url)
    said = killed(folder, times, longest)
    assert sum(words[0] == "ready" for words in said) > times // 2, "killed too early to tell"
    with Workspace.open(folder) as workspace:
        workspace.__dict__["reader"] = HashReader()
        check_records(workspace, said)
        check_evidence(workspace, said)
        check_store(workspace)
        counted = {word: sum(words[0] == word for words in said) for word in ("record", "mark")}
        print(f"{kind}: {times} kills, {workspace.records.size} records, acknowledged {counted}")


def check_records(workspace: Workspace, said: list[list[str]]) -> None:
    found = {record.record_id: record.fields for record in workspace.records.records()}
    assert list(found) == [f"INF{number:08d}" for number in range(1, len(found) + 1)]
    for words in said:
        if words[0] == "mark":
            assert found[words[1]]["mark"] == words[2]
        elif words[0] == "record":
            assert found[words[1]]["confidence"] == float(words[2])
    acknowledged = [words[1] for words in said if words[0] in ("mark", "record")]
    assert len(set(acknowledged)) == len(acknowledged) > 50, "killed too early to tell"
    checked = verify(workspace.database)
    assert checked.ok, checked.findings


def check_evidence(workspace: Workspace, said: list[list[str]]) -> None:
    for evidence_id in {words[1] for words in said if words[0] == "evidence"}:
        workspace.evidence.get(evidence_id)
    for number in range(FILES):
        workspace.ingest(workspace.folder.parent / f"evidence-{number}.csv")
    assert workspace.evidence.count() == (FILES + 5) * ITEMS
    number = workspace.evidence.reader_number(HashReader().reader_id, HashReader().width)
    assert workspace.evidence.missing_features(number, 10) == []


def check_store(workspace: Workspace) -> None:
    if workspace.database.is_sqlite:
        problems = workspace.database.connection.execute("PRAGMA integrity_check").fetchall()
        assert problems == [("ok",)]
    hits = workspace.vectors.search("X007 says thing 3 in words of its own", k=1)
    assert hits[0].evidence_id == "X007_E003"
    assert workspace.query("C0001", "level").source == "inference"
