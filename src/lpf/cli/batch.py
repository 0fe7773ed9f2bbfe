"""``lpf batch``: many questions from a file, one answer per line, in the same order."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    command,
    open_workspace,
    print_document,
    progress,
)
from lpf.cli.exits import FileName
from lpf.cli.options import (
    AskedBy,
    AsyncAudit,
    Columns,
    FileEncoding,
    Sheet,
    fields_as_given,
    file_fields_as_given,
    file_options,
    with_options,
)
from lpf.cli.safe_output import one_line
from lpf.errors import (
    ConfigError,
    InputFileError,
    LedgerError,
    LPFError,
    StorageError,
    StoreDamagedError,
)
from lpf.options import QueryOptions

if TYPE_CHECKING:
    from lpf.ingest import FileOptions
    from lpf.ingest.input_rows import InputRow
    from lpf.orchestrator import AuditMode
    from lpf.results import QueryResult
    from lpf.workspace import Workspace
    from lpf.workspace.answer_files import AnswerWriter, QuestionError


CHUNK = 1000


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One line of the input: a question, or what is wrong with it."""

    number: int
    entity_id: str = ""
    predicate: str = ""
    error: str | None = None

    @property
    def question(self) -> tuple[str, str]:
        return self.entity_id, self.predicate


def read_lines(
    workspace: Workspace, source: str, options: FileOptions | None = None
) -> list[BatchLine]:
    """All lines of a file or of standard input, each checked against the schema. Standard input is
    never written to a file: questions may be about people."""
    from lpf.ingest.input_files import open_input, open_lines

    if source == STANDARD:
        given = open_lines("standard input", sys.stdin.buffer.read(), options)
    else:
        given = open_input(source, options)
    return [_checked(workspace, row) for row in given.rows()]


def all_questions(workspace: Workspace, predicate: str | None) -> list[BatchLine]:
    """One line per entity with evidence or facts about ``predicate`` (None: about any)."""
    pairs = workspace.questions(predicate)
    return [BatchLine(number, *pair) for number, pair in enumerate(pairs, 1)]


class BatchAnswerer:
    """Answers lines, records the answers and counts them. With ``skip_bad`` a question that cannot
    be answered becomes an error row, else it ends the batch. ``after_failure`` then says what
    happened to the answers before it."""

    def __init__(
        self,
        workspace: Workspace,
        options: QueryOptions,
        *,
        audit: AuditMode,
        skip_bad: bool,
        after_failure: str,
    ) -> None:
        self._workspace = workspace
        self._options = options
        self._audit = audit
        self._skip_bad = skip_bad
        self._after_failure = after_failure
        self.answered = 0
        self.errors = 0
        self.asked = 0
        self.without_answer = 0
        # IDs like those of the first unknown entities, to suggest at the end.
        self.similar: dict[str, Sequence[str]] = {}

    def outcomes(self, lines: Sequence[BatchLine]) -> Iterator[QueryResult | QuestionError]:
        """An answer or an error per line, in their order."""
        from lpf.workspace.answer_files import QuestionError

        for start in range(0, len(lines), CHUNK):
            for outcome in self._chunk(lines[start : start + CHUNK]):
                if isinstance(outcome, BatchLine):
                    self.errors += 1
                    yield QuestionError(outcome.number, outcome.error or "")
                else:
                    self._count(outcome)
                    yield outcome

    def _count(self, result: QueryResult) -> None:
        if result.has_answer:
            self.answered += 1
            return
        self.without_answer += 1
        if result.similar is not None and len(self.similar) < PROBLEMS_SHOWN:
            self.similar[result.entity_id] = result.similar

    def _chunk(self, lines: Sequence[BatchLine]) -> Iterator[QueryResult | BatchLine]:
        """An answer per line, or the line with its error."""
        good = [line for line in lines if line.error is None]
        outcomes = iter(self._together(good) or map(self._alone, good))
        for line in lines:
            yield next(outcomes) if line.error is None else line

    def _together(self, lines: Sequence[BatchLine]) -> Sequence[QueryResult]:
        """Answer all lines at once; nothing is answered or recorded if one of them fails."""
        try:
            return self._ask(lines)
        except StoreDamagedError:  # rows about one entity, as a rule
            return ()
        except (StorageError, LedgerError) as error:
            raise self._with_place(lines[0], error) from None
        except LPFError:
            return ()

    def _alone(self, line: BatchLine) -> QueryResult | BatchLine:
        try:
            return self._ask([line])[0]
        except LPFError as error:
            # A store that fails would fail with every other line too; a damaged row does not.
            is_general = isinstance(error, StorageError | LedgerError)
            if self._skip_bad and (not is_general or isinstance(error, StoreDamagedError)):
                return replace(line, error=str(error))
            raise self._with_place(line, error) from None

    def _ask(self, lines: Sequence[BatchLine]) -> list[QueryResult]:
        questions = [line.question for line in lines]
        results = self._workspace.query_many(questions, self._options, self._audit)
        self.asked += len(results)
        return results

    def _with_place(self, line: BatchLine, error: LPFError) -> LPFError:
        """Add to the error where it ended the batch and what was done before it."""
        # With async records, writing one may be what failed.
        stay = "their records stay" if self._audit == "sync" else "what was recorded of them stays"
        done = f"{self.asked:,} answered before it; {stay}, and {self._after_failure}"
        error.args = (f"line {line.number} ended the batch: {error}\n{done}.",)
        error.field = error.hint = None  # they are part of the message now
        return error


