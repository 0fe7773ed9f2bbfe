"""``lpf models``: the trained models of a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, group, opened, print_document
from lpf.errors import LPFError

if TYPE_CHECKING:
    from lpf.workspace import Workspace

app = group("models", "Trained models: list, add, use.")


@command(app, "lpf models list", name="list")
def list_models(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """List the models that are here, and which one answers."""
    with opened(workspace) as space:
        found = [_described(space, version) for version in space.models.versions()]
    if as_json:
        print_document({"models": found})
    else:
        _show(found)


@command(app, "lpf models add trained/3f9c2a7b1d5e8046 --use")
def add(
    folder: Annotated[Path, typer.Argument(help="A model's folder.")],
    use: Annotated[
        bool, typer.Option("--use", help="Make it the one that answers, as the first one is.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Copy a model in, after checking every file of it."""
    with opened(workspace) as space:
        version = space.models.add(folder)
        if use or space.models.active() is None:
            space.use_model(version)
        active = space.models.active() == version
    _tell("added", version, active, as_json)


@command(app, "lpf models use 3f9c2a7b1d5e8046", name="use")
def use_model(
    version: Annotated[str, typer.Argument(help="As listed.")],
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a model the one that answers."""
    with opened(workspace) as space:
        space.use_model(version)
    _tell("chosen", version, True, as_json)


def _tell(done: str, version: str, active: bool, as_json: bool) -> None:
    if as_json:
        print_document({"version": version, "active": active})
    else:
        typer.echo(f"{version} was {done}{' and answers from now on' if active else ''}.")


def _described(workspace: Workspace, version: str) -> dict[str, Any]:
    """A model that cannot be loaded is listed too, with what is wrong."""
    described: dict[str, Any] = {
        "version": version,
        "active": version == workspace.models.active(),
        "error": None,
    }
    try:
        artefact = workspace.models.load(version)
    except LPFError as error:
        return {**described, "error": str(error)}
    config = artefact.config
    return {
        **described,
        "name": artefact.card.name,
        "predicates": [head.name for head in config.predicates],
        "reader": config.reader_id,
        "members": config.members,
        "metrics": dict(artefact.card.metrics),
    }


def _show(found: list[dict[str, Any]]) -> None:
    from lpf.cli.rendering import console
    from lpf.cli.tables import table

    if not found:
        typer.echo("There is no model yet; add one with 'lpf models add FOLDER'.")
        return
    names = ("", "version", "name", "members", "predicates")
    console().print(table(names, map(_row, found), right=("members",), flexible="predicates"))


def _row(one: dict[str, Any]) -> list[str]:
    start = ["*" if one["active"] else "", one["version"]]
    if one["error"]:
        return [*start, "cannot be loaded", "", one["error"]]
    return [*start, one["name"], str(one["members"]), ", ".join(one["predicates"])]
