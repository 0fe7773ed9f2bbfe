"""``lpf batch``: many questions from a file, one answer per line, in the same order."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    command,
    json_line,
    open_workspace,
    print_document,
    progress,
)
from lpf.cli.options import AskedBy, AsyncAudit, fields_as_given, with_options
from lpf.cli.safe_output import one_line
from lpf.errors import ConfigError, InputFileError, LedgerError, LPFError, StorageError
from lpf.options import QueryOptions

if TYPE_CHECKING:
    from lpf.ingest.input_files import InputRow
    from lpf.orchestrator import AuditMode
    from lpf.results import QueryResult
    from lpf.workspace import Workspace


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

    @property
    def error_row(self) -> dict[str, Any]:
        return {"error": {"line": self.number, "message": self.error}}


def read_lines(workspace: Workspace, source: str) -> list[BatchLine]:
    """All lines of a file or of standard input, each checked against the schema. Standard input is
    never written to a file: questions may be about people."""
    from lpf.ingest.input_files import open_input, open_lines

    if source == STANDARD:
        given = open_lines("standard input", sys.stdin.buffer.read())
    else:
        given = open_input(source)
    return [_checked(workspace, row) for row in given.rows()]


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

    def rows(self, lines: Sequence[BatchLine]) -> Iterator[dict[str, Any]]:
        """One row per line, in their order."""
        for start in range(0, len(lines), CHUNK):
            for outcome in self._chunk(lines[start : start + CHUNK]):
                if isinstance(outcome, BatchLine):
                    self.errors += 1
                    yield outcome.error_row
                else:
                    self._count(outcome)
                    yield outcome.to_dict()

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
        except (StorageError, LedgerError) as error:
            raise self._with_place(lines[0], error) from None
        except LPFError:
            return ()

    def _alone(self, line: BatchLine) -> QueryResult | BatchLine:
        try:
            return self._ask([line])[0]
        except LPFError as error:
            # A store that fails would fail with every other line too.
            if self._skip_bad and not isinstance(error, StorageError | LedgerError):
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
        "lpf batch - - < questions.jsonl",
    )(with_options(QueryOptions, without=("query_text",))(batch))


def batch(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="File of questions; - is standard input.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="OUT", help="File of answers; - is standard output.")
    ],
    *,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Write an error row for a bad line and go on."),
    ] = False,
    given: Mapping[str, Any],
    async_audit: AsyncAudit = False,
    asked_by: AskedBy = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Answer many questions: one line with entity_id and predicate in, one answer per line out.

    The lines keep their order. All of them are checked before the first is answered.
    """
    if as_json and target == STANDARD:
        raise ConfigError(
            "the answers themselves go to standard output.", field="--json", hint="Leave it out."
        )
    # The workspace is closed, and so everything is recorded, before the answers appear.
    with (
        answers_file(target, held_back=async_audit) as file,
        open_workspace(workspace, asked_by) as space,
        fields_as_given(QueryOptions, given),
    ):
        lines = read_lines(space, source)
        bad = [line for line in lines if line.error is not None]
        if bad and not skip_bad:
            raise _refusal(source, bad, len(lines))
        answerer = BatchAnswerer(
            space,
            replace(space.settings.query, **given),
            audit="async" if async_audit else "sync",
            skip_bad=skip_bad,
            after_failure=_after_failure(target, async_audit),
        )
        _write(answerer, lines, file)
    _show_counts(answerer, target, as_json)


def _write(answerer: BatchAnswerer, lines: Sequence[BatchLine], file: IO[str]) -> None:
    with progress("answering") as report:
        for done, row in enumerate(answerer.rows(lines), start=1):
            file.write(json_line(row) + "\n")
            report(done, len(lines))


def _after_failure(target: str, held_back: bool) -> str:
    """What happened to the answers before the question that ended the batch."""
    if target != STANDARD:
        return f"{target} was not written"
    return "nothing was printed" if held_back else "their answers were printed"


@contextmanager
def answers_file(target: str, *, held_back: bool) -> Iterator[IO[str]]:
    """A file that appears when it is complete; after a failure there is none. Standard output is
    written to at once, or when complete if ``held_back``: answers without a record must not be
    seen."""
    if target != STANDARD:
        with _whole_file(Path(target)) as file:
            yield file
    elif held_back:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            yield file
            file.seek(0)
            shutil.copyfileobj(file, sys.stdout)
    else:
        yield sys.stdout


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[str]]:
    from lpf.storage.atomic_files import atomic_file

    if not path.parent.is_dir():
        raise ConfigError(f"{path}: its folder does not exist. Nothing was answered.")
    with atomic_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
        yield text
        text.flush()
        text.detach()


def _refusal(source: str, bad: Sequence[BatchLine], total: int) -> InputFileError:
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
