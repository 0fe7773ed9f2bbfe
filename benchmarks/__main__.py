"""``python -m benchmarks [name ...]``: run all benchmarks or the named ones. A run of all
writes results.json.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Row

SUITES = ("engine", "integrators", "circuits", "reading", "durable", "large_store", "training")
RESULTS = Path(__file__).parent / "results.json"


def main(names: list[str]) -> int:
    unknown = set(names) - set(SUITES)
    if unknown:
        print(f"unknown benchmarks {sorted(unknown)}; choose from {SUITES}", file=sys.stderr)
        return 2
    console = Console(stderr=True)
    rows: list[Row] = []
    for suite in names or SUITES:
        with console.status(f"measuring {suite}"):
            rows += import_module(f"benchmarks.{suite}").run()
    show(rows)
    if not names:
        RESULTS.write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n")
        print(f"written to {RESULTS.relative_to(Path.cwd())}")
    return 0


def show(rows: list[Row]) -> None:
    table = Table()
    for heading in ("what", "value", "against", "ratio", "goal", "met"):
        table.add_column(heading, justify="right" if heading in ("value", "ratio") else "left")
    for row in rows:
        met = {True: "[green]yes[/green]", False: "[red]no[/red]", None: ""}[row.met]
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        table.add_row(row.name, f"{row.value:.4g} {row.unit}", row.reference, ratio, row.goal, met)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
