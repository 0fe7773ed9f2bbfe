"""``lpf ingest``: evidence from files into the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    answer_no,
    command,
    opened,
    print_document,
    progress,
)
from lpf.cli.exits import THE_CALL_IS_WRONG, Interrupted, PartlyFailedError, described
from lpf.errors import InputFileError

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

    A row needs entity_id, text and, unless the schema has only one, predicate. It may have
    evidence_id, credibility, timestamp, source, claim, report_id, evidence_type, supports_value.
    """
    run = Run()
    try:
        with opened(workspace) as space:
            for path in files:
                run.take(space, path, strict)
    finally:
        # Also when a later file ends it: what was added before is in the store.
        if run.outcomes and not as_json:
            _show(run.outcomes)
    if run.errors:
        raise run.failure()
    if as_json:
        print_document({"files": run.documents})
    if run.nothing_usable:
        answer_no()


class Run:
    """What became of each file. One that cannot be read does not keep the others out."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[Path, IngestOutcome]] = []
        self.errors: list[tuple[str, str]] = []
        self.documents: list[dict[str, Any]] = []

    def take(self, workspace: Workspace, path: Path, strict: bool) -> None:
        try:
            outcome = self._ingested(workspace, path, strict)
        except (InputFileError, OSError) as error:
            kind, message, code = described(error)
            if code != THE_CALL_IS_WRONG:
                raise
            self.errors.append((kind, message))
            document = {"file": str(path), "error": {"kind": kind, "message": message}}
            self.documents.append(document)
        else:
            self.outcomes.append((path, outcome))
            self.documents.append(_document(path, outcome))

    def _ingested(self, workspace: Workspace, path: Path, strict: bool) -> IngestOutcome:
        rows = 0

        def counted(done: int, total: int | None) -> None:
            nonlocal rows
            rows = done
            report(done, total)

        try:
            with progress(f"reading {path.name}") as report:
                return workspace.ingest(path, strict=strict, progress=counted)
        except KeyboardInterrupt:
            raise self._interruption(path, rows) from None

    def _interruption(self, path: Path, rows: int) -> Interrupted:
        whole = f", after {len(self.outcomes):,} whole file(s)" if self.outcomes else ""
        message = (
            f"interrupted; what was read is kept, repeat to finish: {rows:,} rows of {path} were "
            f"dealt with{whole}."
        )
        unfinished = {"file": str(path), "interrupted": True, "read": rows}
        return Interrupted(message, files=[*self.documents, unfinished])

    def failure(self) -> PartlyFailedError:
        """All that went wrong; the others were taken."""
        messages = "\n".join(message for _, message in self.errors)
        return PartlyFailedError(self.errors[0][0], messages, files=self.documents)

    @property
    def nothing_usable(self) -> bool:
        """Whether rows were rejected, and nothing at all was taken or there already."""
        outcomes = [outcome for _, outcome in self.outcomes]
        useful = sum(outcome.added + outcome.unchanged for outcome in outcomes)
        return not useful and any(outcome.rejected for outcome in outcomes)


def _document(path: Path, outcome: IngestOutcome) -> dict[str, Any]:
    rejects = outcome.rejects_file
    return {
        "file": str(path),
        **{name: getattr(outcome, name) for name in COUNTS},
        "rejects_file": None if rejects is None else str(rejects),
        "dated_later": outcome.dated_later,
        "notes": list(outcome.notes),
        "ignored_columns": list(outcome.ignored_columns),
        "did_you_mean": dict(outcome.meant),
        "seconds": outcome.seconds,
        "problems": [_problem(problem) for problem in outcome.problems],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("line", "field", "error")}


def _show(outcomes: list[tuple[Path, IngestOutcome]]) -> None:
    from rich.markup import escape

    from lpf.cli.terminal import console, indented, table

    output = console()
    rows = [[path.name, *_counted(outcome), f"{outcome.seconds:.1f}"] for path, outcome in outcomes]
    numbers = (*COUNTS, "seconds")
    output.print(indented(table(("file", *numbers), rows, right=numbers)))
    for _, outcome in outcomes:
        for line in _remarks(outcome):
            output.print(escape(line), soft_wrap=True)


def _counted(outcome: IngestOutcome) -> list[str]:
    return [f"{getattr(outcome, name):,}" for name in COUNTS]


def _not_used(outcome: IngestOutcome) -> str:
    """The columns, each with the field that it may be a slip for."""
    slips = {name: f"{name} (did you mean {field}?)" for name, field in outcome.meant.items()}
    return ", ".join(slips.get(name, name) for name in outcome.ignored_columns)


def _remarks(outcome: IngestOutcome) -> list[str]:
    lines = [f"  {problem}" for problem in outcome.problems[:PROBLEMS_SHOWN]]
    hidden = outcome.rejected - len(lines)
    if lines:
        more = f"; {hidden:,} more there" if hidden > 0 else ""
        lines.append(f"  put aside in {outcome.rejects_file}{more}")
    if outcome.ignored_columns:
        lines.append(f"  columns not used: {_not_used(outcome)}")
    if outcome.dated_later:
        lines.append(f"  {outcome.dated_later:,} dated in the future: they count from then on")
    return [*lines, *(f"  {note}" for note in outcome.notes)]
