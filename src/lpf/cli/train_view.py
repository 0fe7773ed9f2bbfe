"""How a training run is told of on a terminal.

What was fitted for a model, each number with a sentence that says what it means.

What a training run came to, as one JSON document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from lpf.cli.terminal import (
    FittedTable,
    console,
    count,
    indented,
    percent,
    print_pairs,
    print_table,
    short_reader,
    table,
)
from lpf.datasets import SPLITS
from lpf.training.history import ranked, spread

if TYPE_CHECKING:
    from lpf.training import Scores, Trained
    from lpf.training.fitting import FittedParameters
    from lpf.training.history import SeedHistory
    from lpf.training.linear import ModelChoice
    from lpf.workspace.models import PreviousModel
    from lpf.workspace.training_runs import TrainingOutcome, TrainingRun


Numbers = Mapping[str, float | None]
EXAMPLE = 5  # items, to say what a share of error comes to


def fitted_lines(numbers: Numbers) -> Iterator[tuple[str, float, str]]:
    """Name, number and meaning, of those that are there."""
    meanings = {
        "temperature": _temperature,
        "rho": _rho,
        "epsilon": _epsilon,
        "slope": _slope,
        "learned_temperature": _learned,
    }
    for name, meaning in meanings.items():
        number = numbers.get(name)
        if number is not None:
            yield name, float(number), meaning(float(number))


def _temperature(number: float) -> str:
    return f"what is read from a single item {_towards(number)}."


def _learned(number: float) -> str:
    return f"what the learned aggregator answers {_towards(number)}."


def _towards(temperature: float) -> str:
    if abs(temperature - 1.0) < 0.02:
        return "is taken as it is"
    return "was too sure and is softened" if temperature > 1 else "was too timid and is sharpened"


def _rho(number: float) -> str:
    counted = EXAMPLE / (1.0 + (EXAMPLE - 1) * number)
    return f"items share errors: {EXAMPLE} count as much as {counted:.1f} independent ones."


def _epsilon(number: float) -> str:
    return f"of items of usual credibility, {100 * number:.0f} % are taken to say nothing."


def _slope(number: float) -> str:
    if number < 0.05:
        return "the credibility of items tells next to nothing of how far to trust them."
    return "items of higher credibility are trusted more; at 1, as much more as their odds say."


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
        output.print(Text(f"FittedParameters for {predicate}", style="bold"))
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
    return [("model", document["reading"]["told"])]


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


SPREAD = {
    "accuracy": "validation_accuracy",
    "loss": "validation_loss",
    "cross_entropy": "validation_cross_entropy",
    "kl": "validation_kl",
}


def document_of(outcome: TrainingOutcome) -> dict[str, Any]:
    run, trained = outcome.run, outcome.trained
    return {
        "version": outcome.version,
        "active": outcome.active,
        "name": trained.card.name,
        "report": None if outcome.report is None else str(outcome.report),
        "data": _data(run),
        "predicates": list(run.predicates),
        "reader": trained.config.reader_id,
        "config": run.config.to_dict(),
        "reading": _reading_train_document(trained.choice),
        "grid": [asdict(tried) for tried in run.tried],
        "seeds": _seeds_train_document(trained),
        "spread": {
            name: asdict(spread(trained.histories, field)) for name, field in SPREAD.items()
        },
        "fitted": {name: _fitted_train_document(found) for name, found in trained.fitted.items()},
        "scores": {
            one.place: {name: _scores(found) for name, found in one.by_predicate.items()}
            for one in trained.scores
        },
        "cautions": list(trained.warnings),
        "earlier": None if outcome.earlier is None else _earlier(outcome.earlier),
    }


def _earlier(model: PreviousModel) -> dict[str, Any]:
    return {
        "version": model.version,
        "judged_on": model.place,
        "same_data": model.same_data,
        "nll": {name: {"earlier": was, "now": now} for name, (was, now) in model.nll.items()},
    }


def _reading_train_document(choice: ModelChoice | None) -> dict[str, Any] | None:
    """What was compared, and what came of it; None where nothing was."""
    if choice is None:
        return None
    return {
        "chosen": "linear" if choice.is_linear else "networks",
        "networks_nll": choice.networks_nll,
        "linear_nll": choice.linear_nll,
        "linear": {
            name: {"labels": recipe.source, "penalty": recipe.penalty}
            for name, recipe in choice.linear.items()
        },
        "told": choice.describe(),
    }


def _data(run: TrainingRun) -> dict[str, Any]:
    dataset = run.dataset
    counts = {split: len(dataset.positions(split)) for split in SPLITS}
    return {
        "name": dataset.name,
        "entities": len(dataset),
        "items": int(dataset.offsets[-1]),
        "splits": {split: number for split, number in counts.items() if number},
        "few": run.few,
        "claims": {
            "entities": sum(entity.claim is not None for entity in dataset),
            "read": run.claims_read,
        },
        "digest": dataset.digest,
    }


def _seeds_train_document(trained: Trained) -> list[dict[str, Any]]:
    """Best first."""
    members = trained.network_seeds
    histories = [trained.histories[place] for place in ranked(trained.histories)]
    return [_seed(history, history.seed in members) for history in histories]


def _seed(history: SeedHistory, member: bool) -> dict[str, Any]:
    return {
        "seed": history.seed,
        "member": member,
        **{name: getattr(history.best, field) for name, field in SPREAD.items()},
        "best_epoch": history.best_epoch,
        "epochs": len(history.epochs),
        "converged": history.converged,
    }


def _fitted_train_document(found: FittedParameters) -> dict[str, Any]:
    robust = found.robust
    numbers = robust.parameters.to_dict() | {"learned_temperature": found.learned_temperature}
    return {
        "entities": robust.entities,
        "nll_before": robust.nll_before,
        "nll_after": robust.nll_after,
        "nll_cross_fitted": robust.nll_cross_fitted,
        "converged": robust.converged,
        "numbers": numbers,
        "meaning": {name: sentence for name, _, sentence in fitted_lines(numbers)},
    }


def _scores(found: Scores) -> dict[str, Any]:
    return {**found.to_dict(), "calibrated": found.ece <= found.ece_null}
