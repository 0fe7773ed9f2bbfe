"""The outcome of a training run, on the terminal and as a JSON document.

The terminal shows how good the model is, the warnings and what to do next; with ``--verbose`` also
the seeds and the fitted parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from lpf.cli.safe_output import one_line
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
    from lpf.training.model_choice import ModelChoice
    from lpf.workspace.models import PreviousModel
    from lpf.workspace.training_runs import TrainingOutcome, TrainingRun

SEED_COLUMNS = ("accuracy", "loss", "cross-entropy", "KL", "epoch")
SCORES = ("entities", "accuracy", "NLL", "Brier", "ECE", "chance")
LEAST_SLOPE = 0.05  # below it, credibility changes next to nothing
EXAMPLE = 5  # items, to illustrate what rho means


def show_training(document: Mapping[str, Any], *, verbose: bool = False) -> None:
    """Show the model first, then its scores and warnings, and last what to do next. A model that
    is no better than the class shares or the claim alone says so before anything else."""
    output = console()
    first = [*document["not_better_than_class_shares"], *document["not_better_than_claim"]]
    for sentence in first:
        output.print(Text(one_line(sentence), style="bold yellow"))
    _show_head(output, document)
    for predicate in document["predicates"]:
        by_place = {place: scores[predicate] for place, scores in document["scores"].items()}
        output.print()
        print_table(output, f"Scores for {predicate}, over whole entities", scores_table(by_place))
        output.print(indented(Text(_calibration_verdict(by_place))))
    if document["grid"]:
        output.print()
        print_table(output, "Grid: the best seed of each configuration", _grid(document))
    if verbose:
        _show_details(output, document)
    show_warnings(output, [one for one in document["cautions"] if one not in first])
    _show_next(output, document, verbose)


def _show_head(output: Console, document: Mapping[str, Any]) -> None:
    data = document["data"]
    state = "answers from now on" if document["active"] else "was saved; it does not answer yet"
    splits = " · ".join(f"{name} {number:,}" for name, number in data["splits"].items())
    entities = count(data["entities"], "entity", "entities")
    output.print(Text(f"Model {document['version']} {state}.", style="bold"))
    print_pairs(
        output,
        [
            ("name", document["name"]),
            ("predicates", ", ".join(document["predicates"])),
            ("data", f"{data['name']}: {entities}, {count(data['items'], 'item')}"),
            ("splits", splits or "none: few entities are trained on in folds"),
            ("reader", short_reader(document["reader"])),
            *_tuning(document["tuning"]),
            *_claims(data["claims"]),
            *_prior(document["prior"]),
            *_model_choice(document),
            *_ignored(document["ignored"]),
            *_more_than_top_k(data["most_items"], document["top_k"]),
            *_credibility(document["credibility"]),
        ],
    )


def _claims(claims: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The row about claims; none if the data has no claims."""
    if not claims["entities"]:
        return [("claims", "each item is read with its own")] if claims["read"] else []
    have = count(claims["entities"], "entity has one", "entities have one")
    read = "read with the evidence" if claims["read"] else "not read (with_claim in lpf.toml)"
    return [("claims", f"{have}; {read}")]


