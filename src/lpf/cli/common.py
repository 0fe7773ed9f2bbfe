"""What all commands share: the two options, and where output goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from lpf.cli.exits import EXIT_CHECK_FAILED
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.workspace import Workspace

Arguments = ParamSpec("Arguments")
Report = Callable[[int, int | None], None]

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


def command(
    app: typer.Typer, *examples: str, name: str | None = None
) -> Callable[[Callable[Arguments, None]], Callable[Arguments, None]]:
    """Registers a command with examples in its help."""
    lines = "  ·  ".join(f"[bold]{example}[/bold]" for example in examples)

    def register(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
        return app.command(name, epilog=f"Example: {lines}")(function)

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
    raise typer.Exit(EXIT_CHECK_FAILED)


def confirm(what: str, yes: bool) -> None:
    """Asks before something is destroyed for good; where nobody can be asked, wants --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{what}: erasing cannot be undone; say --yes. Nothing was erased.")
    try:
        typer.confirm(f"Erase {what} for good?", abort=True, err=True)
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # no answer is not the answer no
            raise KeyboardInterrupt("interrupted; nothing was erased.") from None
        raise


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
