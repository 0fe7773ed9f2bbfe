"""``lpf monitor``: can the model's probabilities still be trusted?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    check_page,
    command,
    exit_check_failed,
    open_workspace,
    parse_time,
    print_document,
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
from lpf.errors import ConfigError, LPFError


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf monitor",
        "lpf monitor --outcomes outcomes.csv --html monitor.html",
        "lpf monitor --since 2026-01-01 --window 30d --json",
    )(monitor)


def monitor(
    outcomes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of outcomes: JSONL, CSV, Excel or Parquet. By default the known facts.",
        ),
    ] = None,
    predicate: Annotated[
        str | None, typer.Option(help="Only this predicate. The verdict is not stored.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Only answers and outcomes from then on; not stored either."
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Size of windows: 100 (outcomes) or 30d (days)."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with charts.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save/--no-save", help="Store the verdict, so that answers show it.")
    ] = True,
    columns: Columns = None,
    date_format: DateFormat = None,
    encoding: FileEncoding = None,
    sheet: Sheet = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Score recorded answers whose outcome is known now, and say whether the model's probabilities
    can still be trusted.

    Texts, answers and sources are compared with training too. Exit code 1 if answers are worse than
    promised.
    """
    if html is not None:
        check_page(html)
        if outcomes is not None and html.exists() and outcomes.exists() and html.samefile(outcomes):
            raise ConfigError(
                f"{html} is the file of outcomes, which the page would overwrite. Nothing was "
                "computed.",
                field="--html",
            )
    options = file_options(columns, encoding, sheet, date_format, predicate)
    with open_workspace(workspace) as space, file_fields_as_given(), _fields_as_given():
        if outcomes is None:
            options.refuse("known facts, which come from no file")
        found = space.monitor(
            outcomes,
            predicate=predicate,
            since=parse_time(since, "--since"),
            window=window,
            options=None if outcomes is None else options,
            save=save,
        )
    if html is not None:
        from lpf.report.monitor_page import monitor_page
        from lpf.storage.atomic_files import write_atomically

        write_atomically(html, monitor_page(found).encode())
    if as_json:
        print_document(found.to_dict())
    else:
        from lpf.cli.monitor_view import show_monitoring
        from lpf.cli.terminal import console

        show_monitoring(console(), found)
        if html is not None:
            typer.echo(f"The page is in {one_line(html)}.")
    if found.is_worse_than_promised:
        exit_check_failed()


@contextmanager
def _fields_as_given() -> Iterator[None]:
    """Rename the field in errors as the user wrote it."""
    try:
        yield
    except LPFError as error:
        if error.field in ("predicate", "window"):
            error.field = f"--{error.field}"
        raise
