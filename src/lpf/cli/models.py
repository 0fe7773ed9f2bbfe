"""``lpf models``: the trained models of a workspace.

A trained model as a document and on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lpf.cli.common import AsJson, WorkspaceFolder, command, group, opened, print_document
from lpf.cli.terminal import console, count, print_pairs, print_table, short_reader
from lpf.cli.train_view import fitted_lines, scores_table
from lpf.errors import LPFError, WorkspaceError
from lpf.model.artefact import Artefact

if TYPE_CHECKING:
    from lpf.model.artefact import ModelCard
    from lpf.model.config import ModelConfig
    from lpf.workspace import Workspace


def document_of(artefact: Artefact) -> dict[str, Any]:
    config, card = artefact.config, artefact.card
    return {
        "version": artefact.version,
        "name": card.name,
        "data": card.data,
        "reader": config.reader_id,
        "reading": reading_of(config),
        "members": config.members,
        "seeds": list(config.seeds),
        "predicates": {head.name: list(head.values) for head in config.predicates},
        "config": config.to_dict(),
        "fitted": {head.name: _fitted(artefact, head.name) for head in config.predicates},
        "scores": _scores(card),
        "metrics": dict(card.metrics),
        "notes": list(card.notes),
    }


def _scores(card: ModelCard) -> dict[str, dict[str, dict[str, float]]]:
    """Metrics by predicate, then by place such as "test/spn"."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for one in card.scores():
        found.setdefault(one.predicate, {})[one.place] = dict(one.metrics)
    return found


def show_model(document: Mapping[str, Any]) -> None:
    output = console()
    answers = "answers" if document["active"] else "does not answer"
    output.print(Text(f"{document['version']} · {document['name']}, {answers}", style="bold"))
    print_pairs(output, _made_of(document))
    for predicate, fitted in document["fitted"].items():
        output.print()
        output.print(Text(f"Fitted for {predicate}", style="bold"))
        print_pairs(output, _fitted_pairs(fitted))
    for predicate, scores in document["scores"].items():
        output.print()
        print_table(output, f"How it answers {predicate}, of whole entities", scores_table(scores))
    if document["notes"]:
        output.print()
        output.print(Text("Notes", style="bold"))
        print_pairs(output, (("-", note) for note in document["notes"]))


def _fitted(artefact: Artefact, predicate: str) -> dict[str, float | None]:
    """The NLLs are not known of models of earlier versions, nor that of many held out."""
    config, metrics = artefact.config, artefact.card.metrics
    return {
        **config.calibration.get(predicate, {}),
        "learned_temperature": config.learned_temperature.get(predicate),
        "entities": config.calibrated_on.get(predicate),
        "nll": metrics.get(f"{predicate}/nll_fitted"),
        "nll_cross_fitted": metrics.get(f"{predicate}/nll_cross_fitted"),
    }


def _made_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    config = document["config"]
    encoder, aggregator = config["encoder"], config["aggregator"]
    widths = [encoder["input_width"], *encoder["hidden"], encoder["latent_width"]]
    asked = [f"{name}: {', '.join(values)}" for name, values in document["predicates"].items()]
    yield "questions", "\n".join(asked)
    yield "data", document["data"]
    yield "reader", short_reader(document["reader"]) or "not recorded"
    yield "members", f"{document['members']}, of the seeds {_listed(document['seeds'])}"
    yield "reading", document["reading"]
    if document["reading"] == "linear":
        yield "aggregator", _aggregator(aggregator)
        return
    kind = "deterministic" if encoder["deterministic"] else "variational"
    yield "encoder", f"{'-'.join(map(str, widths))}, {kind}"
    yield "decoder", "-".join(map(str, config["decoder"]["hidden"]))
    yield "aggregator", _aggregator(aggregator)


def _aggregator(config: Mapping[str, Any] | None) -> str:
    return "none" if config is None else f"learned, {config['normalisation']}"


def _fitted_pairs(fitted: Mapping[str, float | None]) -> Iterator[tuple[str, str]]:
    lines = list(fitted_lines(fitted))
    if not lines:
        yield "nothing", "robust mode uses its defaults; answers may be too sure or too timid"
    for name, number, sentence in lines:
        yield name.replace("_", " "), f"{number:.4f}  {sentence}"
    entities = fitted["entities"]
    if entities is not None:
        yield "on", count(int(entities), "entity", "entities")
    if fitted["nll"] is not None:
        held_out = fitted["nll_cross_fitted"]
        beside = "" if held_out is None else f", {held_out:.4f} on held-out folds of them"
        yield "NLL", f"{fitted['nll']:.4f} of these{beside}"


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds)) or "not recorded"


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
    scores = card.held_out()
    if not scores:
        return None
    means: dict[str, float | None] = {}
    for name in ("accuracy", "nll"):  # a card written by others may lack one of them
        known = [one.metrics[name] for one in scores if name in one.metrics]
        means[name] = fmean(known) if known else None
    return {"judged_on": scores[0].place, **means}


def _show(found: list[dict[str, Any]]) -> None:
    from lpf.cli.terminal import console, table

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
