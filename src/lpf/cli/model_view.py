"""A trained model as a document and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from lpf.cli.fitted_words import fitted_lines
from lpf.cli.models import reading_of
from lpf.cli.reader_words import short_reader
from lpf.cli.rendering import console, count, print_pairs, print_table
from lpf.cli.train_view import scores_table
from lpf.model.artefact import Artefact


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
        "scores": card.scores(),
        "metrics": dict(card.metrics),
        "notes": list(card.notes),
    }


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
