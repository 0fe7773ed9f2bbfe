"""The command line: a thin layer over the library.

The names below are for packages that add a command to ``lpf``; see ``lpf.cli.plugins``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpf.cli.common import AsJson, command, group, print_document
    from lpf.cli.evaluate import Keep, Workers
    from lpf.cli.progress import results_folder, watched
    from lpf.cli.terminal import console, table

_HOMES = {
    "AsJson": "lpf.cli.common",
    "Keep": "lpf.cli.evaluate",
    "Workers": "lpf.cli.evaluate",
    "command": "lpf.cli.common",
    "console": "lpf.cli.terminal",
    "group": "lpf.cli.common",
    "print_document": "lpf.cli.common",
    "results_folder": "lpf.cli.progress",
    "table": "lpf.cli.terminal",
    "watched": "lpf.cli.progress",
}

__all__ = [
    "AsJson",
    "Keep",
    "Workers",
    "command",
    "console",
    "group",
    "print_document",
    "results_folder",
    "table",
    "watched",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
