"""The command ``lpf``: all commands, in the order in which a new user needs them."""

from __future__ import annotations

from typing import Annotated

import typer

from lpf.cli import (
    batch,
    demo,
    doctor,
    domains,
    entities,
    evaluate,
    evidence,
    explain,
    facts,
    ingest,
    ledger,
    models,
    monitor,
    next_evidence,
    query,
    report,
    review,
    train,
)
from lpf.cli import init as initialise
from lpf.cli.exits import ErrorReportingGroup, InterruptibleTyper
from lpf.cli.plugins import PluginGroup
from lpf.version import __version__

COMMANDS = (
    *(demo, initialise, ingest, train, query, explain, next_evidence),
    *(batch, report, entities, evaluate, monitor, doctor),
)
# Commands with subcommands; help has them last.
GROUPS = (facts, evidence, ledger, review, models, domains)


class _Commands(PluginGroup, ErrorReportingGroup):
    """The commands of lpf, and those of installed plug-ins."""


app = InterruptibleTyper(
    name="lpf",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Fuse several noisy texts about one entity into one calibrated, explained answer.",
    epilog="Example: [bold]lpf demo[/bold]  ·  [bold]lpf query C0001 compliance_level[/bold]",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lpf {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Options before a command."""


for module in COMMANDS:
    module.register(app)
for module in GROUPS:
    app.add_typer(module.app)