def _prior(prior: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The row about a learned circuit: answers also use facts, which scores cannot."""
    if prior["from"] == "schema":
        return []
    return [("prior", "of the learned circuit; scores are without known facts, which answers use")]


def _model_choice(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    choice = document["reading"]
    if choice is None:
        return [("model", "networks")]
    networks, linear = choice["networks_nll"], choice["linear_nll"]
    chosen = "linear model" if choice["chosen"] == "linear" else choice["chosen"]
    if networks is None:
        compared = f"held-out NLL {linear:.4f}; networks are not tried on a tuned reader"
    else:
        compared = f"held-out NLL: networks {networks:.4f}, linear model {linear:.4f}"
        if chosen == "linear model" and networks < linear:
            compared += f", standard error {choice['networks_error']:.4f}"
    if choice["verdicts_nll"] is not None:
        compared += f", starting from verdicts without labels {choice['verdicts_nll']:.4f}"
    return [("model", f"{chosen} ({compared})")]


def _tuning(tuning: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """The row about the ladder: what was tried, what it brought and what was chosen."""
    if tuning is None:
        return []
    if tuning["not_tried"] is not None:
        return [("tuning", f"not tried: {tuning['not_tried']}")]
    lines = [f"untuned: held-out NLL {tuning['untuned_nll']:.4f}"]
    for rung in tuning["rungs"]:
        chosen = ", chosen" if rung["name"] == tuning["chosen"] else ""
        lines.append(f"{rung['name']}: {_rung(rung)}{chosen}")
    if tuning["chosen"] is None:
        lines[0] += ", chosen"
    return [("tuning", "\n".join(lines))]


def _rung(rung: Mapping[str, Any]) -> str:
    minutes = f"{rung['seconds'] / 60:.1f} min"
    if rung["skipped"] is not None:
        return f"not tried, it takes about {minutes} and {rung['skipped']} (--budget)"
    part = "" if rung["share"] == 1.0 else f" (on {rung['share']:.0%} of the entities: --budget)"
    return f"held-out NLL {rung['nll']:.4f}, {rung['difference']}, in {minutes}{part}"


def _ignored(options: Sequence[str]) -> list[tuple[str, str]]:
    if not options:
        return []
    reason = "few entities are trained on in folds, without an aggregator"
    return [("not used", f"{', '.join(options)}: {reason}")]


def _more_than_top_k(most: int, top_k: int) -> list[tuple[str, str]]:
    """Questions use the best items only; the model is fitted to any number and scored on all."""
    if most <= top_k:
        return []
    said = f"scores use all items of an entity, up to {most:,}; a question uses the best {top_k}"
    return [("items", f"{said} (query.top_k in lpf.toml, --top-k)")]


def _credibility(credibility: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """A row for each predicate whose items have credibilities that say nothing."""
    for name, one in credibility.items():
        if one["items"] and not one["has_effect"]:
            effect = "no effect" if one["slope"] == 0.0 else "hardly any effect"
            why = "on held-out entities, items of higher credibility were not right more often"
            yield "credibility", f"has {effect} on how much an item about {name} counts: {why}"


def scores_table(scores: Mapping[str, Mapping[str, Any]]) -> FittedTable:
    """One row per place, such as "test/spn", and class shares and claim alone for each part of the
    data.
    ``chance`` is how high an ECE may be by chance alone."""
    by_data: dict[str, list[list[str]]] = {}
    for place, measures in scores.items():
        data, variant = place.split("/")
        by_data.setdefault(data, []).append([data, variant, *_score_cells(measures)])
    for data, rows in by_data.items():
        rows += _yardstick(data, scores[f"{data}/{rows[0][1]}"])
    all_rows = [row for rows in by_data.values() for row in rows]
    return table(
        ("data", "variant", *SCORES), all_rows, right=SCORES, optional=("Brier", "entities")
    )


def _yardstick(data: str, measures: Mapping[str, Any]) -> list[list[str]]:
    """The rows of class shares and claim alone; cards of earlier versions have at most the prior's
    NLL."""
    names = {"class_shares": "class shares", "claim": "claim alone"}
    known = {name: title for name, title in names.items() if f"{name}_nll" in measures}
    if known:
        numbers = {name: (measures[f"{name}_accuracy"], measures[f"{name}_nll"]) for name in known}
        return [
            [data, known[name], "", percent(accuracy), f"{nll:.4f}", "", "", ""]
            for name, (accuracy, nll) in numbers.items()
        ]
    if "prior_nll" in measures:
        return [[data, "prior", "", "", f"{measures['prior_nll']:.4f}", "", "", ""]]
    return []


def _score_cells(measures: Mapping[str, Any]) -> list[str]:
    return [
        f"{measures['entities']:,.0f}",
        percent(measures["accuracy"]),
        *(f"{measures[name]:.4f}" for name in ("nll", "brier", "ece", "ece_null")),
    ]


def _calibration_verdict(scores: Mapping[str, Mapping[str, Any]]) -> str:
    off = [place for place, one in scores.items() if one["ece"] > one["ece_null"]]
    if not off:
        return "Calibration: no ECE is above what a perfectly calibrated model gets by chance."
    return (
        f"Calibration: the ECE of {', '.join(off)} is above chance; a perfectly calibrated model "
        "stays below it 95 times in 100."
    )


def show_warnings(output: Console, warnings: Sequence[str]) -> None:
    if not warnings:
        return
    body = Text("\n".join(f"- {one_line(warning)}" for warning in warnings))
    output.print()
    output.print(
        Panel(body, title="Warnings", title_align="left", border_style="yellow", expand=False)
    )


def _show_next(output: Console, document: Mapping[str, Any], verbose: bool) -> None:
    output.print()
    if document["report"]:
        output.print(Text(f"  report  {one_line(document['report'])}"), soft_wrap=True)
    pairs = []
    if document["earlier"] is not None:
        pairs += _earlier_model(document["earlier"], document["active"])
    pairs.append(("next", document["next"]))
    if not verbose:
        pairs.append(("more", "seeds and fitted parameters: --verbose, or the report"))
    print_pairs(output, [(f"{name:<6}", value) for name, value in pairs])


def _earlier_model(earlier: Mapping[str, Any], was_replaced: bool) -> list[tuple[str, str]]:
    """The model that answered until now, and how to go back to it."""
    new = "now" if was_replaced else "this one's"
    losses = [
        f"NLL of {name} {one['earlier']:.4f}, {new} {one['now']:.4f}"
        for name, one in earlier["nll"].items()
    ]
    compared = "not scored on the same data" if not losses else _compared_on(earlier, losses)
    pairs = [("before" if was_replaced else "still", f"{earlier['version']}: {compared}")]
    if was_replaced:
        pairs.append(("back", f"lpf models use {earlier['version']}"))
    return pairs


def _compared_on(earlier: Mapping[str, Any], losses: Sequence[str]) -> str:
    data = earlier["judged_on"].split("/")[0]
    where = "out of fold" if data == "out of fold" else f"on {data} entities"
    other = "" if earlier["same_data"] else "; the data has the same name but other content"
    return f"{', '.join(losses)} ({where}{other})"


def _show_details(output: Console, document: Mapping[str, Any]) -> None:
    """Details for researchers: the seeds and the fitted parameters."""
    scored_on = "held-out items of folds" if document["data"]["few"] else "validation items"
    output.print()
    title = f"Seeds, best first, scored on {scored_on}; * marks those in the model"
    print_table(output, title, _seeds(document["seeds"]))
    print_pairs(output, _spread(document["spread"], len(document["seeds"])))
    for predicate, fitted in document["fitted"].items():
        output.print()
        output.print(Text(one_line(f"Fitted parameters for {predicate}"), style="bold"))
        print_pairs(output, _fitted(fitted))


def _grid(document: Mapping[str, Any]) -> FittedTable:
    config = document["config"]
    chosen = (config["learning_rate"], config["latent_width"], tuple(config["hidden"]))
    rows = [
        [
            "*"
            if (one["learning_rate"], one["latent_width"], tuple(one["hidden"])) == chosen
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
    headings = ("", "learning rate", "latent width", "hidden", "seed", "accuracy", "loss")
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
    headings = ("", "seed", *SEED_COLUMNS, "converged")
    return table(headings, rows, right=("seed", *SEED_COLUMNS), optional=("converged", "KL"))


def _spread(spread: Mapping[str, Mapping[str, float]], seeds: int) -> Iterator[tuple[str, str]]:
    """Mean and standard deviation over the seeds; nothing for a single one."""
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
    for name, number, sentence in parameter_help(fitted["numbers"]):
        yield name.replace("_", " "), f"{number:.4f}  {sentence}"
    change = f"{fitted['nll_before']:.4f} before, {fitted['nll_after']:.4f} after"
    if fitted["nll_cross_fitted"] is not None:
        change += f", {fitted['nll_cross_fitted']:.4f} on held-out folds"
    yield "NLL", f"{change}; on {count(fitted['entities'], 'entity', 'entities')}"


def parameter_help(numbers: Mapping[str, float | None]) -> Iterator[tuple[str, float, str]]:
    """Name, value and meaning of each fitted parameter that is given. Full trust is not worth a
    line: it is less only if groups are few."""
    meanings = {
        "temperature": _temperature,
        "rho": _rho,
        "epsilon": _epsilon,
        "slope": _slope,
        "trust": _trust,
        "min_credibility": _min_credibility,
        "learned_temperature": _learned_temperature,
    }
    for name, meaning in meanings.items():
        number = numbers.get(name)
        if number is not None and (name, number) != ("trust", 1.0):
            yield name, float(number), meaning(float(number))


def _temperature(number: float) -> str:
    return f"The probabilities of single items {_correction(number)}."


def _learned_temperature(number: float) -> str:
    return f"The probabilities of the learned aggregator {_correction(number)}."


def _correction(temperature: float) -> str:
    if abs(temperature - 1.0) < 0.02:
        return "are used unchanged"
    if temperature > 1:
        return "were overconfident and are softened"
    return "were underconfident and are sharpened"


def _rho(number: float) -> str:
    independent = EXAMPLE / (1.0 + (EXAMPLE - 1) * number)
    return f"Items share errors: {EXAMPLE} count like {independent:.1f} independent ones."


def _epsilon(number: float) -> str:
    return f"{100 * number:.0f} % of items with average credibility are assumed to say nothing."


def _slope(number: float) -> str:
    if number < LEAST_SLOPE:
        return "Credibility hardly changes how far an item is trusted."
    return "Items with higher credibility are trusted more; at 1, in proportion to its odds."


def _trust(number: float) -> str:
    return f"Evidence counts {100 * number:.0f} %: it says less about groups not trained on."


def _min_credibility(number: float) -> str:
    if number == 0.0:
        return "Questions use items of every credibility."
    return "Items below this credibility are left out of questions; that made answers better."


SPREAD = {
    "accuracy": "validation_accuracy",
    "loss": "validation_loss",
    "cross_entropy": "validation_cross_entropy",
    "kl": "validation_kl",
}


def training_document(outcome: TrainingOutcome) -> dict[str, Any]:
    """The outcome as one JSON document."""
    run, trained = outcome.run, outcome.trained
    return {
        "beats_class_shares": {
            name: one.beats_class_shares for name, one in trained.held_out.by_predicate.items()
        },
        "not_better_than_class_shares": list(trained.card.not_better_than_class_shares()),
        "beats_claim": {
            name: one.beats_claim for name, one in trained.held_out.by_predicate.items()
        },
        "not_better_than_claim": list(trained.card.not_better_than_claim()),
        "version": outcome.version,
        "active": outcome.active,
        "name": trained.card.name,
        "report": None if outcome.report is None else str(outcome.report),
        "data": _data_document(run, _held_apart(trained)),
        "predicates": list(run.predicates),
        "prior": _prior_document(run),
        "reader": trained.config.reader_id,
        "config": run.config.to_dict(),
        "reading": _choice_document(trained.choice),
        "tuning": _tuning_document(trained),
        "grid": [asdict(tried) for tried in run.tried],
        "seeds": _seed_documents(trained),
        "spread": {
            name: asdict(spread(trained.histories, field)) for name, field in SPREAD.items()
        },
        "credibility": _credibility_document(run),
        "fitted": {name: _fitted_document(fitted) for name, fitted in trained.fitted.items()},
        "scores": {
            held_out.place: {
                name: _scores_document(scores) for name, scores in held_out.by_predicate.items()
            }
            for held_out in trained.scores
        },
        "cautions": list(trained.warnings),
        "earlier": None if outcome.earlier is None else _earlier_document(outcome.earlier),
    }


def _held_apart(trained: Trained) -> int:
    """How many validation entities were used for nothing but how sure answers are."""
    held_out = trained.config.held_out.values()
    return max((one.entities for one in held_out if one.kind == "apart"), default=0)


def _data_document(run: TrainingRun, held_apart: int) -> dict[str, Any]:
    dataset = run.dataset
    counts: dict[str, int] = {split: len(dataset.positions(split)) for split in SPLITS}
    counts["validation"] -= held_apart
    counts["held apart"] = held_apart
    return {
        "name": dataset.name,
        "entities": len(dataset),
        "items": int(dataset.offsets[-1]),
        "most_items": int(np.diff(dataset.offsets).max()),
        "splits": {split: number for split, number in counts.items() if number},
        "few": run.few,
        "claims": {
            "entities": sum(entity.claim is not None for entity in dataset),
            "read": run.claims_read,
        },
        "digest": dataset.digest,
    }


def _prior_document(run: TrainingRun) -> dict[str, Any]:
    """The priors that the model was fitted and scored with, by predicate and value, and where they
    come from."""
    schema = run.dataset.schema
    return {
        "from": "circuit" if run.learned_prior else "schema",
        "values": {
            name: dict(zip(schema[name].values, schema[name].prior, strict=True))
            for name in run.predicates
        },
    }


def _credibility_document(run: TrainingRun) -> dict[str, Any]:
    """By predicate: if credibility changes how much an item counts, the fitted slope, and how many
    items of the data have a credibility."""
    known = sum(item.credibility is not None for item in run.dataset.items)
    slopes = {name: one.robust.parameters.slope for name, one in run.trained.fitted.items()}
    return {
        name: {"has_effect": slope >= LEAST_SLOPE, "slope": slope, "items": known}
        for name, slope in slopes.items()
    }


def _choice_document(choice: ModelChoice | None) -> dict[str, Any] | None:
    """The comparison of networks with a linear model; None if they were not compared."""
    if choice is None:
        return None
    return {
        "chosen": _chosen(choice),
        "networks_nll": choice.networks_nll,
        "networks_error": choice.networks_error,
        "linear_nll": choice.linear_nll,
        "verdicts_nll": choice.verdicts_nll,
        "linear": {
            name: {
                "labels": recipe.source,
                "penalty": None if recipe.is_without_labels else recipe.penalty,
            }
            for name, recipe in choice.linear.items()
        },
        "told": f"model: {choice.describe()}",
    }


def _chosen(choice: ModelChoice) -> str:
    if choice.keeps_verdicts:
        return "verdicts without labels"
    return "linear" if choice.is_linear else "networks"


def _tuning_document(trained: Trained) -> dict[str, Any] | None:
    """What the ladder tried; None if the reader has nothing that could be tuned."""
    choice = trained.reader_choice
    if choice is None:
        return None
    return {
        **asdict(choice),
        "rungs": [asdict(one) | {"difference": one.difference} for one in choice.rungs],
        "told": f"reader: {choice.describe()}",
        "reader": None if trained.tuned is None else dict(trained.tuned.card),
        "sha256": None if trained.tuned is None else trained.tuned.digest,
    }


def _seed_documents(trained: Trained) -> list[dict[str, Any]]:
    """Best first."""
    members = trained.network_seeds
    histories = [trained.histories[place] for place in ranked(trained.histories)]
    return [_seed_document(history, history.seed in members) for history in histories]


def _seed_document(history: SeedHistory, member: bool) -> dict[str, Any]:
    return {
        "seed": history.seed,
        "member": member,
        **{name: getattr(history.best, field) for name, field in SPREAD.items()},
        "best_epoch": history.best_epoch,
        "epochs": len(history.epochs),
        "converged": history.converged,
    }


def _fitted_document(fitted: FittedParameters) -> dict[str, Any]:
    robust = fitted.robust
    numbers = robust.parameters.to_dict() | {
        "learned_temperature": fitted.learned_temperature,
        "min_credibility": fitted.min_credibility,
    }
    return {
        "entities": robust.entities,
        "nll_before": robust.nll_before,
        "nll_after": robust.nll_after,
        "nll_cross_fitted": robust.nll_cross_fitted,
        "converged": robust.converged,
        "numbers": numbers,
        "meaning": {name: sentence for name, _, sentence in parameter_help(numbers)},
    }


def _scores_document(scores: Scores) -> dict[str, Any]:
    return {**scores.to_dict(), "calibrated": scores.ece <= scores.ece_null}


def _earlier_document(model: PreviousModel) -> dict[str, Any]:
    return {
        "version": model.version,
        "judged_on": model.place,
        "same_data": model.same_data,
        "nll": {name: {"earlier": was, "now": now} for name, (was, now) in model.nll.items()},
    }
