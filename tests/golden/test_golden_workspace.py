"""A workspace written by version 0.1, before the code was rearranged: it must open, answer, verify
and replay as it did then.

``workspace.tar.xz`` holds the workspace (store, keys, model, circuit), the answers that were given
in it (``answers.json``), an export of its ledger and an inclusion bundle.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import lpf.ledger.check_bundle
from lpf.ledger import verify
from lpf.workspace import Workspace

ARCHIVE = Path(__file__).parent / "workspace.tar.xz"
# Networks multiply in float32: another processor may round the last digits differently.
TOLERANCE = 1e-5
# What differs between two records of the same question.
OF_THE_MOMENT = ("record_id", "timestamp", "execution_time_ms", "query_text")
OF_THE_RECORD = ("audit_ptr", "audit", "record_id")
# Where no item and no fact counts, both were the prior's; now they are null: there is no answer.
NO_ANSWER = ("top_value", "confidence")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(path, filter="data")
    return path


@pytest.fixture(scope="module")
def workspace(folder: Path) -> Any:
    with Workspace.open(folder / "workspace") as opened:
        yield opened


@cache
def expected() -> dict[str, Any]:
    with tarfile.open(ARCHIVE) as archive:
        member = archive.extractfile("answers.json")
        assert member is not None
        return dict(json.load(member))


ANSWERS = range(len(expected()["answers"]))


def test_the_ledger_verifies(workspace: Workspace) -> None:
    outcome = verify(workspace.database)
    assert outcome.ok
    assert outcome.records >= len(ANSWERS)


def test_the_export_verifies(folder: Path) -> None:
    assert verify(folder / "export.jsonl").ok


def test_the_bundle_checks_without_the_package(folder: Path) -> None:
    program = Path(lpf.ledger.check_bundle.__file__)
    key = (folder / "workspace" / "keys" / "ledger.pub").read_text().strip()
    command = [sys.executable, "-I", str(program), str(folder / "inclusion.json"), "--key", key]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("position", ANSWERS)
def test_every_record_replays_bit_for_bit(workspace: Workspace, position: int) -> None:
    assert workspace.replay(expected()["answers"][position]["answer"]["audit_ptr"]).exact


@pytest.mark.parametrize("position", [0, 6, 8, 12])
def test_records_replay_from_their_texts(workspace: Workspace, position: int) -> None:
    record_id = expected()["answers"][position]["answer"]["audit_ptr"]
    assert workspace.replay(record_id, deep=True).agrees


@pytest.mark.parametrize("position", ANSWERS)
def test_every_question_gets_the_same_answer_and_record(
    workspace: Workspace, position: int
) -> None:
    asked = expected()["answers"][position]
    as_of = datetime.fromisoformat(expected()["as_of"])
    # Version 0.1 did not use evidence about related predicates, and this workspace has a relation
    # and a circuit: without it, a question is the one that was asked then. It used five items.
    asked_then = {"as_of": as_of, "related_evidence": False, "top_k": 5, **asked["options"]}
    options = replace(workspace.settings.query, **asked_then)
    result = workspace.query(asked["entity_id"], asked["predicate"], options)
    no_answer = NO_ANSWER if result.source == "none" else ()
    assert_same(asked["answer"], result.to_dict(), OF_THE_RECORD + no_answer)
    assert result.audit_ptr is not None
    records = [
        workspace.records.get(one) for one in (asked["answer"]["audit_ptr"], result.audit_ptr)
    ]
    before, after = (one.fields for one in records)
    # Version 0.1 did not record who asked.
    assert before.keys() | {"asked_by"} == after.keys()
    assert before["context"] == after["context"]
    # Expanded: the hash of a blob with factors differs if a last digit does.
    before, after = (workspace.records.expand(one) for one in records)
    assert_same(before, after, OF_THE_MOMENT + no_answer)
    if no_answer:
        assert [after[name] for name in NO_ANSWER] == [None, None]


def assert_same(before: Any, after: Any, ignored: tuple[str, ...] = ()) -> None:
    """Every field of ``before`` is in ``after`` with the same content; new ones may be there."""
    if isinstance(before, dict):
        for name in before.keys() - set(ignored):
            assert_same(before[name], after[name])
    elif isinstance(before, list):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            assert_same(one, other)
    elif isinstance(before, float):
        assert after == pytest.approx(before, abs=TOLERANCE, rel=TOLERANCE)
    else:
        assert before == after
