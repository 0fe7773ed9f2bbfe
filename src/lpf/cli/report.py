"""``lpf report``: answer many questions and show on one page how sure the answers are, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.batch import BatchAnswerer, all_questions, read_lines, refusal
from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    check_page,
    command,
    open_workspace,
    print_document,
    progress,
)
from lpf.cli.exits import FileName
from lpf.cli.options import (
    AskedBy,
    Columns,
    FileEncoding,
    Sheet,
    fields_as_given,
    file_fields_as_given,
    file_options,
    with_options,
)
from lpf.cli.safe_output import one_line
from lpf.errors import ConfigError
from lpf.options import QueryOptions

if TYPE_CHECKING:
    from lpf.cli.batch import BatchLine
    from lpf.ingest import FileOptions
    from lpf.report.answers_report import AnswersContent
    from lpf.results import QueryResult
    from lpf.workspace import Workspace


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf report questions.csv --html report.html",
        "lpf report --all --html report.html",
    )(with_options(QueryOptions, without=("query_text",))(report))


def report(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            parser=FileName,
            help="File of questions, as for batch; - is standard input. With --all there is none.",
        ),
    ] = None,
    *,
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="The page to write.")],
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Answers",
    every: Annotated[
        bool, typer.Option("--all", help="Ask about every entity that has evidence or facts.")
    ] = False,
    predicate: Annotated[
        str | None, typer.Option(help="With --all: only questions about this predicate.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out bad lines instead of refusing the file.")
    ] = False,
    columns: Columns = None,
    encoding: FileEncoding = None,
    sheet: Sheet = None,
    given: Mapping[str, Any],
    asked_by: AskedBy = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Answer many questions and write a page: how sure the answers are, with examples explained.

    The answers are recorded like those of batch. The page needs no other file and no network.
    """
    from lpf.report.answers_report import answers_report
    from lpf.storage.atomic_files import write_atomically

    _check(file, html, every, predicate)
    options = file_options(columns, encoding, sheet)
    if file is None:
        with file_fields_as_given():
            options.refuse("questions about all entities, which come from no file")
    with (
        open_workspace(workspace, asked_by) as space,
        fields_as_given(QueryOptions, given),
    ):
        lines = _lines(space, file, options, predicate)
        bad = [line for line in lines if line.error is not None]
        if bad and not skip_bad:
            raise refusal(file or "", bad, len(lines))
        answerer = BatchAnswerer(
            space,
            replace(space.settings.query, **given),
            audit="sync",
            skip_bad=skip_bad,
            after_failure=f"{html} was not written",
        )
        content = _content(space, answerer, lines)
    write_atomically(html, answers_report(content, title).encode())
    if as_json:
        counts = ("answered", "without_answer", "errors")
        print_document({name: getattr(answerer, name) for name in counts} | {"file": str(html)})
        return
    parts = [
        f"{answerer.answered:,} answered",
        f"{answerer.without_answer:,} without an answer" if answerer.without_answer else "",
        f"{answerer.errors:,} with an error" if answerer.errors else "",
    ]
    typer.echo(f"{', '.join(filter(None, parts))}. The report is in {one_line(html)}.")


def _check(file: str | None, html: Path, every: bool, predicate: str | None) -> None:
    if (file is None) != every:
        raise ConfigError(
            "give a file of questions, or --all. Nothing was answered.",
            field="FILE",
            hint="'lpf batch' takes the same file.",
        )
    if predicate is not None and not every:
        raise ConfigError(
            "applies with --all only; each question names its predicate.", field="--predicate"
        )
    check_page(html)


def _lines(
    workspace: Workspace, file: str | None, options: FileOptions, predicate: str | None
) -> list[BatchLine]:
    if file is None:
        return all_questions(workspace, predicate)
    with file_fields_as_given():
        return read_lines(workspace, file, options)


def _content(
    workspace: Workspace, answerer: BatchAnswerer, lines: list[BatchLine]
) -> AnswersContent:
    from lpf.report.answers_report import answers_content
    from lpf.workspace.answer_files import QuestionError

    with progress("answering") as show:

        def answers() -> Iterator[QueryResult]:
            for done, outcome in enumerate(answerer.outcomes(lines), start=1):
                if not isinstance(outcome, QuestionError):
                    yield outcome
                show(done, len(lines))

        return answers_content(workspace, answers())
