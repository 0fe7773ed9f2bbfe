"""What is carried over from one domain to another, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.experiments.answered import Answered
from lpf.experiments.exhibits import Value
from lpf.experiments.naming import title_of
from lpf.experiments.plan import Plan
from lpf.experiments.studies.robustness.findings import OURS
from lpf.experiments.studies.transfer.answers import Matched, accuracy, opposite
from lpf.experiments.studies.transfer.cells import METHODS, away_pairs
from lpf.experiments.studies.transfer.exhibits import frequent_row, method_row


def transfer_findings(plan: Plan, answers: Matched) -> list[str]:
    sentences = [
        _home_and_away(plan, answers),
        _turned(plan, answers),
        _best_away(plan, answers),
        _pair_sentence(plan, answers),
    ]
    return [sentence for sentence in sentences if sentence]


def _home_and_away(plan: Plan, answers: Matched) -> str:
    row, frequent = method_row(plan, OURS, answers), frequent_row(plan, answers)
    home, order, meaning, _, _, sure = (_number(cell) for cell in row.cells)
    if np.isnan([home, meaning]).any():
        return ""
    return (
        f"The robust ensemble is right in {home:.1%} at home; in another domain in {order:.1%} "
        f"with values matched by order and {meaning:.1%} by meaning, at a mean confidence of "
        f"{sure:.1%}. To name the most frequent value would be right in "
        f"{_number(frequent.cells[0]):.1%}."
    )


def _turned(plan: Plan, answers: Matched) -> str:
    """Whether good and bad are what is carried over."""
    pairs = [pair for pair in away_pairs(plan) if opposite(pair)]
    if not pairs:
        return ""
    better = sum(
        _number(answers.mean(OURS, [pair], accuracy, by_meaning=True))
        > _number(answers.mean(OURS, [pair], accuracy))
        for pair in pairs
    )
    return (
        f"In {better} of {len(pairs)} pairs whose orders run against each other, matching good to "
        "good is right more often than matching lowest to lowest."
    )


def _best_away(plan: Plan, answers: Matched) -> str:
    found = {
        method: _number(answers.mean(method, away_pairs(plan), accuracy, by_meaning=True))
        for method in METHODS
    }
    known = {method: value for method, value in found.items() if not np.isnan(value)}
    if len(known) < 2:
        return ""
    order = sorted(known, key=lambda method: -known[method])
    told = ", ".join(f"{title_of(method)} {known[method]:.1%}" for method in order)
    return (
        f"Right away from home, by meaning, most often first: {told}. "
        f"{_first_two(plan, order, answers)}"
    )


def _first_two(plan: Plan, order: Sequence[str], answers: Matched) -> str:
    """Counts rather than a p-value: a resampled difference of few answers, all on one side, never
    crosses 0 however few they are."""
    first, second = (
        answers.runs(method, away_pairs(plan), plan.study_seeds, by_meaning=True)
        for method in order[:2]
    )
    both = [pair for pair in zip(first, second, strict=True) if not any(one.error for one in pair)]
    right = [[_right(one) for one in pair] for pair in both]
    alone, other = (sum(int((pair[at] & ~pair[1 - at]).sum()) for pair in right) for at in (0, 1))
    return (
        f"Of {sum(len(one.labels) for one, _ in both):,} answers the first alone is right in "
        f"{alone:,}, the second alone in {other:,}."
    )


def _right(answered: Answered) -> NDArray[np.bool_]:
    return metrics.judged(answered.answers, answered.labels.astype(np.int64))[1]


def _pair_sentence(plan: Plan, answers: Matched) -> str:
    found = {
        pair: value
        for pair in away_pairs(plan)
        if not np.isnan(value := _number(answers.mean(OURS, [pair], accuracy, by_meaning=True)))
    }
    if not found:
        return ""
    best, worst = max(found, key=lambda one: found[one]), min(found, key=lambda one: found[one])
    return (
        f"By meaning, most is carried over from {best[0]} to {best[1]} ({found[best]:.1%} right), "
        f"least from {worst[0]} to {worst[1]} ({found[worst]:.1%})."
    )


def _number(cell: Value | str | None) -> float:
    """NaN where there is none."""
    return np.nan if not isinstance(cell, Value) or cell.value is None else cell.value
