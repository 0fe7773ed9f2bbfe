"""One workspace for all tests of monitoring, copied for each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lpf.workspace import Workspace
from monitored_workspaces import make_monitored


@pytest.fixture(scope="session")
def monitored_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("monitored") / "w"
    make_monitored(folder).close()
    return folder


@pytest.fixture
def space(monitored_folder: Path, tmp_path: Path) -> Iterator[Workspace]:
    shutil.copytree(monitored_folder, tmp_path / "w")
    with Workspace(tmp_path / "w") as opened:
        yield opened
