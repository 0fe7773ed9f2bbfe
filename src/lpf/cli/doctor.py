"""``lpf doctor``: what is wrong with a workspace, and how to fix it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, exit_check_failed, print_document

if TYPE_CHECKING:
    from lpf.workspace.doctor import Check

STYLES = {"ok": "green", "warning": "yellow", "fault": "bold red"}


def register(app: typer.Typer) -> None:
    command(app, "lpf doctor", "lpf doctor --full --json")(doctor)


def doctor(
    full: Annotated[
        bool, typer.Option("--full", help="Verify the whole ledger and store; this takes longer.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Check every part of the workspace. Exit code 1 if one of them has a fault."""
    from lpf.workspace.doctor import check_workspace

    checks = check_workspace(workspace, full=full)
    faults = sum(check.state == "fault" for check in checks)
    if as_json:
        print_document({"ok": not faults, "checks": [asdict(check) for check in checks]})
    else:
        _show(checks)
    if faults:
        exit_check_failed()


def _show(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    from lpf.cli.safe_output import one_line
    from lpf.cli.terminal import console, with_short_readers

    body = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for column in range(3):
        body.add_column(no_wrap=column < 2, overflow="fold")
    for check in checks:
        message = Text(one_line(with_short_readers(check.message)))
        if check.remedy:
            message.append(f"\n→ {one_line(check.remedy)}")
        body.add_row(Text(check.state, STYLES[check.state]), Text(check.name), message)
    output = console()
    output.print(Text(_verdict(checks), style="bold"))
    output.print(body)


def _verdict(checks: list[Check]) -> str:
    faults, warnings = (
        sum(check.state == state for check in checks) for state in ("fault", "warning")
    )
    counts = [f"{number} {name}{'s' * (number > 1)}" for number, name in
              ((faults, "fault"), (warnings, "warning")) if number]  # fmt: skip
    return f"{' and '.join(counts)} found" if counts else "Everything is in order"
