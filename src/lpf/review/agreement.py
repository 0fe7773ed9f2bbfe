"""How far reviewers agree with each other, by predicate: over all of them, and for each pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from lpf.metrics.agreement import DRAWS, Alpha, alpha_with_interval, counts_of
from lpf.review.feedback import AllFeedback, AnswerFeedback

UNSURE: Final = ""  # no predicate has an empty value


@dataclass(frozen=True)
class Agreement:
    """Of one predicate. ``reviewers`` are the numbers of values that each gave; ``pairs`` are by
    the names of two reviewers who share at least one answer."""

    predicate: str
    overall: Alpha
    pairs: Mapping[tuple[str, str], Alpha]
    reviewers: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        return {
            "predicate": self.predicate,
            **self.overall.to_dict(),
            "reviewers": dict(self.reviewers),
            "pairs": [
                {"reviewers": list(names), **found.to_dict()} for names, found in self.pairs.items()
            ],
        }


@dataclass(frozen=True, slots=True)
class AgreementOptions:
    """Only blind passes count unless ``with_open``; then each reviewer's last review does. A
    reviewer who is unsure gave no value, or (``unsure_as_value``) a value of its own. ``seed`` is
    that of the bootstrap."""

    with_open: bool = False
    unsure_as_value: bool = False
    seed: int = 0
    draws: int = DRAWS


def agreement(
    feedback: AllFeedback, options: AgreementOptions, predicates: Sequence[str]
) -> list[Agreement]:
    """One for each predicate that has a review. A blind pass that was withdrawn does not count."""
    found = []
    for name in predicates:
        answers = [one for one in feedback.by_answer.values() if one.predicate == name]
        units = [given for one in answers if (given := _given(one, options))]
        if units:
            found.append(_agreement(name, units, options))
    return found


def _given(answer: AnswerFeedback, options: AgreementOptions) -> dict[str, str]:
    """The value that each reviewer gave."""
    reviews = answer.current if options.with_open else answer.blind
    unsure = UNSURE if options.unsure_as_value else None
    values = {name: one.value or unsure for name, one in reviews.items()}
    return {name: value for name, value in values.items() if value is not None}


def _agreement(
    predicate: str, units: Sequence[Mapping[str, str]], options: AgreementOptions
) -> Agreement:
    by_reviewer: dict[str, int] = defaultdict(int)
    shared: dict[tuple[str, str], list[Mapping[str, str]]] = defaultdict(list)
    for unit in units:
        for name in unit:
            by_reviewer[name] += 1
        for pair in combinations(sorted(unit), 2):
            shared[pair].append({name: unit[name] for name in pair})
    return Agreement(
        predicate,
        _alpha(units, options),
        {pair: _alpha(shared[pair], options) for pair in sorted(shared)},
        dict(sorted(by_reviewer.items())),
    )


def _alpha(units: Sequence[Mapping[str, str]], options: AgreementOptions) -> Alpha:
    places: dict[str, int] = {}
    rows = [[places.setdefault(value, len(places)) for value in unit.values()] for unit in units]
    generator = np.random.default_rng(options.seed)
    return alpha_with_interval(counts_of(rows, len(places)), generator, options.draws)
