"""The conclusions of an evaluation in a few sentences: the best method, and how LPF compares."""

from __future__ import annotations

import math

from lpf.evaluation.comparisons import Comparison
from lpf.evaluation.data_checks import unlearned
from lpf.evaluation.evaluation import Evaluation
from lpf.evaluation.method_names import standing_of
from lpf.evaluation.summaries import Spread

SIGNIFICANT = 0.05
COLUMNS = {"accuracy": "accuracy", "nll": "NLL", "ece": "ECE"}


def verdict(evaluation: Evaluation) -> list[str]:
    """The best method by NLL, and LPF against the best method without LPF. What comes before all of
    it, if LPF is no better than the class shares, is said by ``unlearned``."""
    ranked = [
        name
        for name in evaluation.ranked()
        if standing_of(name) != "reference" and math.isfinite(evaluation.nll(name))
    ]
    if not ranked:
        return []
    sentences = [f"Lowest NLL: {_named(evaluation, ranked[0])}."]
    rival = best_without_lpf(evaluation)
    if evaluation.ours is not None and rival is not None:
        compared = next((one for one in evaluation.comparisons() if one.name == rival), None)
        if compared is not None:
            sentences.append(_against(evaluation, evaluation.ours, rival, compared))
    return sentences


def best_without_lpf(evaluation: Evaluation) -> str | None:
    """The method with the lowest NLL that is neither LPF nor a reference."""
    return next(
        (
            name
            for name in evaluation.ranked()
            if standing_of(name) != "reference"
            and not name.startswith("lpf_")
            and math.isfinite(evaluation.nll(name))
        ),
        None,
    )


def _named(evaluation: Evaluation, method: str) -> str:
    return f"{evaluation.title(method)} ({evaluation.nll(method):.3f})"


def _against(evaluation: Evaluation, ours: str, rival: str, compared: Comparison) -> str:
    title, other = evaluation.title(ours), evaluation.title(rival)
    if compared.difference is None or compared.adjusted is None:
        return f"{title} could not be compared with {other}."
    difference = compared.difference
    numbers = (
        f"(NLL {difference.mean:+.3f}, 95 % interval {difference.low:+.3f} to "
        f"{difference.high:+.3f}, p = {compared.adjusted:.3f})"
    )
    if compared.adjusted >= SIGNIFICANT:
        return (
            f"No difference beyond chance between {title} and the best method without LPF, {other} "
            f"{numbers}."
        )
    word = "better" if difference.mean < 0 else "worse"
    return f"{title} is {word} than the best method without LPF, {other}, beyond chance {numbers}."


def summary_text(evaluation: Evaluation) -> str:
    """Verdict, table and warnings as plain text."""
    names = evaluation.ranked()
    width = max(len(evaluation.title(name)) for name in names)
    header = " ".join([" " * width, *(f"{title:>9}" for title in COLUMNS.values())])
    lines = [
        *unlearned(evaluation),
        f"{evaluation.dataset.name}, {evaluation.predicate}: {evaluation.test_entities:,} test "
        f"entities, {len(evaluation.plan.seeds)} repetitions",
        *verdict(evaluation),
        "",
        header,
    ]
    for name in names:
        spreads = evaluation.scores(name).spreads
        cells = (f"{_number(spreads.get(measure)):>9}" for measure in COLUMNS)
        lines.append(" ".join([f"{evaluation.title(name):<{width}}", *cells]).rstrip())
    if evaluation.warnings:
        lines += ["", *(f"Warning: {sentence}" for sentence in evaluation.warnings)]
    return "\n".join(lines)


def _number(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"{spread.mean:.3f}" if math.isfinite(spread.mean) else "∞"
