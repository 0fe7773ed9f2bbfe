"""How a training run is told of on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from lpf.cli.fitted_words import fitted_lines
from lpf.cli.reader_words import short_reader
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
    judged = "held-out items of folds" if document["data"]["few"] else "items of validation"
    title = f"Seeds, best first, on {judged}; * are part of the model"
    print_table(output, title, _seeds(document["seeds"]))
    print_pairs(output, _spread(document["spread"], len(document["seeds"])))
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
    """A row a place, such as "test/spn", and the NLL of the prior for each kind of data. ``chance``
    is how high an ECE may be by chance alone."""
    by_data: dict[str, list[list[str]]] = {}
    for place, found in scores.items():
        data, variant = place.split("/")
        by_data.setdefault(data, []).append([data, variant, *_score_cells(found)])
    for data, rows in by_data.items():
        prior = scores[f"{data}/{rows[0][1]}"].get("prior_nll")
        if prior is not None:  # cards of earlier versions do not have it
            rows.append([data, "prior", "", "", f"{prior:.4f}", "", "", ""])
    every = [row for rows in by_data.values() for row in rows]
    return table(("data", "variant", *SCORES), every, right=SCORES, optional=("Brier", "entities"))


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


def _claims(claims: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Whether texts were read against them; nothing where there are none."""
    if not claims["entities"]:
        return []
    read, setting = ("read with the evidence", "true") if claims["read"] else ("not read", "false")
    have = count(claims["entities"], "entity has one", "entities have one")
    return [("claims", f"{have}; {read} (with_claim = {setting} in lpf.toml)")]


def _ignored(options: Sequence[str]) -> list[tuple[str, str]]:
    if not options:
        return []
    told = "so few entities are trained on for as long as folds say, without an aggregator"
    return [("not used", f"{', '.join(options)}: {told}")]


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
            ("reader", short_reader(document["reader"])),
            *_claims(data["claims"]),
            *_reading(document),
            *_ignored(document["ignored"]),
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


def _spread(spread: Mapping[str, Mapping[str, float]], seeds: int) -> Iterator[tuple[str, str]]:
    """One seed has none."""
    if seeds == 1:
        return
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
    if document["earlier"] is not None:
        _show_earlier(output, document["earlier"], document["active"])
    output.print(Text(f"  next    {document['next']}"))


def _show_earlier(output: Console, earlier: Mapping[str, Any], replaced: bool) -> None:
    """What answered until now, and how to go back to it."""
    new = "now" if replaced else "this one's"
    losses = [
        f"NLL of {name} {one['earlier']:.4f}, {new} {one['now']:.4f}"
        for name, one in earlier["nll"].items()
    ]
    told = "not judged on the same data" if not losses else _judged_on(earlier, losses)
    pairs = [("before" if replaced else "still ", f"{earlier['version']}: {told}")]
    if replaced:
        pairs.append(("back", f"lpf models use {earlier['version']}"))
    print_pairs(output, pairs)


def _judged_on(earlier: Mapping[str, Any], losses: Sequence[str]) -> str:
    data = earlier["judged_on"].split("/")[0]
    where = "out of fold" if data == "out of fold" else f"on {data} entities"
    other = "" if earlier["same_data"] else "; the data have the same name and other content"
    return f"{', '.join(losses)} ({where}{other})"
