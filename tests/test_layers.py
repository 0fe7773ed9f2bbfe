"""The import graph: no room knows a room above it, and answering needs no torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "lpf"
# The layers, lowest first. A room may import only from the rooms before it.
ROOMS = (
    "errors",
    "version",
    "types",
    "items",
    "schema",
    "results",
    "reading",
    "metrics",
    "model",
    "factors",
    "combine",
    "circuits",
    "storage",
    "engine",
    "datasets",
    "index",
    "ledger",
    "ingest",
    "orchestrator",
    "domains",
    "training",
    "baselines",
    "workspace",
    "classifier",
    "evaluation",
    "report",
    "cli",
)
HEIGHT = {room: height for height, room in enumerate(ROOMS)}


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of this package that a file names, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    parts = [name.split(".") for name in names]
    assert not {split[0] for split in parts} & {"lpf_paper"}, f"{path}: lpf must not need lpf_paper"
    return {split[1] for split in parts if split[0] == "lpf" and len(split) > 1} & HEIGHT.keys()


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_import_goes_upwards(path: Path) -> None:
    room = room_of(path)
    assert room in HEIGHT, f"{room} has no place in the layers; decide where it belongs"
    for other in imported_rooms(path) - {room}:
        assert HEIGHT[other] < HEIGHT[room], f"{room} imports {other}, which is above it"


def test_every_room_exists() -> None:
    assert {room_of(path) for path in modules()} == set(ROOMS)


@pytest.mark.parametrize(
    "program",
    [
        "import lpf",
        "import lpf; lpf.Schema; lpf.Engine; lpf.QueryOptions; lpf.open_reader",
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
