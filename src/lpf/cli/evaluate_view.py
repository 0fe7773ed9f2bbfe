"""An evaluation on the terminal: the verdict, one row per method, and the warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

from lpf.cli.safe_output import one_line
from lpf.cli.terminal import INDENT, FittedTable, console, count, indented, table
from lpf.evaluation.comparisons import Comparison
from lpf.evaluation.conclusions import SIGNIFICANT, best_without_lpf, verdict
from lpf.evaluation.data_checks import unlearned
from lpf.evaluation.evaluation import Evaluation
from lpf.evaluation.language_model_run import LanguageModelRun
from lpf.evaluation.measures import SubsetScores
from lpf.evaluation.method_names import standing_of
from lpf.evaluation.summaries import Spread

# Short headings: with a spread, all eight columns just fit a terminal of 80.
HEADINGS = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "brier": "Brier",
    "ece": "ECE",
    "ece_null": "null",
    "macro_f1": "F1",
    "runtime_ms": "ms",
}
BRIEF = ("accuracy", "nll", "ece", "runtime_ms")
OPTIONAL = ("Brier", "ms")
BRIEF_LEGEND = "Lower is better for NLL and ECE; ms: time of a query."
LEGEND = "null: ECE to expect by chance if confidences are right; F1: macro; ms: time of a query."
MODEL_HEADINGS = ("accuracy", "NLL", "Brier", "ECE", "confidence")
MODEL_MEASURES = ("accuracy", "nll", "brier", "ece", "mean_confidence")
SUBSET_HEADINGS = ("entities", "accuracy", "NLL", "confidence")
STYLES = {"ours": "bold", "rival": "", "reference": "dim italic"}


def show_evaluation(evaluation: Evaluation, *, verbose: bool = False) -> None:
    """The verdict, the table and the warnings; with ``verbose`` all measures and comparisons."""
    output = console()
    for sentence in unlearned(evaluation):
        output.print(Text(one_line(sentence), style="bold yellow"))
    output.print(Text(one_line(_head(evaluation))))
    for sentence in verdict(evaluation):
        output.print(Text(one_line(sentence), style="bold"))
    ranked = evaluation.ranked()
    measures = tuple(HEADINGS) if verbose else BRIEF
    headings = tuple(HEADINGS[measure] for measure in measures)
    rows = [_row(evaluation, name, measures) for name in ranked]
    shown = table(("method", *headings), rows, right=headings, optional=OPTIONAL)
    output.print(indented(shown))
    _show_subsets(evaluation, ranked)
    details = (*_conclusions(evaluation), *_unshared(evaluation)) if verbose else ()
    hints = (
        LEGEND if verbose else BRIEF_LEGEND,
        *_left_out(shown, output.width - INDENT),
        *details,
        *evaluation.warnings,
        *(
            f"{evaluation.title(name)}: {note}"
            for name in ranked
            for note in evaluation.scores(name).notes
        ),
        *(() if verbose else ("All measures and comparisons: --verbose, or --json.",)),
    )
    for sentence in hints:
        output.print(Text(f"· {one_line(sentence)}"))
    if evaluation.language_model is not None:
        _show_language_model(evaluation, evaluation.language_model)


def _show_language_model(evaluation: Evaluation, run: LanguageModelRun) -> None:
    """A language model and the other methods, on the entities that it answered."""
    output, costs = console(), run.answers.costs
    failed = int(run.answers.failed.sum())
    head = f"{run.name}: {count(len(run.labels), 'entity', 'entities')} asked, {failed} failed"
    output.print(Text(one_line(head), style="bold"))
    rows = [
        [evaluation.title(name), *(_plain(scores[measure]) for measure in MODEL_MEASURES)]
        for name, scores in {run.name: run.measures, **run.beside}.items()
    ]
    output.print(indented(table(("method", *MODEL_HEADINGS), rows, right=MODEL_HEADINGS)))
    money = "" if costs.money is None else f", {costs.money:.4f} dollars"
    seconds = "" if costs.mean_seconds is None else f", {costs.mean_seconds:.2f} s each"
    output.print(
        Text(
            f"· {count(costs.requests, 'request')} with {costs.retries} repeated, "
            f"{costs.input_tokens:,} tokens read and {costs.output_tokens:,} written"
            f"{seconds}{money}. Its probabilities have no fitted temperature."
        )
    )


def _left_out(shown: FittedTable, width: int) -> list[str]:
    """Columns that a narrow terminal has no room for."""
    visible = {column.heading for column, _ in shown.fitted(width)}
    missing = [column.heading for column in shown.columns if column.heading not in visible]
    if not missing:
        return []
    return [f"No room for {' and '.join(missing)}: a wider terminal or --json shows all."]


def _plain(value: float | None) -> str:
    return "∞" if value is None else f"{value:.3f}"


def _head(evaluation: Evaluation) -> str:
    folds = evaluation.folds
    how = f"{folds} folds by group" if folds else "the file's own test split"
    seeds = count(len(evaluation.plan.seeds), "repetition")
    entities = count(evaluation.test_entities, "test entity", "test entities")
    return f"{evaluation.dataset.name} · {evaluation.predicate}: {entities}, {how}, {seeds}"


def _row(evaluation: Evaluation, name: str, measures: Sequence[str]) -> list[str | Text]:
    spreads = evaluation.scores(name).spreads
    style = STYLES[standing_of(name)]
    cells = [_number(spreads.get(measure), measure) for measure in measures]
    title = evaluation.title(name)
    return [Text(one_line(title), style=style), *(Text(cell, style=style) for cell in cells)]


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


def _conclusions(evaluation: Evaluation) -> list[str]:
    """Which methods LPF beats and which beat it, beyond chance."""
    if evaluation.ours is None:
        return []
    comparisons = evaluation.comparisons()
    title, ours = evaluation.title, evaluation.title(evaluation.ours)
    compared = [
        (each.name, each.difference.mean, each.adjusted)
        for each in comparisons
        if each.difference is not None and each.adjusted is not None
    ]
    better = [title(name) for name, mean, p in compared if p < SIGNIFICANT and mean < 0]
    worse = [title(name) for name, mean, p in compared if p < SIGNIFICANT and mean > 0]
    sentences = []
    if worse:
        sentences.append(f"{ours} has a higher NLL, beyond chance, than: {', '.join(worse)}.")
    if better:
        sentences.append(f"{ours} has a lower NLL, beyond chance, than: {', '.join(better)}.")
    rest = len(compared) - len(worse) - len(better)
    if rest:
        methods = count(rest, "method")
        sentences.append(f"No difference beyond chance to {methods} by NLL (Holm, 5 %).")
    if comparisons and not evaluation.scores(evaluation.ours).runs:
        return [*sentences, f"Nothing was compared with {ours}, which has no predictions."]
    return [*sentences, *_not_compared(evaluation, comparisons, ours)]


def _not_compared(
    evaluation: Evaluation, comparisons: Sequence[Comparison], ours: str
) -> list[str]:
    """Methods that were not compared, or only on some repetitions."""
    noted: dict[str, list[str]] = {}
    for each in comparisons:
        if each.note is not None:
            noted.setdefault(each.note, []).append(evaluation.title(each.name))
    return [f"{ours} against {', '.join(names)}: {note}." for note, names in noted.items()]


def _show_subsets(evaluation: Evaluation, ranked: Sequence[str]) -> None:
    """Scores by the protected field, of LPF and the best rival; of the best method if neither was
    evaluated."""
    rows = [
        [evaluation.title(name), scores.name, f"{scores.entities:,}", *_subset_numbers(scores)]
        for name in _main_methods(evaluation) or ranked[:1]
        for scores in evaluation.subset_scores(name)
    ]
    if rows:
        headings = ("method", f"by {evaluation.plan.protected}", *SUBSET_HEADINGS)
        subsets = table(headings, rows, right=SUBSET_HEADINGS, optional=("entities",))
        console().print(indented(subsets))


def _subset_numbers(scores: SubsetScores) -> list[str]:
    numbers = (scores.accuracy, scores.nll, scores.mean_confidence)
    return [f"{value:.3f}" if math.isfinite(value) else "∞" for value in numbers]


def _main_methods(evaluation: Evaluation) -> list[str]:
    """LPF and the best method without LPF, as far as they were evaluated."""
    both = (evaluation.ours, best_without_lpf(evaluation))
    return [name for name in both if name is not None]


def _unshared(evaluation: Evaluation) -> list[str]:
    """The main methods on test entities that share nothing with training entities."""
    parts = []
    for name in _main_methods(evaluation):
        scores = evaluation.unshared_scores(name)
        if scores is not None and scores.spreads:
            parts.append(
                f"{evaluation.title(name)} {scores.spreads['accuracy'].mean:.3f} accuracy, "
                f"{scores.spreads['nll'].mean:.3f} NLL"
            )
    if not parts or evaluation.unshared_ids is None:
        return []
    return [
        f"On the {len(evaluation.unshared_ids):,} test entities that share nothing with training "
        f"entities: {'; '.join(parts)}."
    ]
