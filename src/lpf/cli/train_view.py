"""How a training run is told of on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from lpf.cli.fitted_words import fitted_lines
from lpf.cli.rendering import console, count, indented, percent, print_pairs, print_table
from lpf.cli.tables import FittedTable, table

NUMBERS = ("accuracy", "loss", "cross-entropy", "KL", "epoch")
SCORES = ("entities", "accuracy", "NLL", "Brier", "ECE", "chance")


def show(document: Mapping[str, Any]) -> None:
    """All of the document, the most important last."""
    output = console()
    _show_head(output, document)
    if document["grid"]:
        output.print()
        print_table(output, "The grid: what each configuration's best seed got", _grid(document))
    output.print()
    title = "Seeds, best first, on items of validation; * are part of the model"
    print_table(output, title, _seeds(document["seeds"]))
    print_pairs(output, _spread(document["spread"]))
    for predicate, fitted in document["fitted"].items():
        output.print()
        output.print(Text(f"Fitted for {predicate}", style="bold"))
        print_pairs(output, _fitted(fitted))
    for predicate in document["predicates"]:
        found = {place: scores[predicate] for place, scores in document["scores"].items()}
        output.print()
        print_table(output, f"How it answers {predicate}, of whole entities", scores_table(found))
        output.print(indented(Text(_calibration_sentence(found))))
    show_cautions(output, document["cautions"])
    _show_next(output, document)


def show_cautions(output: Console, cautions: Sequence[str]) -> None:
    if not cautions:
        return
    body = Text("\n".join(f"- {caution}" for caution in cautions))
    output.print()
    output.print(
        Panel(body, title="Cautions", title_align="left", border_style="yellow", expand=False)
    )


def scores_table(scores: Mapping[str, Mapping[str, Any]]) -> FittedTable:
    """A row a place, such as "test/spn". ``chance`` is how high an ECE may be by chance alone."""
    rows = [[*place.split("/"), *_score_cells(found)] for place, found in scores.items()]
    return table(("data", "variant", *SCORES), rows, right=SCORES, optional=("Brier", "entities"))


def _score_cells(found: Mapping[str, Any]) -> list[str]:
    return [
        f"{found['entities']:,.0f}",
        percent(found["accuracy"]),
        *(f"{found[name]:.4f}" for name in ("nll", "brier", "ece", "ece_null")),
    ]


def _calibration_sentence(scores: Mapping[str, Mapping[str, Any]]) -> str:
    off = [place for place, found in scores.items() if found["ece"] > found["ece_null"]]
    if not off:
        return "No ECE is above chance: so many entities cannot tell it from perfectly calibrated."
    return (
        f"An ECE above chance ({', '.join(off)}) is more than a perfectly calibrated predictor "
        "would show 95 times of 100."
    )


def _reading(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    if document["reading"] is None:
        return []
    return [("reading", document["reading"]["told"].removeprefix("reading: "))]


def _show_head(output: Console, document: Mapping[str, Any]) -> None:
    data = document["data"]
    splits = " · ".join(f"{name} {number:,}" for name, number in data["splits"].items())
    entities = count(data["entities"], "entity", "entities")
    output.print(Text(f"{document['name']}: {', '.join(document['predicates'])}", style="bold"))
    print_pairs(
        output,
        [
            ("data", f"{data['name']}: {entities}, {count(data['items'], 'item')}"),
            ("splits", splits or "none: so few are trained on in folds"),
            ("reader", document["reader"]),
            *_reading(document),
        ],
    )


def _grid(document: Mapping[str, Any]) -> FittedTable:
    config = document["config"]
    kept = (config["learning_rate"], config["latent_width"], tuple(config["hidden"]))
    rows = [
        [
            "*"
            if (one["learning_rate"], one["latent_width"], tuple(one["hidden"])) == kept
            else "",
            f"{one['learning_rate']:g}",
            str(one["latent_width"]),
            ",".join(map(str, one["hidden"])),
            str(one["seed"]),
            percent(one["accuracy"]),
            f"{one['loss']:.4f}",
        ]
        for one in document["grid"]
    ]
    headings = ("", "learning rate", "latent", "hidden", "seed", "accuracy", "loss")
    return table(headings, rows, right=headings[1:])


def _seeds(seeds: Sequence[Mapping[str, Any]]) -> FittedTable:
    rows = [
        [
            "*" if one["member"] else "",
            str(one["seed"]),
            percent(one["accuracy"]),
            *(f"{one[name]:.4f}" for name in ("loss", "cross_entropy", "kl")),
            f"{one['best_epoch']}/{one['epochs']}",
            "yes" if one["converged"] else "no",
        ]
        for one in seeds
    ]
    headings = ("", "seed", *NUMBERS, "converged")
    return table(headings, rows, right=("seed", *NUMBERS), optional=("converged", "KL"))


def _spread(spread: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, str]]:
    accuracy, loss = spread["accuracy"], spread["loss"]
    yield (
        "all seeds",
        f"accuracy {percent(accuracy['mean'])} ± {100 * accuracy['sd']:.2f}, "
        f"loss {loss['mean']:.4f} ± {loss['sd']:.4f}",
    )
    yield (
        "selected",
        f"accuracy {percent(accuracy['selected'])}, loss {loss['selected']:.4f}",
    )


def _fitted(fitted: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, number, sentence in fitted_lines(fitted["numbers"]):
        yield name.replace("_", " "), f"{number:.4f}  {sentence}"
    gained = f"{fitted['nll_before']:.4f} before, {fitted['nll_after']:.4f} after"
    if fitted["nll_cross_fitted"] is not None:
        gained += f", {fitted['nll_cross_fitted']:.4f} on held-out folds"
    yield "NLL", f"{gained}; on {count(fitted['entities'], 'entity', 'entities')}"


def _show_next(output: Console, document: Mapping[str, Any]) -> None:
    version = document["version"]
    output.print()
    state = "answers from now on" if document["active"] else "was kept; it does not answer yet"
    output.print(Text(f"{version} {state}.", style="bold"))
    if document["report"]:
        output.print(Text(f"  report  {document['report']}"), soft_wrap=True)
    predicate = document["predicates"][0]
    ask = f"lpf query ENTITY {predicate}"
    output.print(Text(f"  next    {ask if document['active'] else f'lpf models use {version}'}"))
