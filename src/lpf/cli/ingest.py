"""``lpf ingest``: add evidence from files to the store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    command,
    exit_check_failed,
    open_workspace,
    print_document,
    progress,
)
from lpf.cli.exits import (
    EXIT_WRONG_CALL,
    Failure,
    InterruptedCommand,
    PartlyFailedError,
    failure_of,
)
from lpf.cli.options import (
    Columns,
    DateFormat,
    FileEncoding,
    Sheet,
    file_fields_as_given,
    file_options,
)
from lpf.cli.safe_output import one_line
from lpf.errors import ConfigError, InputFileError

if TYPE_CHECKING:
    from lpf.ingest import FileOptions, IngestOutcome, Problem
    from lpf.workspace import Workspace

PROBLEMS_SHOWN = 5
COUNTS = ("read", "added", "updated", "unchanged", "rejected")


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf ingest evidence.jsonl",
        "lpf ingest *.csv --strict",
        "lpf ingest notes.xlsx --sheet 2026 --map Customer=entity_id --date-format DD/MM/YYYY",
    )(ingest)


def ingest(
    files: Annotated[
        list[Path], typer.Argument(help="Files: JSONL, CSV, Excel or Parquet.", metavar="FILE")
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="Add nothing from a file that has a row with an error.")
    ] = False,
    predicate: Annotated[
        str | None, typer.Option(help="Predicate of rows and labels that name none.")
    ] = None,
    columns: Columns = None,
    date_format: DateFormat = None,
    encoding: FileEncoding = None,
    sheet: Sheet = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Add evidence. Items already in the store are skipped, changed items get a new version, and
    rows with errors go to a rejects file.

    A row needs entity_id, text and, unless the schema has only one, predicate. It may have
    evidence_id, credibility, timestamp, source, claim, report_id, evidence_type, supports_value. A
    data set, with one entity per line, is read too.
    """
    run = IngestRun(strict, file_options(columns, encoding, sheet, date_format, predicate))
    try:
        with open_workspace(workspace) as space:
            if predicate is not None:
                space.predicate(predicate)
            for path in files:
                run.ingest(space, path)
    finally:
        # Also if a later file fails: what was added before is in the store.
        if run.outcomes and not as_json:
            _show(run.outcomes)
    if run.errors:
        raise run.failure()
    if as_json:
        print_document({"files": run.documents})
    if run.nothing_usable:
        exit_check_failed()


class IngestRun:
    """Ingests file after file; one that cannot be read does not stop the others."""

    def __init__(self, strict: bool, options: FileOptions) -> None:
        self._strict, self._options = strict, options
        self.outcomes: list[tuple[Path, IngestOutcome]] = []
        self.errors: list[Failure] = []
        self.documents: list[dict[str, Any]] = []

    def ingest(self, workspace: Workspace, path: Path) -> None:
        try:
            outcome = self._ingest_counting(workspace, path)
        except (InputFileError, ConfigError, OSError) as error:
            failure = failure_of(error)
            if failure.code != EXIT_WRONG_CALL:
                raise
            self.errors.append(failure)
            self.documents.append({"file": str(path), "error": failure.document()})
        else:
            self.outcomes.append((path, outcome))
            self.documents.append(_document(path, outcome))

    def _ingest_counting(self, workspace: Workspace, path: Path) -> IngestOutcome:
        rows = 0

        def counted(done: int, total: int | None) -> None:
            nonlocal rows
            rows = done
            report(done, total)

        try:
            with progress(f"reading {path.name}") as report, file_fields_as_given():
                return workspace.ingest(
                    path, strict=self._strict, progress=counted, options=self._options
                )
        except KeyboardInterrupt:
            raise self._interruption(path, rows) from None

    def _interruption(self, path: Path, rows: int) -> InterruptedCommand:
        complete = f" and {len(self.outcomes):,} complete file(s)" if self.outcomes else ""
        message = (
            f"interrupted; {rows:,} rows of {path}{complete} are done and stay. Repeat the command "
            "to finish."
        )
        unfinished = {"file": str(path), "interrupted": True, "read": rows}
        return InterruptedCommand(message, files=[*self.documents, unfinished])

    def failure(self) -> PartlyFailedError:
        """All files that failed; the others were added."""
        messages = "\n".join(failure.message for failure in self.errors)
        return PartlyFailedError(replace(self.errors[0], message=messages), files=self.documents)

    @property
    def nothing_usable(self) -> bool:
        """Return True if rows were rejected, and none was added or in the store already."""
        outcomes = [outcome for _, outcome in self.outcomes]
        useful = sum(one.added + one.updated + one.unchanged for one in outcomes)
        return not useful and any(outcome.rejected for outcome in outcomes)


def _document(path: Path, outcome: IngestOutcome) -> dict[str, Any]:
    rejects = outcome.rejects_file
    return {
        "file": str(path),
        **{name: getattr(outcome, name) for name in COUNTS},
        "rejects_file": None if rejects is None else str(rejects),
        "dated_later": outcome.dated_later,
        "cut": outcome.cut,
        "read_as": list(outcome.read_as),
        "notes": list(outcome.notes),
        "ignored_columns": list(outcome.ignored_columns),
        "did_you_mean": dict(outcome.meant),
        "seconds": outcome.seconds,
        "problems": [_problem(problem) for problem in outcome.problems],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    plain = {name: getattr(problem, name) for name in ("line", "field", "error")}
    return {**plain, "errors": problem.errors}


def _show(outcomes: list[tuple[Path, IngestOutcome]]) -> None:
    from rich.text import Text

    from lpf.cli.terminal import console, indented, table

    output = console()
    rows = [[path.name, *_counted(outcome), f"{outcome.seconds:.1f}"] for path, outcome in outcomes]
    numbers = (*COUNTS, "seconds")
    output.print(indented(table(("file", *numbers), rows, right=numbers)))
    for _, outcome in outcomes:
        for line in _notes(outcome):
            output.print(Text(f"  {one_line(line)}"), soft_wrap=True)


def _counted(outcome: IngestOutcome) -> list[str]:
    return [f"{getattr(outcome, name):,}" for name in COUNTS]


def _not_used(outcome: IngestOutcome) -> str:
    """The columns, each with the field it may be a typo of."""
    typos = {name: f"{name} (did you mean {field}?)" for name, field in outcome.meant.items()}
    return ", ".join(typos.get(name, name) for name in outcome.ignored_columns)


def _notes(outcome: IngestOutcome) -> list[str]:
    lines = [str(problem) for problem in outcome.problems[:PROBLEMS_SHOWN]]
    hidden = outcome.rejected - len(lines)
    if lines:
        more = f"; {hidden:,} more are listed there" if hidden > 0 else ""
        lines.append(f"rejected rows are in {outcome.rejects_file}{more}")
    if outcome.read_as:
        lines.append(f"read as: {', '.join(outcome.read_as)}")
    if outcome.ignored_columns:
        lines.append(f"columns not used: {_not_used(outcome)}")
    if outcome.dated_later:
        lines.append(f"{outcome.dated_later:,} dated in the future: they count from that date on")
    if outcome.cut:
        lines.append(
            f"{outcome.cut:,} longer than the reader of this workspace's model reads: the end of "
            "their texts does not count"
        )
    return [*lines, *outcome.notes]
