"""Trained on one domain, tested on another; and training with few labels.

Values of two domains are matched by their order or by their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.errors import ConfigError
from lpf.evaluation import Cell, DomainData, EvalSpec, Predictions, standing_of, title_of
from lpf_paper.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.domains_tables import TEST_SEED, domain_train_spec
from lpf_paper.studies.few_labels import few_cells, few_figures, few_findings, few_tables
from lpf_paper.studies.robustness import OURS, data_sets
from lpf_paper.studies.study import ResultReader

ASKED = 300  # entities per domain, fewer if the plan has fewer
METHODS = ("lpf_robust", "deterministic_ensemble_average", "logistic_mean")

Pair = tuple[str, str]  # training domain, test domain


def transfer_cell(plan: ExperimentPlan, method: str, pair: Pair, seed: int) -> Cell:
    train_domain, test_domain = pair
    eval_spec = EvalSpec(DomainData(test_domain, seed=TEST_SEED), asked_entities(plan))
    return Cell(domain_train_spec(plan, train_domain, seed), eval_spec, method)


def asked_entities(plan: ExperimentPlan) -> int:
    return min(ASKED, plan.ablation_entities)


def domain_pairs(plan: ExperimentPlan) -> list[Pair]:
    if len(plan.transfer_domains) < 2:
        raise ConfigError(
            f"transfer_domains: must be two or more, got {list(plan.transfer_domains)}. "
            "Nothing was run."
        )
    return list(product(plan.transfer_domains, plan.transfer_domains))


def home_pairs(plan: ExperimentPlan) -> list[Pair]:
    return [pair for pair in domain_pairs(plan) if pair[0] == pair[1]]


def away_pairs(plan: ExperimentPlan) -> list[Pair]:
    return [pair for pair in domain_pairs(plan) if pair[0] != pair[1]]


# Which end of a domain's values is good, according to their declarations. For the outcome of a
# legal case that depends on the party, so its values are matched by order.
GOOD_FIRST = ("construction", "finance", "healthcare")
GOOD_LAST = ("academic", "compliance", "materials")

Score = Callable[[Predictions], float]


@dataclass(frozen=True)
class Matched:
    """Predictions of every pair, with values matched by order or by meaning."""

    plan: ExperimentPlan
    results: ResultReader

    def mean(
        self, method: str, pairs: Iterable[Pair], score: Score, *, by_meaning: bool = False
    ) -> Value:
        """Mean over pairs and data sets; ``sd`` is over data sets. Crashed runs are left out."""
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
    ) -> list[Predictions]:
        """Pair by pair, data set by data set."""
        return [
            reversed_values(one) if by_meaning and opposite(pair) and not one.error else one
            for pair, seed in product(pairs, seeds)
            for one in [self.results.answered(transfer_cell(self.plan, method, pair, seed))]
        ]


def opposite(pair: Pair) -> bool:
    """Return True if the first value is good in one domain and bad in the other."""
    first, second = pair
    return (first in GOOD_FIRST and second in GOOD_LAST) or (
        first in GOOD_LAST and second in GOOD_FIRST
    )


def reversed_values(answered: Predictions) -> Predictions:
    """Predictions with the order of values reversed."""
    assert answered.raw is not None  # callers pass runs with answers only
    return replace(answered, raw=answered.raw[:, ::-1], tempered=answered.answers[:, ::-1])


def accuracy(answered: Predictions) -> float:
    return metrics.accuracy(answered.answers, answered.labels.astype(np.int64))


def nll(answered: Predictions) -> float:
    return metrics.nll(answered.answers, answered.labels.astype(np.int64))


def confidence(answered: Predictions) -> float:
    return metrics.mean_confidence(answered.answers)


def most_frequent(answered: Predictions) -> float:
    """The share of the most frequent value, which is the accuracy without evidence."""
    return float(np.bincount(answered.labels).max() / len(answered.labels))


COLUMNS = (
    Column("home", "Accuracy at home", "share", "higher", 4),
    Column("away", "Away, by order", "share", "higher", 4),
    Column("away_meaning", "Away, by meaning", "share", "higher", 4),
    Column("home_nll", "NLL at home", "number", "lower", 4),
    Column("away_nll", "NLL away, by meaning", "number", "lower", 4),
    Column("away_confidence", "Mean confidence away", "share", None, 4),
)
BY_ORDER = "Values are matched by their order, lowest to lowest."
BY_MEANING = (
    "Values are matched by what they mean, the good end to the good end: the lowest value is good "
    f"in {', '.join(GOOD_FIRST)} and bad in {', '.join(GOOD_LAST)}. Other domains keep their order."
)


def transfer_table(plan: ExperimentPlan, answers: Matched) -> Table:
    rows = [method_row(plan, method, answers) for method in METHODS]
    rows.append(frequent_row(plan, answers))
    return Table(
        "transfer",
        "At home and away",
        f"{_how(plan)} Home is the {len(home_pairs(plan))} domains themselves, away the "
        f"{len(away_pairs(plan))} pairs of different ones. By order: {BY_ORDER} By meaning: "
        f"{BY_MEANING} Temperatures were fitted at home.",
        COLUMNS,
        tuple(rows),
    )


def method_row(plan: ExperimentPlan, method: str, answers: Matched) -> Row:
    home, away = home_pairs(plan), away_pairs(plan)
    cells = (
        answers.mean(method, home, accuracy),
        answers.mean(method, away, accuracy),
        answers.mean(method, away, accuracy, by_meaning=True),
        answers.mean(method, home, nll),
        answers.mean(method, away, nll, by_meaning=True),
        answers.mean(method, away, confidence),
    )
    return Row(method, title_of(method), cells, standing_of(method))


def frequent_row(plan: ExperimentPlan, answers: Matched) -> Row:
    share = answers.mean(OURS, home_pairs(plan), most_frequent)
    shares: tuple[Value | None, ...] = (share, share, share, None, None, None)
    return Row("most_frequent", "The most frequent value of the test entities", shares, "reference")


def transfer_matrices(plan: ExperimentPlan, answers: Matched) -> list[Figure]:
    return [
        _matrix(plan, answers, "transfer_by_order", "by order", BY_ORDER, by_meaning=False),
        _matrix(plan, answers, "transfer_by_meaning", "by meaning", BY_MEANING, by_meaning=True),
    ]


def _matrix(
    plan: ExperimentPlan, answers: Matched, name: str, words: str, matched: str, *, by_meaning: bool
) -> Figure:
    rows = (_matrix_row(plan, answers, one, by_meaning=by_meaning) for one in plan.transfer_domains)
    return Figure(
        name,
        f"Trained on one domain, tested on another: accuracy of {title_of(OURS)}, values matched "
        f"{words}",
        f"{_how(plan)} {matched}",
        "matrix",
        "Test domain",
        "Training domain",
        tuple(rows),
    )


def _matrix_row(
    plan: ExperimentPlan, answers: Matched, train_domain: str, *, by_meaning: bool
) -> Series:
    found = (
        answers.mean(OURS, [(train_domain, test_domain)], accuracy, by_meaning=by_meaning).value
        for test_domain in plan.transfer_domains
    )
    return Series(train_domain, plan.transfer_domains, tuple(found))


def _how(plan: ExperimentPlan) -> str:
    return (
        f"Trained on 630 entities of one domain, tested on {asked_entities(plan)} new ones of "
        f"another; mean over {data_sets(plan)}."
    )


def transfer_findings(plan: ExperimentPlan, answers: Matched) -> list[str]:
    sentences = [
        _home_and_away(plan, answers),
        _turned(plan, answers),
        _best_away(plan, answers),
        _pair_sentence(plan, answers),
    ]
    return [sentence for sentence in sentences if sentence]


def _home_and_away(plan: ExperimentPlan, answers: Matched) -> str:
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


def _turned(plan: ExperimentPlan, answers: Matched) -> str:
    """Does the meaning of values, good or bad, carry over?"""
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


def _best_away(plan: ExperimentPlan, answers: Matched) -> str:
    found = {
        method: _number(answers.mean(method, away_pairs(plan), accuracy, by_meaning=True))
        for method in METHODS
    }
    known = {method: value for method, value in found.items() if not np.isnan(value)}
    if len(known) < 2:
        return ""
    order = sorted(known, key=lambda method: -known[method])
    listed = ", ".join(f"{title_of(method)} {known[method]:.1%}" for method in order)
    return (
        f"Right away from home, by meaning, most often first: {listed}. "
        f"{_first_two(plan, order, answers)}"
    )


def _first_two(plan: ExperimentPlan, order: Sequence[str], answers: Matched) -> str:
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


def _right(answered: Predictions) -> NDArray[np.bool_]:
    return metrics.confidence_and_hits(answered.answers, answered.labels.astype(np.int64))[1]


def _pair_sentence(plan: ExperimentPlan, answers: Matched) -> str:
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
    """NaN if there is none."""
    return np.nan if not isinstance(cell, Value) or cell.value is None else cell.value


@dataclass(frozen=True)
class TransferStudy:
    name: str = "transfer"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        found = (
            transfer_cell(plan, method, pair, seed)
            for method in METHODS
            for pair in domain_pairs(plan)
            for seed in plan.study_seeds
        )
        return list(dict.fromkeys([*found, *few_cells(plan)]))

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        answers = Matched(plan, results)
        return StudyResult(
            self.name,
            "From one domain to another, and from few labels",
            "Does a model trained on one domain work on another, and how many labelled entities "
            "does each method need?",
            (*transfer_findings(plan, answers), *few_findings(plan, results)),
            (transfer_table(plan, answers), *few_tables(plan, results)),
            (*transfer_matrices(plan, answers), *few_figures(plan, results)),
        )
