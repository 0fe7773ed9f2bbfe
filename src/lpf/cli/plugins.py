"""Commands that other packages add to ``lpf``.

A package adds a command with an entry point in the group ``lpf.commands``. The entry point's name
is the command's name, and its object is a ``typer.Typer``::

    [project.entry-points."lpf.commands"]
    experiment = "lpf_paper.commands:app"

A plug-in is loaded only when its command is used or help lists it. If it cannot
be loaded, lpf prints a warning, and only that command is missing.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from lpf.cli.safe_output import one_line
from lpf.errors import ConfigError

GROUP = "lpf.commands"
# Commands of packages that belong to this project, so that a missing one can be explained.
KNOWN_PACKAGES = {"experiment": "lpf-paper"}


class PluginGroup(TyperGroup):
    """Adds the commands of plug-ins, in alphabetical order, after those of the group itself."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(name for name in _plugins() if name not in own and _is_usable(name))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """ConfigError if the command's package is missing or broken; None for an unknown name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        if cmd_name in _plugins():
            return load_plugin(cmd_name)
        if cmd_name in KNOWN_PACKAGES:
            package = KNOWN_PACKAGES[cmd_name]
            raise ConfigError(
                f"the command 'lpf {cmd_name}' is part of the package {package}, which is not "
                f"installed. Install it: pip install {package} (in a clone of the repository: "
                "pip install -e paper)."
            )
        return None


def load_plugin(name: str) -> Any:
    """The Click group of a plug-in. ConfigError names the plug-in if it cannot be loaded."""
    point = _plugins()[name]
    try:
        app = point.load()
        if not isinstance(app, typer.Typer):
            raise TypeError(f"{point.value} is not a typer.Typer")
        group = get_group(app)
    except Exception as error:  # a broken plug-in must not end lpf with a traceback
        package = "" if point.dist is None else f" of the package {point.dist.name}"
        raise ConfigError(
            f"the plug-in {name!r}{package} cannot be loaded: {type(error).__name__}: {error}. "
            "All other commands work; reinstall or remove the package."
        ) from error
    group.name = name
    return group


def _plugins() -> dict[str, EntryPoint]:
    """By name. Read each time: it takes a millisecond, and only unknown names and help need it."""
    return {point.name: point for point in sorted(entry_points(group=GROUP))}


def _is_usable(name: str) -> bool:
    """Return True if the plug-in can be loaded; print a warning if not."""
    try:
        load_plugin(name)
    except ConfigError as error:
        typer.echo(f"lpf: warning: {one_line(error)}", err=True)
        return False
    return True
