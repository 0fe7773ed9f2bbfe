"""Which modules of the package one question passes through, in the order it first enters them.

``python -m benchmarks.query_path`` prints the path of one warm ``Workspace.query`` as a table. A
module counts if one of its functions runs; modules that are only imported do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import lpf

SOURCE = Path(lpf.__file__).parent


@dataclass(frozen=True)
class Visit:
    """A module, the first of its functions that ran, and how many of them ran in all."""

    module: str
    first: str
    functions: int


def modules_of(call: Callable[[], object]) -> list[Visit]:
    """The modules whose functions run during ``call``, on this thread, in order of first entry."""
    entered: dict[str, dict[str, None]] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            module = frame.f_globals["__name__"]
            entered.setdefault(module, {})[code.co_qualname] = None

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [Visit(module, next(iter(names)), len(names)) for module, names in entered.items()]


def imported() -> int:
    """How many modules of the package have been imported so far."""
    return sum(name == "lpf" or name.startswith("lpf.") for name in sys.modules)


def main() -> int:
    from benchmarks.durable import benchmark_workspace, without_cache

    with benchmark_workspace() as workspace:

        def ask() -> object:
            return workspace.query("C0000001", "level")

        first = modules_of(ask)
        cached = modules_of(ask)
        with without_cache(workspace):
            ask()
            visits = modules_of(ask)
    print("| module | enters at | functions that run |")
    print("|---|---|---|")
    for visit in visits:
        print(f"| `{visit.module}` | `{visit.first}` | {visit.functions} |")
    total = sum(visit.functions for visit in visits)
    print(f"\n{len(visits)} modules, {total} functions; {imported()} modules are imported.")
    print(f"With its factors in the cache: {len(cached)} modules. The first question after opening")
    print(f"the workspace, which loads the model and opens the ledger: {len(first)} modules.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
