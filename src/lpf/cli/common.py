"""Options and output functions that all commands share."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from lpf.cli.exits import EXIT_CHECK_FAILED, CheckedCommand
from lpf.cli.safe_output import json_text, one_line, safe_streams
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.storage.seals import DamagedItem
    from lpf.workspace import Workspace

MOST_LISTED = 1_000_000
LARGEST_ID = 2**63 - 1  # of a row in the store

Arguments = ParamSpec("Arguments")
Report = Callable[[int, int | None], None]

WorkspaceFolder = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="Workspace folder. By default the nearest one with lpf.toml, from here upwards.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also show details for experts.")]


def group(name: str, summary: str) -> typer.Typer:
    """A command that only has subcommands."""
    return typer.Typer(name=name, help=summary, no_args_is_help=True, rich_markup_mode="rich")


def command(
    app: typer.Typer, *examples: str, name: str | None = None
) -> Callable[[Callable[Arguments, None]], Callable[Arguments, None]]:
    """Register a command with examples in its help."""
    lines = "  ·  ".join(f"[bold]{example}[/bold]" for example in examples)

    def register(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
        text = _unwrapped(function.__doc__ or "")
        epilog = f"Example: {lines}"
        return app.command(name, cls=CheckedCommand, help=text, epilog=epilog)(function)

    return register


def _unwrapped(docstring: str) -> str:
    """One line per paragraph: the terminal wraps it to its own width."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def open_workspace(folder: Path | None, asked_by: str | None = None) -> Workspace:
    """Open the workspace that ``--workspace`` names. Imported here, so that help stays fast."""
    from lpf.workspace import Workspace

    return Workspace.open(folder, asked_by=asked_by)


def json_line(document: Any) -> str:
    """JSON on one line, in ASCII."""
    return json_text(document)


def print_document(document: Any) -> None:
    """Print the one document of ``--json``."""
    typer.echo(json_text(document, indent=2))


def warn_if_cut(shown: int, limit: int) -> None:
    """A list that was cut must not look complete."""
    if shown == limit:
        typer.echo(f"Only the first {limit:,} are listed; use --limit to see more.", err=True)


def warn_of_damage(damaged: Sequence[DamagedItem]) -> None:
    """Items that were left out must not look as if they did not exist."""
    if damaged:
        from lpf.storage.seals import REMEDY, first_damaged

        typer.echo(f"warning: not shown: {first_damaged(damaged)}. {REMEDY}.", err=True)


def exit_check_failed() -> None:
    """End the command with exit code 1: it was carried out, and the check did not pass."""
    raise typer.Exit(EXIT_CHECK_FAILED)


def check_page(path: Path) -> None:
    """ConfigError unless a page can be written there, before anything is answered for it."""
    if not path.parent.is_dir():
        raise ConfigError(
            f"{path}: its folder does not exist. Nothing was answered.", field="--html"
        )
    if path.is_dir():
        raise ConfigError(f"{path} is a folder. Nothing was answered.", field="--html")


def confirm(what: str, yes: bool) -> None:
    """Ask before something is erased; without a terminal, require --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            f"{what}: erasing cannot be undone. Nothing was erased.", hint="Confirm with --yes."
        )
    try:
        typer.confirm(f"Erase {one_line(what)} permanently?", abort=True, err=True)
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # Ctrl-C is not the answer no
            raise KeyboardInterrupt("interrupted; nothing was erased.") from None
        raise


def parse_time(text: str | None, option: str) -> datetime | None:
    """Parse a time given on the command line; one without a zone is in UTC."""
    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"must be a time such as 2026-01-25 or 2026-01-25T15:42:33+01:00, got {text!r}.",
            field=option,
        ) from None
    try:
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except OverflowError:
        raise ConfigError(
            f"must be in the years 1 to 9999, in UTC, got {text!r}.", field=option
        ) from None


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """A bar on standard error that disappears when done; nothing if that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    from lpf.cli.terminal import Output

    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # The display redirects both streams to print above itself, so they are made safe again.
    with Progress(*columns, console=Output(stderr=True), transient=True) as bars, safe_streams():
        task = bars.add_task(one_line(what), total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
