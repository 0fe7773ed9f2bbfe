"""A trained model as a document and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from lpf.cli.fitted_words import fitted_lines
from lpf.cli.rendering import console, count, print_pairs, print_table
from lpf.cli.train_view import scores_table
from lpf.model.artefact import Artefact

PARTS = 4  # of a metric's name, such as level/test/spn/ece


def document_of(artefact: Artefact) -> dict[str, Any]:
    config, card = artefact.config, artefact.card
    return {
        "version": artefact.version,
        "name": card.name,
        "data": card.data,
        "reader": config.reader_id,
        "members": config.members,
        "seeds": list(config.seeds),
        "predicates": {head.name: list(head.values) for head in config.predicates},
        "config": config.to_dict(),
        "fitted": {head.name: _fitted(artefact, head.name) for head in config.predicates},
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
    for predicate, scores in _scores(document["metrics"]).items():
        output.print()
        print_table(output, f"How it answers {predicate}, of whole entities", scores_table(scores))
    if document["notes"]:
        output.print()
        output.print(Text("Notes", style="bold"))
        print_pairs(output, (("-", note) for note in document["notes"]))


def _fitted(artefact: Artefact, predicate: str) -> dict[str, float | None]:
    config = artefact.config
    return {
        **config.calibration.get(predicate, {}),
        "learned_temperature": config.learned_temperature.get(predicate),
        "entities": config.calibrated_on.get(predicate),
    }


def _made_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    config = document["config"]
    encoder, aggregator = config["encoder"], config["aggregator"]
    widths = [encoder["input_width"], *encoder["hidden"], encoder["latent_width"]]
    asked = [f"{name}: {', '.join(values)}" for name, values in document["predicates"].items()]
    yield "questions", "\n".join(asked)
    yield "data", document["data"]
    yield "reader", document["reader"] or "not recorded"
    yield "members", f"{document['members']}, of the seeds {_listed(document['seeds'])}"
    kind = "deterministic" if encoder["deterministic"] else "variational"
    yield "encoder", f"{'-'.join(map(str, widths))}, {kind}"
    yield "decoder", "-".join(map(str, config["decoder"]["hidden"]))
    yield "aggregator", "none" if aggregator is None else f"learned, {aggregator['normalisation']}"


def _fitted_pairs(fitted: Mapping[str, float | None]) -> Iterator[tuple[str, str]]:
    lines = list(fitted_lines(fitted))
    if not lines:
        yield "nothing", "robust mode uses its defaults; answers may be too sure or too timid"
    for name, number, sentence in lines:
        yield name.replace("_", " "), f"{number:.4f}  {sentence}"
    entities = fitted["entities"]
    if entities is not None:
        yield "on", count(int(entities), "entity", "entities")


def _scores(metrics: Mapping[str, float]) -> dict[str, dict[str, dict[str, float]]]:
    """Metrics called predicate/data/variant/name, by predicate and by data/variant."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for path, number in metrics.items():
        parts = path.rsplit("/", PARTS - 1)
        if len(parts) == PARTS:
            predicate, data, variant, name = parts
            found.setdefault(predicate, {}).setdefault(f"{data}/{variant}", {})[name] = number
    return found


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds)) or "not recorded"
