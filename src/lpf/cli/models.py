"""``lpf models``: the trained models of a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, group, opened, print_document
from lpf.errors import LPFError, WorkspaceError

if TYPE_CHECKING:
    from lpf.model.artefact import Artefact
    from lpf.workspace import Workspace

HERE_ALREADY = "is here already"

app = group("models", "Trained models: list, look at, add, use.")

Version = Annotated[str | None, typer.Argument(help="As listed; by default the one that answers.")]


@command(app, "lpf models list", name="list")
def list_models(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """List the models that are here, and which one answers."""
    with opened(workspace) as space:
        found = [_described(space, version) for version in space.models.versions()]
    if as_json:
        print_document({"models": found})
    else:
        _show(found)


@command(app, "lpf models show", "lpf models show 3f9c2a7b1d5e8046 --json")
def show(
    version: Version = None, workspace: WorkspaceFolder = None, as_json: AsJson = False
) -> None:
    """Show a model: its members, its networks, what was fitted for it, and how good it is."""
    with opened(workspace) as space:
        artefact = _chosen(space, version)
        active = artefact.version == space.models.active()
    from lpf.cli.model_view import document_of, show_model

    document = document_of(artefact) | {"active": active}
    if as_json:
        print_document(document)
    else:
        show_model(document)


@command(app, "lpf models card > card.md")
def card(
    version: Version = None, workspace: WorkspaceFolder = None, as_json: AsJson = False
) -> None:
    """Print a model's card as Markdown: what it was made from, what it is for and what not."""
    with opened(workspace) as space:
        artefact = _chosen(space, version)
    if as_json:
        print_document({"version": artefact.version, "card": artefact.card.to_dict()})
    else:
        typer.echo(artefact.card.to_markdown(), nl=False)


@command(app, "lpf models add trained/3f9c2a7b1d5e8046 --use")
def add(
    folder: Annotated[Path, typer.Argument(help="A model's folder.")],
    use: Annotated[
        bool, typer.Option("--use", help="Make it the one that answers, as the first whole one is.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Copy a model in, after checking every file of it."""
    with opened(workspace) as space:
        before = space.models.versions()
        version = space.models.add(folder)
        lacking = _lacking(space, version)
        if use or (space.models.active() is None and not lacking):
            space.use_model(version)
        active = space.models.active() == version
    done = HERE_ALREADY if version in before else "was added"
    _tell(done, version, active, lacking, as_json)


@command(app, "lpf models use 3f9c2a7b1d5e8046", name="use")
def use_model(
    version: Annotated[str, typer.Argument(help="As listed.")],
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a model the one that answers."""
    with opened(workspace) as space:
        space.use_model(version)
        lacking = _lacking(space, version)
    _tell("was chosen", version, True, lacking, as_json)


def _chosen(workspace: Workspace, version: str | None) -> Artefact:
    """The model of that version, or the one that answers."""
    wanted = version or workspace.models.active()
    if wanted is None:
        raise WorkspaceError(
            f"{workspace.folder}: no model answers yet. Train one with 'lpf train', add one with "
            "'lpf models add FOLDER', or name one that is listed."
        )
    return workspace.models.load(wanted)


def _lacking(workspace: Workspace, version: str) -> list[str]:
    """Predicates of the schema that the model cannot read evidence about."""
    heads = {head.name for head in workspace.models.load(version).config.predicates}
    return [predicate.name for predicate in workspace.schema if predicate.name not in heads]


def _tell(done: str, version: str, active: bool, lacking: list[str], as_json: bool) -> None:
    here = done == HERE_ALREADY
    if as_json:
        told = {"version": version, "active": active, "was_here": here, "lacks": lacking}
        print_document(told)
        return
    answers = " and answers" if here else " and answers from now on"
    typer.echo(f"{version} {done}{answers if active else ''}.")
    if lacking:
        typer.echo(f"It lacks {', '.join(lacking)}: evidence about that cannot be read with it.")
    if not active:
        typer.echo(f"It does not answer yet: lpf models use {version}")


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
        typer.echo(
            "There is no model yet; train one with 'lpf train', or add one with "
            "'lpf models add FOLDER'."
        )
        return
    names = ("", "version", "name", "members", "predicates")
    console().print(table(names, map(_row, found), right=("members",), flexible="predicates"))


def _row(one: dict[str, Any]) -> list[str]:
    start = ["*" if one["active"] else "", one["version"]]
    if one["error"]:
        return [*start, "cannot be loaded", "", one["error"]]
    return [*start, one["name"], str(one["members"]), ", ".join(one["predicates"])]