def _checked(workspace: Workspace, row: InputRow) -> BatchLine:
    from lpf.ingest.row_fields import identifier_field, name_field, required

    if row.error:
        return BatchLine(row.line, error=row.error)
    try:
        entity_id = required(identifier_field(row.values, "entity_id"), "entity_id")
        predicate = workspace.predicate(name_field(row.values, "predicate"))
    except LPFError as error:
        return BatchLine(row.line, error=str(error))
    return BatchLine(row.line, entity_id, predicate)


STANDARD = "-"
PROBLEMS_SHOWN = 20


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf batch questions.jsonl answers.jsonl",
        "lpf batch questions.xlsx answers.xlsx",
        "lpf batch --all answers.csv",
        "lpf batch - - < questions.jsonl",
    )(with_options(QueryOptions, without=("query_text",))(batch))


def batch(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="IN OUT",
            parser=FileName,
            help="File of questions and file of answers; - is standard input or output. The suffix "
            "of OUT decides: .jsonl, .csv, .xlsx or .parquet. With --all there is no IN.",
        ),
    ],
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Ask about every entity that has evidence or facts.")
    ] = False,
    predicate: Annotated[
        str | None, typer.Option(help="With --all: only questions about this predicate.")
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Write an error row for a bad line and go on."),
    ] = False,
    columns: Columns = None,
    encoding: FileEncoding = None,
    sheet: Sheet = None,
    given: Mapping[str, Any],
    async_audit: AsyncAudit = False,
    asked_by: AskedBy = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Answer many questions: one row with entity_id and predicate in, one answer per row out.

    The rows keep their order. All of them are checked before the first is answered. A table (CSV,
    Excel, Parquet) has one column per value; JSONL has everything that lpf query --json prints.
    """
    from lpf.workspace.answer_files import AnswerWriter, answer_format

    source, target = _source_and_target(files, every, predicate)
    options = file_options(columns, encoding, sheet)
    if as_json and target == STANDARD:
        raise ConfigError(
            "the answers themselves go to standard output.", field="--json", hint="Leave it out."
        )
    if source is None:
        with file_fields_as_given():
            options.refuse("questions about all entities, which come from no file")
    form = answer_format(target)
    # The workspace is closed, and so everything is recorded, before the answers appear.
    with (
        answers_file(target, held_back=async_audit) as file,
        open_workspace(workspace, asked_by) as space,
        fields_as_given(QueryOptions, given),
    ):
        lines = _lines(space, source, options, predicate)
        bad = [line for line in lines if line.error is not None]
        if bad and not skip_bad:
            raise refusal(source or "", bad, len(lines))
        answerer = BatchAnswerer(
            space,
            replace(space.settings.query, **given),
            audit="async" if async_audit else "sync",
            skip_bad=skip_bad,
            after_failure=_after_failure(target, async_audit),
        )
        asked = dict.fromkeys(line.predicate for line in lines if line.error is None)
        writer = AnswerWriter(form, file, space.schema, asked, with_errors=skip_bad)
        _write(answerer, lines, writer)
    _show_counts(answerer, target, as_json)


def _source_and_target(
    files: Sequence[str], every: bool, predicate: str | None
) -> tuple[str | None, str]:
    """The file of questions (None with --all) and the file of answers."""
    if predicate is not None and not every:
        raise ConfigError(
            "applies with --all only; each question names its predicate.", field="--predicate"
        )
    wanted = ("OUT",) if every else ("IN", "OUT")
    if len(files) != len(wanted):
        raise ConfigError(
            f"expected {' and '.join(wanted)}, got {len(files)} file names. Nothing was answered.",
            field="IN OUT",
            hint="Without --all give a file of questions and a file of answers; with --all only "
            "the file of answers.",
        )
    return (None if every else files[0]), files[-1]


def _lines(
    workspace: Workspace, source: str | None, options: FileOptions, predicate: str | None
) -> list[BatchLine]:
    if source is None:
        return all_questions(workspace, predicate)
    with file_fields_as_given():
        return read_lines(workspace, source, options)


def _write(answerer: BatchAnswerer, lines: Sequence[BatchLine], writer: AnswerWriter) -> None:
    with closing(writer), progress("answering") as report:
        for done, outcome in enumerate(answerer.outcomes(lines), start=1):
            writer.write(outcome)
            report(done, len(lines))


def _after_failure(target: str, held_back: bool) -> str:
    """What happened to the answers before the question that ended the batch."""
    if target != STANDARD:
        return f"{target} was not written"
    return "nothing was printed" if held_back else "their answers were printed"


@contextmanager
def answers_file(target: str, *, held_back: bool) -> Iterator[IO[bytes]]:
    """A file that appears when it is complete; after a failure there is none. Standard output is
    written to at once, or when complete if ``held_back``: answers without a record must not be
    seen."""
    from lpf.storage.atomic_files import atomic_file

    if target != STANDARD:
        path = Path(target)
        if not path.parent.is_dir():
            raise ConfigError(f"{path}: its folder does not exist. Nothing was answered.")
        with atomic_file(path) as file:
            yield file
    elif held_back:
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
    else:
        yield sys.stdout.buffer
        sys.stdout.flush()


def refusal(source: str, bad: Sequence[BatchLine], total: int) -> InputFileError:
    name = "standard input" if source == STANDARD else source
    shown = "".join(f"\n  line {line.number}: {line.error}" for line in bad[:PROBLEMS_SHOWN])
    more = f"\n  and {len(bad) - PROBLEMS_SHOWN} more" if len(bad) > PROBLEMS_SHOWN else ""
    return InputFileError(
        f"{name}: {len(bad)} of {total} lines are not valid questions. Nothing was answered; fix "
        f"them, or skip them with --skip-bad:{shown}{more}"
    )


def _show_counts(answerer: BatchAnswerer, target: str, as_json: bool) -> None:
    if as_json:
        counts = ("answered", "without_answer", "errors")
        print_document({name: getattr(answerer, name) for name in counts} | {"file": target})
        return
    parts = [
        f"{answerer.answered:,} answered",
        f"{answerer.without_answer:,} without an answer" if answerer.without_answer else "",
        f"{answerer.errors:,} with an error" if answerer.errors else "",
    ]
    typer.echo(f"{', '.join(filter(None, parts))}.", err=target == STANDARD)
    if answerer.similar:
        _show_unknown(answerer.similar)


def _show_unknown(similar: Mapping[str, Sequence[str]]) -> None:
    """The first entities that nothing is known about, with IDs like theirs."""
    from rich.text import Text

    from lpf.cli.answer_view import did_you_mean
    from lpf.cli.terminal import Output

    output = Output(stderr=True, highlight=False, soft_wrap=True)
    for entity_id, names in similar.items():
        hint = f"; {did_you_mean(names)}" if names else ""
        output.print(Text(one_line(f"  no item and no fact is about {entity_id!r}{hint}")))
