"""What all commands share: the two options, how a failure is told, where output goes."""

from __future__ import annotations

import errno
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, cast

import typer
from typer.core import TyperGroup

from lpf.errors import ConfigError, LPFError

if TYPE_CHECKING:
    from lpf.workspace import Workspace

Arguments = ParamSpec("Arguments")
Report = Callable[[int, int | None], None]

THE_ANSWER_IS_NO = 1
THE_CALL_IS_WRONG = 2
THE_PROGRAM_IS_WRONG = 3
REPORT_IT = (
    "this is a fault of lpf, not of the call. Please report it with what standard error says."
)
# Older versions of Typer raise Click's errors, newer ones their own; the parent of the one that is
# exported is right for all of them.
USAGE_ERROR = cast(type[Exception], typer.BadParameter.__mro__[1])

AS_DOCUMENT = "lpf.as_json"

WorkspaceFolder = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="The workspace; by default the nearest folder with lpf.toml, from here upwards.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def group(name: str, summary: str) -> typer.Typer:
    """A command that only has commands."""
    return typer.Typer(name=name, help=summary, no_args_is_help=True, rich_markup_mode="rich")


class Program(TyperGroup):
    """All commands. With ``--json`` a call that Typer refuses, before any command runs, is one
    document too, beside the usage on standard error."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        as_json = "--json" in args  # now: parsing takes the words away
        with _usage_as_document(as_json):
            context = super().make_context(info_name, args, *more, **extra)
        context.meta[AS_DOCUMENT] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        with _usage_as_document(ctx.meta[AS_DOCUMENT]):
            return super().invoke(ctx)


@contextmanager
def _usage_as_document(as_json: bool) -> Iterator[None]:
    try:
        yield
    except USAGE_ERROR as error:
        if as_json:
            message = cast(typer.BadParameter, error).format_message()
            print_document({"error": {"kind": "UsageError", "message": message}})
        raise


def command(
    app: typer.Typer, *examples: str, name: str | None = None
) -> Callable[[Callable[Arguments, None]], Callable[Arguments, None]]:
    """Registers a command with examples in its help. What it raises on purpose becomes a message
    and exit code 2, what it raises otherwise a traceback and exit code 3."""
    lines = "  ·  ".join(f"[bold]{example}[/bold]" for example in examples)

    def register(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
        @wraps(function)
        def told_plainly(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except (typer.Exit, typer.Abort, BrokenPipeError, USAGE_ERROR):
                raise  # ends of a command that Typer knows
            except Exception as error:
                _fail(error, bool(kwargs.get("as_json")))

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


def confirm(what: str, yes: bool) -> None:
    """Asks before something is destroyed for good; where nobody can be asked, wants --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{what}: erasing cannot be undone; say --yes. Nothing was erased.")
    typer.confirm(f"Erase {what} for good?", abort=True, err=True)


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


def _fail(error: Exception, as_json: bool) -> NoReturn:
    kind, message, code = _described(error)
    if as_json:
        print_document({"error": {"kind": kind, "message": message}})
    if code == THE_PROGRAM_IS_WRONG:
        traceback.print_exception(error)
    typer.echo(f"lpf: {message}", err=True)
    raise typer.Exit(code)


def _described(error: Exception) -> tuple[str, str, int]:
    """Its kind, what to say of it, and the exit code."""
    if isinstance(error, LPFError):
        return type(error).__name__, str(error), THE_CALL_IS_WRONG
    # Only what concerns a file the user can name, or a full disk; all else is a fault of ours.
    if isinstance(error, OSError) and (error.filename or error.errno == errno.ENOSPC):
        return "FileError", f"{error.filename or 'output'}: {error.strerror}.", THE_CALL_IS_WRONG
    return "InternalError", f"{type(error).__name__}: {error}: {REPORT_IT}", THE_PROGRAM_IS_WRONG
