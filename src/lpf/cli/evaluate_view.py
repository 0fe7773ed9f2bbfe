"""An evaluation on the terminal: one row a method, and what to make of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

from lpf.cli.terminal import INDENT, FittedTable, console, count, indented, table
from lpf.evaluation.comparisons import Comparison
from lpf.evaluation.evaluation import Evaluation
from lpf.evaluation.evaluation_warnings import unlearned
from lpf.evaluation.language_model_run import LanguageModelRun
from lpf.evaluation.measures import SubsetScores
from lpf.evaluation.method_names import standing_of
from lpf.evaluation.summaries import Spread

# Short, and numbers are too: with a spread, eight columns just fit a terminal of 80.
HEADINGS = ("method", "accuracy", "NLL", "Brier", "ECE", "null", "F1", "ms")
OPTIONAL = ("Brier", "ms")
LEGEND = "null: the ECE to expect by chance if confidences are right; F1: macro; ms: a query."
MEASURES = ("accuracy", "nll", "brier", "ece", "ece_null", "macro_f1", "runtime_ms")
ASKED_HEADINGS = ("accuracy", "NLL", "Brier", "ECE", "confidence")
ASKED_MEASURES = ("accuracy", "nll", "brier", "ece", "mean_confidence")
PART_HEADINGS = ("entities", "accuracy", "NLL", "confidence")
STYLES = {"ours": "bold", "rival": "", "reference": "dim italic"}


def show_evaluation(evaluation: Evaluation) -> None:
    output = console()
    output.print(Text(_head(evaluation), style="bold"))
    ranked = sorted(evaluation.runs, key=lambda name: _order(evaluation, name))
    rows = [_row(evaluation, name) for name in ranked]
    measured = table(HEADINGS, rows, right=HEADINGS[1:], optional=OPTIONAL)
    output.print(indented(measured))
    _show_parts(evaluation, ranked)
    remarks = (
        LEGEND,
        *_left_out(measured, output.width - INDENT),
        *unlearned(evaluation),
        *_conclusions(evaluation),
        *_clean(evaluation, ranked),
        *evaluation.warnings,
        *(
            f"{evaluation.title(name)}: {note}"
            for name in ranked
            for note in evaluation.scores(name).notes
        ),
    )
    for sentence in remarks:
        output.print(Text(f"· {sentence}"))


def show_asked(evaluation: Evaluation, asked: LanguageModelRun | None) -> None:
    """A language model beside the others, on the entities that it was asked about."""
    if asked is None:
        return
    output, costs = console(), asked.answers.costs
    failed = int(asked.answers.failed.sum())
    head = f"{asked.name}: {count(len(asked.labels), 'entity', 'entities')} asked, {failed} failed"
    output.print(Text(head, style="bold"))
    rows = [
        [evaluation.title(name), *(_plain(found[measure]) for measure in ASKED_MEASURES)]
        for name, found in {asked.name: asked.measures, **asked.beside}.items()
    ]
    output.print(indented(table(("method", *ASKED_HEADINGS), rows, right=ASKED_HEADINGS)))
    money = "" if costs.money is None else f", {costs.money:.4f} dollars"
    seconds = "" if costs.mean_seconds is None else f", {costs.mean_seconds:.2f} s each"
    output.print(
        Text(
            f"· {count(costs.requests, 'request')} with {costs.retries} repeated, "
            f"{costs.input_tokens:,} tokens read and {costs.output_tokens:,} written"
            f"{seconds}{money}. It answers as it comes, without a fitted temperature."
        )
    )


def _left_out(shown: FittedTable, width: int) -> list[str]:
    """What a narrow terminal had no room for."""
    kept = {column.heading for column, _ in shown.fitted(width)}
    missing = [column.heading for column in shown.columns if column.heading not in kept]
    if not missing:
        return []
    return [f"No room for {' and '.join(missing)}: a wider terminal or --json shows all."]


def _plain(value: float | None) -> str:
    return "∞" if value is None else f"{value:.3f}"


def _head(evaluation: Evaluation) -> str:
    asked = len(next(iter(evaluation.runs.values()))[0].labels)
    how = f"{evaluation.folds} folds by group" if evaluation.folds else "the file's own test split"
    seeds = count(len(evaluation.plan.seeds), "repetition")
    entities = count(asked, "entity", "entities")
    return f"{evaluation.dataset.name} · {evaluation.predicate}: {entities} asked, {how}, {seeds}"


def _row(evaluation: Evaluation, name: str) -> list[str | Text]:
    spreads = evaluation.scores(name).spreads
    style = STYLES[standing_of(name)]
    cells = [_number(spreads.get(measure), measure) for measure in MEASURES]
    title = evaluation.title(name)
    return [Text(title, style=style), *(Text(cell, style=style) for cell in cells)]


def _number(spread: Spread | None, measure: str) -> str:
    if spread is None:
        return "-"
    if not math.isfinite(spread.mean):
        return "∞"
    if measure == "runtime_ms":
        return _three_digits(spread.mean)
    if spread.sd is None or measure not in ("accuracy", "nll"):
        return f"{spread.mean:.3f}"
    return f"{spread.mean:.3f}±{f'{spread.sd:.3f}'.removeprefix('0')}"


def _three_digits(value: float) -> str:
    """1.23, 12.3, 123."""
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"


def _order(evaluation: Evaluation, name: str) -> tuple[bool, float]:
    spread = evaluation.scores(name).spreads.get("nll")
    return standing_of(name) == "reference", math.inf if spread is None else spread.mean


def _conclusions(evaluation: Evaluation) -> list[str]:
    """Whom LPF beats and who beats it, beyond what chance would do."""
    if evaluation.ours is None:
        return []
    every = evaluation.comparisons()
    found = [one for one in every if one.adjusted is not None]
    sure = [one for one in found if one.adjusted is not None and one.adjusted < 0.05]
    title = evaluation.title
    worse = [title(one.name) for one in sure if one.difference and one.difference.mean > 0]
    better = [title(one.name) for one in sure if one.difference and one.difference.mean < 0]
    ours = title(evaluation.ours)
    sentences = []
    if worse:
        sentences.append(f"{ours} has a higher NLL, beyond chance, than: {', '.join(worse)}.")
    if better:
        sentences.append(f"{ours} has a lower NLL, beyond chance, than: {', '.join(better)}.")
    rest = len(found) - len(worse) - len(better)
    if rest:
        sentences.append(f"From {count(rest, 'method')} it cannot be told by NLL (Holm, 5 %).")
    if every and not evaluation.scores(evaluation.ours).runs:
        return [*sentences, f"Nothing was compared with {ours}, which has no answers."]
    return [*sentences, *_not_compared(evaluation, every, ours)]


def _not_compared(evaluation: Evaluation, every: Sequence[Comparison], ours: str) -> list[str]:
    """Also those that were compared on some of the repetitions only."""
    noted: dict[str, list[str]] = {}
    for one in every:
        if one.note is not None:
            noted.setdefault(one.note, []).append(evaluation.title(one.name))
    return [f"{ours} against {', '.join(names)}: {note}." for note, names in noted.items()]


def _show_parts(evaluation: Evaluation, ranked: Sequence[str]) -> None:
    """By the protected field: LPF and the best rival, or the best of all without them."""
    chosen = _chosen(evaluation, ranked) or ranked[:1]
    rows = [
        [evaluation.title(name), part.name, f"{part.entities:,}", *_part_numbers(part)]
        for name in chosen
        for part in evaluation.parts(name)
    ]
    if rows:
        headings = ("method", f"by {evaluation.plan.protected}", *PART_HEADINGS)
        parts = table(headings, rows, right=PART_HEADINGS, optional=("entities",))
        console().print(indented(parts))


def _part_numbers(part: SubsetScores) -> list[str]:
    found = (part.accuracy, part.nll, part.mean_confidence)
    return [f"{value:.3f}" if math.isfinite(value) else "∞" for value in found]


def _chosen(evaluation: Evaluation, ranked: Sequence[str]) -> list[str]:
    best = next((name for name in ranked if standing_of(name) == "rival"), None)
    return [name for name in (evaluation.ours, best) if name is not None]


def _clean(evaluation: Evaluation, ranked: Sequence[str]) -> list[str]:
    """The few that matter, on entities that share nothing."""
    told = []
    for name in _chosen(evaluation, ranked):
        found = evaluation.unshared_scores(name)
        if found is not None and found.spreads:
            told.append(
                f"{evaluation.title(name)} {found.spreads['accuracy'].mean:.3f} accuracy, "
                f"{found.spreads['nll'].mean:.3f} NLL"
            )
    if not told or evaluation.unshared_ids is None:
        return []
    return [
        f"On the {len(evaluation.unshared_ids):,} entities that share nothing with those learned "
        f"from: {'; '.join(told)}."
    ]
