"""Eight processes ask at once: every answer has its record, and the ledger has no gap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_nothing_lost import prepare

from lpf.ledger.verifier import verify
from lpf.workspace import Workspace

WORKER = Path(__file__).parent / "asking_worker.py"
PROCESSES, QUESTIONS = 8, 200


def ask_at_once(folder: Path) -> list[list[str]]:
    """The record ids that each process was given."""
    command = [sys.executable, str(WORKER), str(folder), str(QUESTIONS)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, **pipes) for _ in range(PROCESSES)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate()[0].split() for worker in workers]
    assert all(worker.returncode == 0 for worker in workers)
    return said


@pytest.mark.slow
def test_records_have_no_gaps_and_no_duplicates(tmp_path: Path, store_url: str) -> None:
    folder = tmp_path / "workspace"
    prepare(folder, store_url)
    said = ask_at_once(folder)
    given = sorted(record_id for ids in said for record_id in ids)
    assert given == [f"INF{n:08d}" for n in range(1, PROCESSES * QUESTIONS + 1)]
    interleaved = sum(a > b for a, b in zip(said[0], said[1], strict=True))
    assert 0 < interleaved < QUESTIONS, "the processes did not ask at the same time"
    for ids in said:
        assert ids == sorted(ids)
    with Workspace.open(folder) as workspace:
        checked = verify(workspace.database)
        assert checked.ok, checked.findings
        assert checked.records == PROCESSES * QUESTIONS
        assert checked.unsigned_tail == 0
