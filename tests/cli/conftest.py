"""A small real workspace, and a fixture that runs commands in it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import workspaces
from lpf.cli.main import app


@dataclass(frozen=True)
class Commands:
    """Runs ``lpf`` in this process, in one workspace."""

    folder: Path

    def __call__(self, *words: object, code: int = 0, stdin: str | None = None) -> Any:
        done = CliRunner().invoke(app, self.line(*words), input=stdin)
        assert done.exit_code == code, (done.output, done.exception)
        return done

    def json(self, *words: object, code: int = 0) -> Any:
        """The one document on standard output."""
        return json.loads(self(*words, "--json", code=code).stdout)

    def error(self, *words: object) -> str:
        """What standard error says about a wrong call; the JSON document must say the same."""
        done = self(*words, code=2)
        assert "Traceback" not in done.stderr
        output = self.json(*words, code=2)["error"]
        assert output["kind"]
        assert output["message"] in done.stderr
        return done.stderr

    def refused(self, *words: object) -> dict[str, Any]:
        """The error of a wrong call, as its JSON document has it."""
        error: dict[str, Any] = self.json(*words, code=2)["error"]
        return error

    def line(self, *words: object) -> list[str]:
        return [*map(str, words), "--workspace", str(self.folder)]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pristine") / "workspace"
    workspaces.make(folder).close()
    return folder


@pytest.fixture
def commands_in() -> type[Commands]:
    """For commands in a workspace that a test makes itself."""
    return Commands


@pytest.fixture
def lpf(pristine: Path, tmp_path: Path) -> Commands:
    """Commands in a workspace of their own: two entities, a model, no facts, no records."""
    shutil.copytree(pristine, tmp_path / "workspace")
    return Commands(tmp_path / "workspace")
