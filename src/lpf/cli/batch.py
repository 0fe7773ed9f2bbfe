"""``lpf batch``: many questions from a file, an answer a line.

The lines of a batch: questions read and checked, then answered in their order.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    as_line,
    command,
    opened,
    print_document,
    progress,
)
from lpf.cli.query_options import (
    Alpha,
    AsOf,
    AsyncAudit,
    Draws,
    Fallback,
    MinCredibility,
    Mode,
    Sampler,
    Samples,
    Seed,
    Temperature,
    TopK,
    Variant,
    changed,
    named_as_given,
    options_given,
)
from lpf.errors import ConfigError, InputFileError, LedgerError, LPFError, StorageError

if TYPE_CHECKING:
    from lpf.ingest.input_files import InputRow
    from lpf.orchestrator import AuditMode
    from lpf.results import QueryResult
    from lpf.types import QueryOptions
    from lpf.workspace import Workspace


CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input: a question, or what is wrong with it."""

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


def read_lines(workspace: Workspace, path: Path) -> list[Line]:
    """All lines of the input, each checked against the schema."""
    from lpf.ingest.input_files import open_input

    return [_checked(workspace, row) for row in open_input(path).rows()]


class Answering:
    """Answers lines and counts them; what is answered is recorded. With ``skip_bad`` a question
    that cannot be answered becomes an error row, else it ends the batch. ``fate`` says what then
    becomes of the answers before it."""

    def __init__(
        self,
        workspace: Workspace,
        options: QueryOptions,
        audit: AuditMode,
        skip_bad: bool,
        fate: str,
    ) -> None:
        self._workspace = workspace
        self._options = options
        self._audit = audit
        self._skip_bad = skip_bad
        self._fate = fate
        self.answered = 0
        self.errors = 0

    def rows(self, lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
        """One row a line, in their order."""
        for start in range(0, len(lines), CHUNK):
            for outcome in self._chunk(lines[start : start + CHUNK]):
                if isinstance(outcome, Line):
                    self.errors += 1
                    yield outcome.error_row
                else:
                    yield outcome.to_dict()

    def _chunk(self, lines: Sequence[Line]) -> Iterator[QueryResult | Line]:
        """What comes of each line: an answer, or the line with its error."""
        good = [line for line in lines if line.error is None]
        outcomes = iter(self._together(good) or map(self._alone, good))
        for line in lines:
            yield next(outcomes) if line.error is None else line

    def _together(self, lines: Sequence[Line]) -> Sequence[QueryResult]:
        """All answers; none, and no record, where one of the questions cannot be answered."""
        try:
            return self._asked(lines)
        except (StorageError, LedgerError) as error:
            raise self._ending(lines[0], error) from None
        except LPFError:
            return ()

    def _alone(self, line: Line) -> QueryResult | Line:
        try:
            return self._asked([line])[0]
        except LPFError as error:
            # A store that fails would fail with every other line too.
            if self._skip_bad and not isinstance(error, StorageError | LedgerError):
                return replace(line, error=str(error))
            raise self._ending(line, error) from None

    def _asked(self, lines: Sequence[Line]) -> list[QueryResult]:
        questions = [line.question for line in lines]
        results = self._workspace.query_many(questions, self._options, self._audit)
        self.answered += len(results)
        return results

    def _ending(self, line: Line, error: LPFError) -> LPFError:
        """The error itself, saying also where it ended the batch and what had been done by then."""
        # Records that are written later may be what failed.
        stay = "their records stay" if self._audit == "sync" else "what was recorded of them stays"
        done = f"{self.answered:,} answered before it; {stay}, and {self._fate}"
        error.args = (f"line {line.number} ended the batch: {error}\n{done}.",)
        return error


def _checked(workspace: Workspace, row: InputRow) -> Line:
    from lpf.ingest.row_fields import identifier_field, name_field, required

    if row.error:
        return Line(row.line, error=row.error)
    try:
        entity_id = required(identifier_field(row.values, "entity_id"), "entity_id")
        predicate = workspace.predicate(name_field(row.values, "predicate"))
    except LPFError as error:
        return Line(row.line, error=str(error))
    return Line(row.line, entity_id, predicate)


STANDARD = "-"
PROBLEMS_SHOWN = 20


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf batch questions.jsonl answers.jsonl",
        "lpf batch - - < questions.jsonl",
    )(batch)


