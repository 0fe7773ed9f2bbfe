"""Records recomputed: from their own factors bit for bit, from texts to 1e-5."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from test_orchestrator import WAYS

import workspaces
from lpf.errors import ReplayError
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from lpf.workspace.doctor import check_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspaces.make(tmp_path / "here", members=3)


@pytest.mark.parametrize("way", WAYS)
def test_bit_for_bit_from_the_record_alone(workspace: Workspace, way: str) -> None:
    result = workspace.query("C0001", "level", WAYS[way])
    again = workspace.replay(result.audit_ptr or "")
    assert again.exact
    assert again.largest_difference == 0.0


@pytest.mark.parametrize("way", WAYS)
def test_from_texts_and_the_recorded_model(workspace: Workspace, way: str) -> None:
    result = workspace.query("C0001", "level", WAYS[way])
    workspaces.give_model(workspace, members=1)  # another model answers by now
    again = workspace.replay(result.audit_ptr or "", deep=True)
    assert again.largest_difference <= 1e-5
    assert again.same_top


def test_a_changed_record_does_not_replay(workspace: Workspace) -> None:
    from lpf.orchestrator import replay

    result = workspace.query("C0001", "level")
    fields = workspace.records.expand(workspace.records.get(result.audit_ptr or ""))
    forged = json.loads(json.dumps(fields))
    forged["factors"]["potential"][0].reverse()
    assert not replay(forged).exact


def test_a_missing_text_is_reported(workspace: Workspace) -> None:
    result = workspace.query("C0001", "level")
    workspace.erase("C0001_E002")
    with pytest.raises(ReplayError, match=r"C0001_E002.*erased"):
        workspace.replay(result.audit_ptr or "", deep=True)
    assert workspace.replay(result.audit_ptr or "").exact


def test_a_text_that_was_changed_in_the_store_is_named(workspace: Workspace) -> None:
    result = workspace.query("C0001", "level")
    with workspace.database.transaction() as connection:
        connection.execute(
            "UPDATE evidence SET text_content = 'Fraud.' WHERE evidence_id = 'C0001_E003'"
        )
    with pytest.raises(ReplayError, match=r"C0001_E003.*not the one that was read"):
        workspace.replay(result.audit_ptr or "", deep=True)
    checks = [
        check for check in check_workspace(workspace.folder, full=True) if check.name == "evidence"
    ]
    assert [check.state for check in checks] == ["ok", "fault"]
    assert "C0001_E003" in checks[1].message


def test_a_missing_model_is_reported(workspace: Workspace) -> None:
    result = workspace.query("C0001", "level")
    version = workspace.models.active()
    shutil.rmtree(workspace.folder / "models" / str(version))
    with pytest.raises(ReplayError, match=str(version)):
        workspace.replay(result.audit_ptr or "", deep=True)
    assert workspace.replay(result.audit_ptr or "").exact


def test_answers_without_evidence_replay_too(workspace: Workspace) -> None:
    result = workspace.query("C0404", "level", QueryOptions())
    assert workspace.replay(result.audit_ptr or "").exact
    deep = workspace.replay(result.audit_ptr or "", deep=True)
    assert deep.exact
    assert "no text to read" in deep.notes[0]
