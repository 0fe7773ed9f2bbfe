"""``lpf models``: list, show, add and choose the trained models of a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    Verbose,
    WorkspaceFolder,
    command,
    group,
    open_workspace,
    print_document,
)
from lpf.cli.safe_output import one_line, quoted
from lpf.errors import LPFError, WorkspaceError

if TYPE_CHECKING:
    from lpf.model.artefact import Artefact, ModelCard
    from lpf.model.config import ModelConfig
    from lpf.workspace import Workspace

app = group("models", "Trained models: list, show, add, use.")

Version = Annotated[
    str | None, typer.Argument(help="Version as listed; by default the model that answers.")
]


@command(app, "lpf models list", name="list")
def list_models(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """List the models, newest last, with their scores; a star marks the one that answers."""
    with open_workspace(workspace) as space:
        models = [_list_entry(space, version) for version in space.models.versions()]
    models.sort(key=lambda model: model["made"] or "")
    if as_json:
        print_document({"models": models})
    else:
        _show_list(models)


@command(app, "lpf models show", "lpf models show 3f9c2a7b1d5e8046 --json")
def show(
    version: Version = None,
    verbose: Verbose = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show a model: its scores, members and networks, and with --verbose what was fitted."""
    with open_workspace(workspace) as space:
        artefact = _load(space, version)
        active = artefact.version == space.models.active()

    document = model_document(artefact) | {"active": active}
    if as_json:
        print_document(document)
    else:
        _show_model(document, verbose)


@command(app, "lpf models card > card.md")
def card(
    version: Version = None, workspace: WorkspaceFolder = None, as_json: AsJson = False
) -> None:
    """Print a model's card as Markdown: its data, its intended use and its limits."""
    with open_workspace(workspace) as space:
        artefact = _load(space, version)
    predicates = {head.name: list(head.values) for head in artefact.config.predicates}
    if as_json:
        card = artefact.card.to_dict()
        print_document({"version": artefact.version, "card": card, "predicates": predicates})
    else:
        typer.echo(artefact.card.to_markdown(predicates), nl=False)


