"""Answers in another domain, with values matched by their order or by what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean, stdev

import numpy as np

from lpf import metrics
from lpf.experiments.answered import Answered
from lpf.experiments.exhibits import Value
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.transfer.cells import Pair, transfer_cell

# Which end of a domain's values is the good one, by what their declarations say they mean. For the
# outcome of a case it depends on whom one asks: there the order stands.
GOOD_FIRST = ("construction", "finance", "healthcare")
GOOD_LAST = ("academic", "compliance", "materials")

Score = Callable[[Answered], float]


@dataclass(frozen=True)
class Matched:
    """Answers of every pair, with values matched by their order or by what they mean."""

    plan: Plan
    book: Book

    def mean(
        self, method: str, pairs: Iterable[Pair], score: Score, *, by_meaning: bool = False
    ) -> Value:
        """Over pairs and data sets; ``sd`` between data sets. Runs that crashed are left out."""
        pairs = list(pairs)
        seeds = [
            [score(one) for one in self.runs(method, pairs, [seed], by_meaning) if not one.error]
            for seed in self.plan.study_seeds
        ]
        means = [fmean(one) for one in seeds if one]
        if not means or not np.isfinite(means).all():
            return Value(None)
        return Value(fmean(means), stdev(means) if len(means) > 1 else None)

    def runs(
        self, method: str, pairs: Iterable[Pair], seeds: Iterable[int], by_meaning: bool
    ) -> list[Answered]:
        """Pair by pair, data set by data set."""
        return [
            reversed_values(one) if by_meaning and opposite(pair) and not one.error else one
            for pair, seed in product(pairs, seeds)
            for one in [self.book.answered(transfer_cell(self.plan, method, pair, seed))]
        ]


def opposite(pair: Pair) -> bool:
    """Whether the first value is the good one in one of the two, and the bad one in the other."""
    first, second = pair
    return (first in GOOD_FIRST and second in GOOD_LAST) or (
        first in GOOD_LAST and second in GOOD_FIRST
    )


def reversed_values(answered: Answered) -> Answered:
    """What was said of the first value counts for the last, and so on."""
    assert answered.raw is not None  # only asked for where there are answers
    return replace(answered, raw=answered.raw[:, ::-1], tempered=answered.answers[:, ::-1])


def accuracy(answered: Answered) -> float:
    return metrics.accuracy(answered.answers, answered.labels.astype(np.int64))


def nll(answered: Answered) -> float:
    return metrics.nll(answered.answers, answered.labels.astype(np.int64))


def confidence(answered: Answered) -> float:
    return metrics.mean_confidence(answered.answers)


def most_frequent(answered: Answered) -> float:
    """The share of the most frequent value: what is right without reading anything."""
    return float(np.bincount(answered.labels).max() / len(answered.labels))
