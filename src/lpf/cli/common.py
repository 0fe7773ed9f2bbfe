"""What all commands share: the two options, how a failure is told, where output goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from lpf.errors import ConfigError, LPFError

if TYPE_CHECKING:
    from lpf.workspace import Workspace

Arguments = ParamSpec("Arguments")
Report = Callable[[int, int | None], None]

THE_ANSWER_IS_NO = 1
THE_CALL_IS_WRONG = 2

WorkspaceFolder = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="The workspace; by default the nearest folder with lpf.toml, from here upwards.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def group(name: str, summary: str) -> typer.Typer:
    """A command that only has commands."""
    return typer.Typer(name=name, help=summary, no_args_is_help=True, rich_markup_mode="rich")


def command(
    app: typer.Typer, *examples: str, name: str | None = None
) -> Callable[[Callable[Arguments, None]], Callable[Arguments, None]]:
    """Registers a command with examples in its help. What it raises on purpose becomes a message
    and exit code 2."""
    lines = "  ·  ".join(f"[bold]{example}[/bold]" for example in examples)

    def register(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
        @wraps(function)
        def told_plainly(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except LPFError as error:
                _fail(type(error).__name__, str(error), bool(kwargs.get("as_json")))
            except OSError as error:
                # Only what concerns a file the user can name; anything else is a fault of ours.
                if error.filename is None:
                    raise
                message = f"{error.filename}: {error.strerror}."
                _fail("FileError", message, bool(kwargs.get("as_json")))

        return app.command(name, epilog=f"Example: {lines}")(told_plainly)

    return register


def opened(folder: Path | None) -> Workspace:
    """The workspace that ``--workspace`` names. Imported here, so that help needs none of it."""
    from lpf.workspace import Workspace

    return Workspace.open(folder)


def as_line(document: Any) -> str:
    """JSON on one line. All ASCII, so that no terminal or locale can spoil it."""
    return json.dumps(document, allow_nan=False)


def print_document(document: Any) -> None:
    """The one document of ``--json``."""
    typer.echo(json.dumps(document, allow_nan=False, indent=2))


def tell_of_limit(found: int, limit: int) -> None:
    """A list that was cut must not look complete."""
    if found == limit:
        typer.echo(f"These are the first {limit:,}; there may be more: --limit.", err=True)


def answer_no() -> None:
    """Ends the command: it was understood and done, and what was asked does not hold."""
    raise typer.Exit(THE_ANSWER_IS_NO)


def moment(text: str | None, option: str) -> datetime | None:
    """A time given on the command line; one without a zone is in UTC."""
    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{option}: must be a time such as 2026-01-25 or 2026-01-25T15:42:33+01:00, "
            f"got {text!r}."
        ) from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """A bar on standard error, gone when done; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _fail(kind: str, message: str, as_json: bool) -> None:
    if as_json:
        print_document({"error": {"kind": kind, "message": message}})
    typer.echo(f"lpf: {message}", err=True)
    raise typer.Exit(THE_CALL_IS_WRONG)
