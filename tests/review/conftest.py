"""A small real workspace, made once and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import workspaces
from lpf.workspace import Workspace


@pytest.fixture(scope="session")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """INF00000001 answers about C0001, INF00000002 about C0002."""
    folder = tmp_path_factory.mktemp("answered") / "workspace"
    with workspaces.make(folder) as made:
        made.query_many([("C0001", "level"), ("C0002", "level")])
    return folder


@pytest.fixture
def space(answered: Path, tmp_path: Path) -> Iterator[Workspace]:
    shutil.copytree(answered, tmp_path / "workspace")
    with Workspace.open(tmp_path / "workspace", asked_by="ann") as opened:
        yield opened
