"""``lpf batch``: many questions from a file, an answer a line."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    as_line,
    command,
    moment,
    opened,
    print_document,
    progress,
)
from lpf.cli.query import (
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
)
from lpf.errors import ConfigError, InputFileError, LPFError

if TYPE_CHECKING:
    from lpf.ingest.files import InputRow
    from lpf.types import QueryOptions
    from lpf.workspace import Workspace

STANDARD = "-"
CHUNK = 1000
PROBLEMS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input: a question, or what is wrong with it."""

    number: int
    entity_id: str = ""
    predicate: str = ""
    error: str | None = None


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
    given = {
        "variant": variant,
        "mode": mode,
        "sampler": sampler,
        "n_samples": samples,
        "temperature": temperature,
        "alpha": alpha,
        "uncertainty_samples": uncertainty,
        "fallback": fallback,
        "seed": seed,
        "top_k": top_k,
        "min_credibility": min_credibility,
        "as_of": moment(as_of, "--as-of"),
    }
    if as_json and target == STANDARD:
        raise ConfigError("--json: the answers themselves are on standard output; leave it out.")
    # The workspace is closed, and so all is recorded, before the answers appear.
    with whole_file(target) as file, opened(workspace) as space:
        lines = _read(space, source)
        bad = [line for line in lines if line.error is not None]
        if bad and not skip_bad:
            raise _refusal(source, bad, len(lines))
        options = changed(space.settings.query, given)
        _answer(space, lines, options, async_audit, file)
    _tell(len(lines), len(bad), target, as_json)


def _read(workspace: Workspace, source: str) -> list[Line]:
    """All lines of the input, each checked against the schema."""
    from lpf.ingest.files import open_input

    with _questions_file(source) as path:
        return [_checked(workspace, row) for row in open_input(path).rows()]


def _checked(workspace: Workspace, row: InputRow) -> Line:
    from lpf.ingest.fields import identifier_field, required, text_field
    from lpf.ingest.problems import RowError

    if row.error:
        return Line(row.line, error=row.error)
    try:
        entity_id = required(identifier_field(row.values, "entity_id"), "entity_id")
        predicate = workspace.predicate(text_field(row.values, "predicate"))
    except RowError as error:
        return Line(row.line, error=f"{error.name}: {error.message}")
    except LPFError as error:
        return Line(row.line, error=str(error))
    return Line(row.line, entity_id, predicate)


def _answer(
    workspace: Workspace,
    lines: Sequence[Line],
    options: QueryOptions,
    async_audit: bool,
    file: IO[str],
) -> None:
    with progress("answering") as report:
        for start in range(0, len(lines), CHUNK):
            chunk = lines[start : start + CHUNK]
            for row in _rows(workspace, chunk, options, async_audit):
                file.write(as_line(row) + "\n")
            report(start + len(chunk), len(lines))


def _rows(
    workspace: Workspace, lines: Sequence[Line], options: QueryOptions, async_audit: bool
) -> Iterator[dict[str, Any]]:
    """One row a line, in their order."""
    asked = [(line.entity_id, line.predicate) for line in lines if line.error is None]
    results = iter(workspace.query_many(asked, options, "async" if async_audit else "sync"))
    for line in lines:
        if line.error is None:
            yield next(results).to_dict()
        else:
            yield {"error": {"line": line.number, "message": line.error}}


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
def whole_file(target: str) -> Iterator[IO[str]]:
    """A file that appears when it is complete; after a failure there is none."""
    if target == STANDARD:
        yield sys.stdout
        return
    path = Path(target)
    if not path.parent.is_dir():
        raise ConfigError(f"{target}: its folder does not exist. Nothing was answered.")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _refusal(source: str, bad: Sequence[Line], total: int) -> InputFileError:
    name = "standard input" if source == STANDARD else source
    shown = "".join(f"\n  line {line.number}: {line.error}" for line in bad[:PROBLEMS_SHOWN])
    more = f"\n  and {len(bad) - PROBLEMS_SHOWN} more" if len(bad) > PROBLEMS_SHOWN else ""
    return InputFileError(
        f"{name}: {len(bad)} of {total} lines cannot be asked. Nothing was answered; mend them, or "
        f"leave them out with --skip-bad:{shown}{more}"
    )


def _tell(lines: int, bad: int, target: str, as_json: bool) -> None:
    if as_json:
        print_document({"answered": lines - bad, "errors": bad, "file": target})
    else:
        words = f"{lines - bad:,} answered" + (f", {bad:,} not" if bad else "")
        typer.echo(f"{words}.", err=target == STANDARD)
