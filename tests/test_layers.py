"""The import graph: no room imports from a room above it, and answering needs no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "docs"))

from draw_architecture import (
    PICTURE,
    SOURCE,
    bands,
    draw,
    imported_names,
    imported_rooms,
    modules,
    room_of,
)

# The layers, lowest first, as CONTRIBUTING.md lists them.
ROOMS = [room for rooms in bands().values() for room in rooms]
HEIGHT = {room: height for height, room in enumerate(ROOMS)}


def test_contributing_lists_every_room_once_and_no_other() -> None:
    assert sorted(ROOMS) == sorted({room_of(path) for path in modules()})


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_import_goes_upwards(path: Path) -> None:
    room = room_of(path)
    for other in imported_rooms(path, set(ROOMS)):
        assert HEIGHT[other] < HEIGHT[room], f"{room} imports {other}, which is above it"
    assert not [name for name in imported_names(path) if name.startswith("lpf_paper")]


def test_the_diagram_matches_the_code() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw(), "run: python docs/draw_architecture.py"


@pytest.mark.parametrize(
    "program",
    [
        "import lpf",
        "import lpf; lpf.Schema; lpf.Workspace; lpf.QueryOptions; lpf.open_reader",
        "import lpf.engine, lpf.reading, lpf.circuits, lpf.combine.calibration, lpf.model.artefact",
        "import sys; sys.argv = ['lpf', '--help']\n"
        "from lpf.cli.main import app\n"
        "try: app()\nexcept SystemExit: pass",
    ],
)
def test_neither_torch_nor_transformers_is_imported(program: str) -> None:
    check = (
        "\nimport sys\nbad = {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
        "\nassert not bad, bad"
    )
    done = subprocess.run(
        [sys.executable, "-c", program + check], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_package_does_no_work() -> None:
    """Not even NumPy is loaded until something is asked for."""
    program = "import sys, lpf; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