def batch(
    source: Annotated[str, typer.Argument(metavar="IN", help="Questions; - is standard input.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Answers; - is standard output.")],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Answer the others, with a row for each error.")
    ] = False,
    variant: Variant = None,
    mode: Mode = None,
    sampler: Sampler = None,
    samples: Samples = None,
    temperature: Temperature = None,
    alpha: Alpha = None,
    uncertainty: Draws = None,
    fallback: Fallback = None,
    seed: Seed = None,
    top_k: TopK = None,
    min_credibility: MinCredibility = None,
    as_of: AsOf = None,
    async_audit: AsyncAudit = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Answer many questions: {"entity_id", "predicate"} a line in, one answer a line out.

    The lines keep their order. All of them are checked before the first is answered.
    """
    given = options_given(locals())
    if as_json and target == STANDARD:
        raise ConfigError("--json: the answers themselves are on standard output; leave it out.")
    # The workspace is closed, and so all is recorded, before the answers appear.
    with (
        answers_file(target, held_back=async_audit) as file,
        opened(workspace) as space,
        named_as_given(given),
    ):
        with _questions_file(source) as path:
            lines = read_lines(space, path)
        bad = [line for line in lines if line.error is not None]
        if bad and not skip_bad:
            raise _refusal(source, bad, len(lines))
        options = changed(space.settings.query, given)
        answering = Answering(
            space,
            options,
            "async" if async_audit else "sync",
            skip_bad,
            _fate(target, async_audit),
        )
        _write(answering, lines, file)
    _tell(answering.answered, answering.errors, target, as_json)


def _write(answering: Answering, lines: Sequence[Line], file: IO[str]) -> None:
    with progress("answering") as report:
        for done, row in enumerate(answering.rows(lines), start=1):
            file.write(as_line(row) + "\n")
            report(done, len(lines))


def _fate(target: str, held_back: bool) -> str:
    """What becomes of the answers before a question that ends the batch."""
    if target != STANDARD:
        return f"{target} was not written"
    return "nothing was printed" if held_back else "their answers were printed"


@contextmanager
def _questions_file(source: str) -> Iterator[Path]:
    """Standard input is put into a file first: it must be read whole before anything is asked."""
    if source != STANDARD:
        yield Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="lpf-") as folder:
        path = Path(folder) / "standard-input.jsonl"
        path.write_bytes(sys.stdin.buffer.read())
        yield path


@contextmanager
def answers_file(target: str, *, held_back: bool) -> Iterator[IO[str]]:
    """A file that appears when it is complete; after a failure there is none. Standard output is
    written to at once, or ``held_back`` likewise: what is not recorded yet must not be seen."""
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


def _refusal(source: str, bad: Sequence[Line], total: int) -> InputFileError:
    name = "standard input" if source == STANDARD else source
    shown = "".join(f"\n  line {line.number}: {line.error}" for line in bad[:PROBLEMS_SHOWN])
    more = f"\n  and {len(bad) - PROBLEMS_SHOWN} more" if len(bad) > PROBLEMS_SHOWN else ""
    return InputFileError(
        f"{name}: {len(bad)} of {total} lines cannot be asked. Nothing was answered; mend them, or "
        f"leave them out with --skip-bad:{shown}{more}"
    )


def _tell(answered: int, errors: int, target: str, as_json: bool) -> None:
    if as_json:
        print_document({"answered": answered, "errors": errors, "file": target})
    else:
        words = f"{answered:,} answered" + (f", {errors:,} not" if errors else "")
        typer.echo(f"{words}.", err=target == STANDARD)
