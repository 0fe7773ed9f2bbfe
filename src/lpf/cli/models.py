"""``lpf models``: the trained models of a workspace."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, group, opened, print_document
from lpf.errors import LPFError, WorkspaceError

if TYPE_CHECKING:
    from lpf.model.artefact import Artefact
    from lpf.model.card import ModelCard
    from lpf.model.config import ModelConfig
    from lpf.workspace import Workspace

HERE_ALREADY = "is here already"

app = group("models", "Trained models: list, look at, add, use.")

Version = Annotated[str | None, typer.Argument(help="As listed; by default the one that answers.")]


@command(app, "lpf models list", name="list")
def list_models(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """List the models that are here, the newest last, how good they are and which one answers."""
    with opened(workspace) as space:
        found = [_described(space, version) for version in space.models.versions()]
    found.sort(key=lambda one: one["made"] or "")
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
    predicates = {head.name: list(head.values) for head in artefact.config.predicates}
    if as_json:
        card = artefact.card.to_dict()
        print_document({"version": artefact.version, "card": card, "predicates": predicates})
    else:
        typer.echo(artefact.card.to_markdown(predicates), nl=False)


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


def reading_of(config: ModelConfig) -> str:
    """A linear reading has the networks' shape, without hidden layers."""
    return "networks" if config.encoder.hidden else "linear"


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
    made = workspace.models.made(version)
    described: dict[str, Any] = {
        "version": version,
        "active": version == workspace.models.active(),
        "made": None if made is None else made.isoformat(timespec="seconds"),
        "error": None,
    }
    try:
        artefact = workspace.models.load(version)
    except LPFError as error:
        return {**described, "error": str(error)}
    config, card = artefact.config, artefact.card
    return {
        **described,
        "name": card.name,
        "reading": reading_of(config),
        "entities": card.entities,
        "held_out": _held_out(card),
        "predicates": [head.name for head in config.predicates],
        "reader": config.reader_id,
        "members": config.members,
        "metrics": dict(card.metrics),
    }


def _held_out(card: ModelCard) -> dict[str, Any] | None:
    """How good it is on the entities it has seen least of, a mean over its predicates."""
    found = card.held_out()
    if found is None:
        return None
    place, by_predicate = found
    means: dict[str, float | None] = {}
    for name in ("accuracy", "nll"):  # a card written by others may lack one of them
        known = [one[name] for one in by_predicate.values() if name in one]
        means[name] = fmean(known) if known else None
    return {"judged_on": place, **means}


def _show(found: list[dict[str, Any]]) -> None:
    from lpf.cli.rendering import console
    from lpf.cli.tables import table

    if not found:
        typer.echo(
            "There is no model yet; train one with 'lpf train', or add one with "
            "'lpf models add FOLDER'."
        )
        return
    output = console()
    numbers = ("entities", "accuracy", "NLL")
    names = ("", "version", "name", "made", "reading", *numbers, "predicates")
    output.print(table(names, map(_row, found), right=numbers, flexible="predicates"))
    if any(one.get("held_out") for one in found):
        output.print("accuracy and NLL: of test entities, else of validation, else out of fold.")
    for one in found:
        if one["error"]:
            output.print(f"{one['version']} cannot be loaded: {one['error']}", markup=False)


def _row(one: dict[str, Any]) -> list[str]:
    made = "" if one["made"] is None else one["made"][:10]
    start = ["*" if one["active"] else "", one["version"]]
    if one["error"]:
        return [*start, "broken", made, *[""] * 5]
    held_out, entities = one["held_out"], one["entities"]
    return [
        *start,
        one["name"],
        made,
        one["reading"],
        "" if entities is None else f"{entities:,}",
        *(["", ""] if held_out is None else _numbers(held_out)),
        ", ".join(one["predicates"]),
    ]


def _numbers(held_out: dict[str, Any]) -> list[str]:
    accuracy, nll = held_out["accuracy"], held_out["nll"]
    return [
        "" if accuracy is None else f"{100 * accuracy:.1f} %",
        "" if nll is None else f"{nll:.4f}",
    ]
