"""The form that CONTRIBUTING.md asks for: unique class names and files of moderate size."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lpf"
FILES = sorted(SOURCE.rglob("*.py"))


def test_class_names_are_unique() -> None:
    names = Counter(
        node.name
        for path in FILES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, count in names.items() if count > 1]


def test_no_file_is_a_monster() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert not [str(path) for path, count in lines.items() if count > 600]


def test_test_files_have_unique_names() -> None:
    """Pytest imports them by their bare names."""
    found = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "paper" / "tests").rglob("*.py")]
    names = Counter(path.name for path in found if path.name != "conftest.py")
    assert not [name for name, count in names.items() if count > 1]
