"""``lpf ingest``: evidence from files into the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, opened, print_document, progress

if TYPE_CHECKING:
    from lpf.ingest import IngestOutcome, Problem
    from lpf.workspace import Workspace

PROBLEMS_SHOWN = 5
COUNTS = ("read", "added", "unchanged", "rejected")


def register(app: typer.Typer) -> None:
    command(app, "lpf ingest evidence.jsonl", "lpf ingest *.csv --strict")(ingest)


def ingest(
    files: Annotated[list[Path], typer.Argument(help="JSONL, CSV or Parquet.", metavar="FILE...")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Take nothing of a file with a row that is unusable.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Add evidence. What is there already is passed over; rows that cannot be used are put aside.

    A row needs entity_id, text_content and, unless the schema has only one, predicate. It may have
    evidence_id, credibility, timestamp, source, claim, report_id, evidence_type, supports_value.
    """
    outcomes: list[tuple[Path, IngestOutcome]] = []
    with opened(workspace) as space:
        try:
            outcomes.extend((path, _ingest_one(space, path, strict)) for path in files)
        finally:
            # Also when a later file fails: what was added before it is in the store.
            if outcomes and not as_json:
                _show(outcomes)
    if as_json:
        print_document({"files": [_document(path, outcome) for path, outcome in outcomes]})


def _ingest_one(workspace: Workspace, path: Path, strict: bool) -> IngestOutcome:
    with progress(f"reading {path.name}") as report:
        return workspace.ingest(path, strict=strict, progress=report)


def _document(path: Path, outcome: IngestOutcome) -> dict[str, Any]:
    rejects = outcome.rejects_file
    return {
        "file": str(path),
        **{name: getattr(outcome, name) for name in COUNTS},
        "rejects_file": None if rejects is None else str(rejects),
        "ignored_columns": list(outcome.ignored_columns),
        "seconds": outcome.seconds,
        "problems": [_problem(problem) for problem in outcome.problems],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("line", "field", "error")}


def _show(outcomes: list[tuple[Path, IngestOutcome]]) -> None:
    from rich.markup import escape

    from lpf.cli.rendering import console, indented
    from lpf.cli.tables import table

    output = console()
    rows = [[path.name, *_counted(outcome), f"{outcome.seconds:.1f}"] for path, outcome in outcomes]
    numbers = (*COUNTS, "seconds")
    output.print(indented(table(("file", *numbers), rows, right=numbers)))
    for _, outcome in outcomes:
        for line in _remarks(outcome):
            output.print(escape(line), soft_wrap=True)


def _counted(outcome: IngestOutcome) -> list[str]:
    return [f"{getattr(outcome, name):,}" for name in COUNTS]


def _remarks(outcome: IngestOutcome) -> list[str]:
    lines = [f"  {problem}" for problem in outcome.problems[:PROBLEMS_SHOWN]]
    hidden = outcome.rejected - len(lines)
    if lines:
        more = f"; {hidden:,} more there" if hidden > 0 else ""
        lines.append(f"  put aside in {outcome.rejects_file}{more}")
    if outcome.ignored_columns:
        lines.append(f"  columns not used: {', '.join(outcome.ignored_columns)}")
    return lines
