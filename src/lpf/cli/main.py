"""``lpf``: the commands. Each does what the library does and nothing more."""

from __future__ import annotations

from typing import Annotated

import typer

from lpf.version import __version__

app = typer.Typer(
    name="lpf",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Fuse several noisy texts about one entity into one calibrated, explained answer.",
    epilog="Example: [bold]lpf demo[/bold]  ·  [bold]lpf demo --json[/bold]",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lpf {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say and stop."),
    ] = False,
) -> None:
    """Options before a command."""


@app.command(epilog="Example: [bold]lpf demo --json[/bold]")
def demo(
    json: Annotated[
        bool, typer.Option("--json", help="One JSON document on standard output.")
    ] = False,
) -> None:
    """Answer the paper's worked question (how compliant is C0001?) from its five factors.

    Shows paper mode, robust mode, and robust mode with a known fact about a related predicate:
    each item's part in the answer, and how sure the answer is.
    """
    from lpf.cli import worked_example

    if json:
        typer.echo(worked_example.as_json())
    else:
        worked_example.show()
