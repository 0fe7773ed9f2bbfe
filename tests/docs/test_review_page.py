"""The commands of docs/review.md, one after the other, in the workspace that the page makes."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lpf.cli.main import app
from lpf.ledger import verify
from lpf.workspace import Workspace

ROOT = Path(__file__).parent.parent.parent


def test_the_commands_lead_from_the_queue_to_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "review.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    (lpf .*)$", text, re.MULTILINE)
    assert len(lines) >= 16
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LPF_USER", "eve")
    said: dict[str, str] = {}
    for line in lines:
        words = shlex.split(line)[1:]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (line, done.output)
        said[line] = done.output
        if words[0] == "init":
            monkeypatch.chdir(tmp_path / words[1])
    shown = re.findall(r"^    (INF\S+ .*)$", text, re.MULTILINE)
    printed = said["lpf review queue"].splitlines()
    assert [line.split()[:2] for line in shown] == [line.split()[:2] for line in printed[1:3]]
    assert "disputed" in said["lpf review show INF00000002"]
    assert "2 answers would become facts" in said["lpf review apply --as facts --dry-run"]
    with Workspace.open() as workspace:
        assert workspace.facts.count() == 0
        stored = workspace.evidence.page()
        labels = {one.evidence.supports_value for one in stored}
        assert labels == {"supported", "refuted", None}
        assert verify(workspace.database).ok