@command(app, "lpf models add trained/3f9c2a7b1d5e8046 --use")
def add(
    folder: Annotated[Path, typer.Argument(help="Folder of the model.")],
    use: Annotated[
        bool, typer.Option("--use", help="Answer with it, even if another model answers now.")
    ] = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Check every file of a model and copy it into the workspace."""
    with open_workspace(workspace) as space:
        was_here = space.models.versions()
        version = space.models.add(folder)
        missing = _missing_predicates(space, version)
        if use or (space.models.active() is None and not missing):
            space.use_model(version)
        active = space.models.active() == version
    done = "is here already" if version in was_here else "was added"
    _show_change(version, done, active=active, missing=missing, as_json=as_json)


@command(app, "lpf models use 3f9c2a7b1d5e8046", name="use")
def use_model(
    version: Annotated[str, typer.Argument(help="Version as listed.")],
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Choose the model that answers."""
    with open_workspace(workspace) as space:
        space.use_model(version)
        missing = _missing_predicates(space, version)
    _show_change(version, "was chosen", active=True, missing=missing, as_json=as_json)


def _load(workspace: Workspace, version: str | None) -> Artefact:
    """The model of that version, or the one that answers."""
    wanted = version or workspace.models.active()
    if wanted is None:
        raise WorkspaceError(
            f"{workspace.folder}: no model answers yet.",
            hint="Train one with 'lpf train', add one with 'lpf models add FOLDER', or name one "
            "that is listed.",
        )
    return workspace.models.load(wanted)


def _missing_predicates(workspace: Workspace, version: str) -> list[str]:
    """Predicates of the schema that the model has no head for."""
    heads = {head.name for head in workspace.models.load(version).config.predicates}
    return [predicate.name for predicate in workspace.schema if predicate.name not in heads]


def _show_change(
    version: str, done: str, *, active: bool, missing: list[str], as_json: bool
) -> None:
    was_here = done == "is here already"
    if as_json:
        print_document(
            {"version": version, "active": active, "was_here": was_here, "lacks": missing}
        )
        return
    answers = " and answers" if was_here else " and answers from now on"
    typer.echo(f"Model {one_line(version)} {done}{answers if active else ''}.")
    if missing:
        typer.echo(
            f"It lacks {', '.join(map(one_line, missing))}: it cannot read evidence about them."
        )
    if not active:
        typer.echo(f"It does not answer yet; to use it: lpf models use {quoted(version)}")


def model_document(artefact: Artefact) -> dict[str, Any]:
    config, card = artefact.config, artefact.card
    return {
        "beats_class_shares": _beats_class_shares(card),
        "not_better_than_class_shares": list(card.not_better_than_class_shares()),
        "beats_claim": {one.predicate: one.beats_claim for one in card.held_out()},
        "not_better_than_claim": list(card.not_better_than_claim()),
        "version": artefact.version,
        "name": card.name,
        "data": card.data,
        "reader": config.reader_id,
        "reading": kind_of_model(config),
        "members": config.members,
        "seeds": list(config.seeds),
        "predicates": {head.name: list(head.values) for head in config.predicates},
        "config": config.to_dict(),
        "fitted": {head.name: _fitted_document(artefact, head.name) for head in config.predicates},
        "scores": _scores_document(card),
        "metrics": dict(card.metrics),
        "notes": list(card.notes),
    }


def _beats_class_shares(card: ModelCard) -> dict[str, bool | None]:
    """By predicate; None for a card from before they were compared."""
    return {one.predicate: one.beats_class_shares for one in card.held_out()}


def _scores_document(card: ModelCard) -> dict[str, dict[str, dict[str, float]]]:
    """Metrics by predicate, then by place such as "test/spn"."""
    by_predicate: dict[str, dict[str, dict[str, float]]] = {}
    for scores in card.scores():
        by_predicate.setdefault(scores.predicate, {})[scores.place] = dict(scores.metrics)
    return by_predicate


def kind_of_model(config: ModelConfig) -> str:
    """A linear model is stored like networks without hidden layers."""
    return "networks" if config.encoder.hidden else "linear"


def _fitted_document(artefact: Artefact, predicate: str) -> dict[str, float | None]:
    """Models of earlier versions have no NLLs, and those of many entities none on folds."""
    config, metrics = artefact.config, artefact.card.metrics
    return {
        **config.calibration.get(predicate, {}),
        "learned_temperature": config.learned_temperature.get(predicate),
        "min_credibility": config.min_credibility.get(predicate),
        "entities": config.calibrated_on.get(predicate),
        "nll": metrics.get(f"{predicate}/nll_fitted"),
        "nll_cross_fitted": metrics.get(f"{predicate}/nll_cross_fitted"),
    }


def _show_model(document: Mapping[str, Any], verbose: bool) -> None:
    from rich.text import Text

    from lpf.cli.terminal import console, print_pairs, print_table
    from lpf.cli.train_view import scores_table

    output = console()
    answers = "answers" if document["active"] else "does not answer"
    first = [*document["not_better_than_class_shares"], *document["not_better_than_claim"]]
    for sentence in first:
        output.print(Text(one_line(sentence), style="bold yellow"))
    head = f"Model {document['version']} ({document['name']}) {answers}."
    output.print(Text(one_line(head), style="bold"))
    print_pairs(output, _parts(document))
    for predicate, scores in document["scores"].items():
        output.print()
        print_table(output, f"Scores for {predicate}, over whole entities", scores_table(scores))
    for predicate, fitted in document["fitted"].items():
        if verbose or fitted["entities"] is None:
            output.print()
            output.print(Text(one_line(f"Fitted parameters for {predicate}"), style="bold"))
            print_pairs(output, _fitted_pairs(fitted))
    if document["notes"]:
        output.print()
        output.print(Text("Notes", style="bold"))
        print_pairs(output, (("-", note) for note in document["notes"]))


def _parts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from lpf.cli.terminal import short_reader

    config = document["config"]
    encoder, aggregator = config["encoder"], config["aggregator"]
    values = [
        one_line(f"{name}: {', '.join(values)}") for name, values in document["predicates"].items()
    ]
    seeds = ", ".join(map(str, document["seeds"])) or "not recorded"
    yield "predicates", "\n".join(values)
    yield "data", document["data"]
    yield "reader", short_reader(document["reader"]) or "not recorded"
    yield "members", f"{document['members']} (seeds {seeds})"
    if document["reading"] == "linear":
        yield "model", "linear"
    else:
        widths = [encoder["input_width"], *encoder["hidden"], encoder["latent_width"]]
        kind = "deterministic" if encoder["deterministic"] else "variational"
        yield "model", "networks"
        yield "encoder", f"{'-'.join(map(str, widths))}, {kind}"
        yield "decoder", "-".join(map(str, config["decoder"]["hidden"]))
    yield "aggregator", "none" if aggregator is None else f"learned, {aggregator['normalisation']}"


def _fitted_pairs(fitted: Mapping[str, float | None]) -> Iterator[tuple[str, str]]:
    from lpf.cli.terminal import count
    from lpf.cli.train_view import parameter_help

    lines = list(parameter_help(fitted))
    if not lines:
        yield "none", "robust mode uses its defaults; probabilities may be over- or underconfident"
    for name, number, sentence in lines:
        yield name.replace("_", " "), f"{number:.4f}  {sentence}"
    entities = fitted["entities"]
    if entities is not None:
        yield "fitted on", count(int(entities), "entity", "entities")
    if fitted["nll"] is not None:
        held_out = fitted["nll_cross_fitted"]
        on_folds = "" if held_out is None else f", {held_out:.4f} on held-out folds of them"
        yield "NLL", f"{fitted['nll']:.4f} on these{on_folds}"


def _list_entry(workspace: Workspace, version: str) -> dict[str, Any]:
    """A model that cannot be loaded is listed too, with its error."""
    created = workspace.models.created_at(version)
    entry: dict[str, Any] = {
        "version": version,
        "active": version == workspace.models.active(),
        "made": None if created is None else created.isoformat(timespec="seconds"),
        "error": None,
    }
    try:
        artefact = workspace.models.load(version)
    except LPFError as error:
        return {**entry, "error": str(error)}
    config, card = artefact.config, artefact.card
    return {
        **entry,
        "name": card.name,
        "reading": kind_of_model(config),
        "entities": card.entities,
        "held_out": _held_out(card),
        "predicates": [head.name for head in config.predicates],
        "reader": config.reader_id,
        "members": config.members,
        "metrics": dict(card.metrics),
    }


def _held_out(card: ModelCard) -> dict[str, Any] | None:
    """The scores on the most independent held-out entities, as means over the predicates."""
    scores = card.held_out()
    if not scores:
        return None
    means: dict[str, float | None] = {}
    # A card written by another program or version may lack some.
    for name in ("accuracy", "nll", "class_shares_accuracy", "class_shares_nll"):
        known = [score.metrics[name] for score in scores if name in score.metrics]
        means[name] = fmean(known) if known else None
    beats = _beats_class_shares(card)
    beats_claim = {one.predicate: one.beats_claim for one in scores}
    return {
        "judged_on": scores[0].place,
        **means,
        "beats_class_shares": beats,
        "beats_claim": beats_claim,
    }


def _show_list(models: list[dict[str, Any]]) -> None:
    from rich.text import Text

    from lpf.cli.terminal import console, table

    if not models:
        typer.echo(
            "There is no model yet; train one with 'lpf train', or add one with "
            "'lpf models add FOLDER'."
        )
        return
    output = console()
    numbers = ("entities", "accuracy", "NLL", "shares NLL")
    names = ("", "version", "name", "created", "model", *numbers, "predicates")
    rows = map(_row, models)
    optional = ("shares NLL",)
    output.print(table(names, rows, right=numbers, flexible="predicates", optional=optional))
    if any(model.get("held_out") for model in models):
        output.print("accuracy and NLL: on test entities, else validation entities, else folds")
    for model in models:
        held_out = model.get("held_out") or {}
        for key, rival in (("beats_class_shares", "class shares"), ("beats_claim", "claim alone")):
            if lost := [name for name, one in held_out.get(key, {}).items() if one is False]:
                text = f"{model['version']} is not better than the {rival}: {', '.join(lost)}"
                output.print(Text(one_line(text)))
    for model in models:
        if model["error"]:
            output.print(Text(one_line(f"{model['version']} cannot be loaded: {model['error']}")))


def _row(one: dict[str, Any]) -> list[str]:
    created = "" if one["made"] is None else one["made"][:10]
    start = ["*" if one["active"] else "", one["version"]]
    if one["error"]:
        return [*start, "broken", created, *[""] * 6]
    held_out, entities = one["held_out"] or {}, one["entities"]
    accuracy = held_out.get("accuracy")
    losses = [held_out.get(name) for name in ("nll", "class_shares_nll")]
    return [
        *start,
        one["name"],
        created,
        one["reading"],
        "" if entities is None else f"{entities:,}",
        "" if accuracy is None else f"{100 * accuracy:.1f} %",
        *("" if nll is None else f"{nll:.4f}" for nll in losses),
        ", ".join(one["predicates"]),
    ]
