"""lpf_paper uses only what lpf documents: names in ``__all__`` of lpf or of one of its packages."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import lpf
import lpf_paper

SOURCE = Path(lpf_paper.__file__).parent
LPF = Path(lpf.__file__).parent


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of every import from lpf; the name is empty for ``import lpf.x``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] == "lpf":
                yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names if one.name.split(".")[0] == "lpf")


def is_documented(module: str, name: str) -> bool:
    parts = module.split(".")
    if parts == ["lpf"]:
        return name in lpf.__all__ or (LPF / name / "__init__.py").is_file()
    if len(parts) > 2 or not name:
        return False
    if (LPF / f"{parts[1]}.py").is_file():  # a single module, such as lpf.errors: all its names
        return not name.startswith("_")
    return name in getattr(importlib.import_module(module), "__all__", ())


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_only_documented_names_are_imported(path: Path) -> None:
    hidden = [
        f"{module}.{name}" for module, name in imports(path) if not is_documented(module, name)
    ]
    assert not hidden, f"{path}: not in __all__ of lpf or one of its packages: {hidden}"


@pytest.mark.parametrize(
    ("module", "name", "documented"),
    [
        ("lpf", "Workspace", True),
        ("lpf", "metrics", True),
        ("lpf.errors", "ConfigError", True),
        ("lpf.evaluation", "Cell", True),
        ("lpf.evaluation.specs", "Cell", False),
        ("lpf.evaluation", "specs", False),
        ("lpf.evaluation", "", False),
    ],
)
def test_what_counts_as_documented(module: str, name: str, documented: bool) -> None:
    assert is_documented(module, name) == documented
