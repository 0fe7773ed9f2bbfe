"""At home and away: the table of methods, and a matrix of domains for each way of matching."""

from __future__ import annotations

from lpf.experiments.exhibits import Column, Figure, Row, Series, Table, Value
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.plan import Plan
from lpf.experiments.studies.robustness.cells import data_sets
from lpf.experiments.studies.robustness.findings import OURS
from lpf.experiments.studies.transfer.answers import (
    GOOD_FIRST,
    GOOD_LAST,
    Matched,
    accuracy,
    confidence,
    most_frequent,
    nll,
)
from lpf.experiments.studies.transfer.cells import METHODS, asked_entities, away_pairs, home_pairs

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
    f"in {', '.join(GOOD_FIRST)} and bad in {', '.join(GOOD_LAST)}. Elsewhere the order stands."
)


def transfer_table(plan: Plan, answers: Matched) -> Table:
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


def method_row(plan: Plan, method: str, answers: Matched) -> Row:
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


def frequent_row(plan: Plan, answers: Matched) -> Row:
    share = answers.mean(OURS, home_pairs(plan), most_frequent)
    shares: tuple[Value | None, ...] = (share, share, share, None, None, None)
    return Row("most_frequent", "The most frequent value of those asked", shares, "reference")


def transfer_matrices(plan: Plan, answers: Matched) -> list[Figure]:
    return [
        _matrix(plan, answers, "transfer_by_order", "by order", BY_ORDER, by_meaning=False),
        _matrix(plan, answers, "transfer_by_meaning", "by meaning", BY_MEANING, by_meaning=True),
    ]


def _matrix(
    plan: Plan, answers: Matched, name: str, words: str, matched: str, *, by_meaning: bool
) -> Figure:
    rows = (_matrix_row(plan, answers, one, by_meaning=by_meaning) for one in plan.transfer_domains)
    return Figure(
        name,
        f"Learned here, asked there: accuracy of {title_of(OURS)}, values matched {words}",
        f"{_how(plan)} {matched}",
        "matrix",
        "Asked about",
        "Learned from",
        tuple(rows),
    )


def _matrix_row(plan: Plan, answers: Matched, learned: str, *, by_meaning: bool) -> Series:
    found = (
        answers.mean(OURS, [(learned, asked)], accuracy, by_meaning=by_meaning).value
        for asked in plan.transfer_domains
    )
    return Series(learned, plan.transfer_domains, tuple(found))


def _how(plan: Plan) -> str:
    return (
        f"Learned on 630 entities of one domain, asked about {asked_entities(plan)} new ones of "
        f"another; mean over {data_sets(plan)}."
    )
