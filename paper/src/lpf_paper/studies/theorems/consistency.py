"""P2: does the answer become certain if all items agree?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, pi

import numpy as np

from lpf.circuits import Variable, compile_circuit, conditional_probability, prior_circuit
from lpf.combine import RobustParameters, Segments, combine_paper, combine_robust
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.studies.theorems.statement import CheckedStatement, verdict_of

COUNTS = (1, 2, 5, 10, 20, 50, 100, 1000)
SUPPORT = 0.6  # of an item that supports a value, in a world of two values
VALUES = ("yes", "no")
EVEN = np.log([0.5, 0.5])
CERTAIN, TOLERANCE = 0.999, 1e-9


def in_a_circuit(log_ratios: FloatArray) -> float:
    """P(yes) in a circuit of one variable with two equally likely values and one likelihood, the
    product of the items': ``log_ratios`` [K] are yes against no."""
    circuit = compile_circuit(prior_circuit([Variable("answer", VALUES)]))
    total = np.array([log_ratios.sum(), 0.0])
    return conditional_probability(
        circuit, {"answer": "yes"}, log_soft={"answer": total - total[0]}
    )


def by_hand(log_ratio: float) -> float:
    """P(yes) from the sum of the log ratios."""
    return 1.0 / (1.0 + exp(-log_ratio))


def published(log_ratios: FloatArray, weight: float = 1.0) -> float:
    """P(yes) by the paper's product."""
    count = len(log_ratios)
    weights = np.full(count, weight)
    answer = combine_paper(_potential(log_ratios), weights, EVEN, Segments.one(count))
    return float(answer.distribution[0, 0])


def robust(log_ratios: FloatArray, rho: float) -> float:
    """P(yes) by robust mode with a shared error ``rho``, and no guard against single items."""
    count = len(log_ratios)
    answer = combine_robust(
        _potential(log_ratios),
        np.full(count, np.nan),
        np.array([0.5, 0.5]),
        EVEN,
        Segments.one(count),
        RobustParameters(rho=rho, epsilon=0.0, fitted=True),
    )
    return float(answer.distribution[0, 0])


def robust_limit(log_ratio: float, rho: float) -> float:
    """P(yes) for infinitely many items: together they count as 1 / rho."""
    return by_hand(log_ratio / rho)


def equal_support(count: int) -> FloatArray:
    """Every item says yes with SUPPORT."""
    return np.full(count, log(SUPPORT / (1.0 - SUPPORT)))


def fading_support(count: int) -> FloatArray:
    """Every item says yes, but item i only by a log ratio of 1 / i², whose sum is finite."""
    return 1.0 / np.arange(1.0, count + 1.0) ** 2


FADING_LIMIT = by_hand(pi**2 / 6.0)


def _potential(log_ratios: FloatArray) -> FloatArray:
    yes = 1.0 / (1.0 + np.exp(-log_ratios))
    return np.stack([yes, 1.0 - yes], axis=1)


@dataclass(frozen=True)
class Curve:
    name: str
    title: str
    answer: Callable[[int], float]
    limit: float


def curves() -> tuple[Curve, ...]:
    rho, equal = RobustParameters().rho, float(equal_support(1)[0])
    return (
        Curve("equal", f"Items of {SUPPORT:g}", lambda n: published(equal_support(n)), 1.0),
        Curve(
            "weighted",
            f"Items of {SUPPORT:g}, weight 0.4",
            lambda n: published(equal_support(n), 0.4),
            1.0,
        ),
        Curve(
            "fading",
            "Items that say less and less",
            lambda n: published(fading_support(n)),
            FADING_LIMIT,
        ),
        Curve(
            "robust",
            f"Items of {SUPPORT:g}, robust mode",
            lambda n: robust(equal_support(n), rho),
            robust_limit(equal, rho),
        ),
    )


def consistency_statement() -> CheckedStatement:
    found = curves()
    answers = {one.name: [one.answer(count) for count in COUNTS] for one in found}
    most = COUNTS[-1]
    difference = max(
        abs(value - by_hand(float(ratios.sum())))
        for count in COUNTS[:-1]
        for ratios in (equal_support(count), fading_support(count))
        for value in (published(ratios), in_a_circuit(ratios))
    )
    fading = answers["fading"][-1]
    kept = (
        answers["equal"][-1] >= CERTAIN
        and answers["weighted"][-1] >= CERTAIN
        and abs(fading - FADING_LIMIT) <= 1.0 / most
        and difference <= TOLERANCE
    )
    robust_end = next(one for one in found if one.name == "robust")
    return CheckedStatement(
        "P2",
        "P2, consistency of the product",
        "If all items support a value and their weights approach 1, its probability approaches 1 "
        "as items are added (the proof takes each item to be almost certain by itself).",
        "If the sum of weight x log ratio, for the value against each other one, grows without "
        "limit. Weights of 1 are not needed; support that fades is not enough.",
        f"{most:,} items that all support a value, the i-th with a log ratio of 1/i², give "
        f"{fading:.4f} (the limit is {FADING_LIMIT:.4f}); {most:,} items of {SUPPORT:g} give "
        f"{answers['equal'][-1]:.4f}.",
        f"With weight 0.4 they give {answers['weighted'][-1]:.4f}. Circuit, product and hand "
        f"calculation differ by at most {difference:.0e}. Robust mode is not meant to become "
        f"certain: with a shared error of {RobustParameters().rho:g} it stops at "
        f"{robust_end.limit:.4f}.",
        verdict_of(stated=fading >= CERTAIN, corrected=kept),
        (_table(found, answers),),
        (_figure(found, answers),),
    )


def _table(found: tuple[Curve, ...], answers: dict[str, list[float]]) -> Table:
    return Table(
        "theorems_consistency",
        "P2: probability of the value that all items support",
        "Two equally likely values; exact. The i-th of the items that say less and less has a log "
        "ratio of 1/i².",
        (
            *(Column(str(count), f"{count:,}", "share", None, 4) for count in COUNTS),
            Column("limit", "Limit", "share", None, 4),
        ),
        tuple(
            Row(
                one.name,
                one.title,
                (*(Value(answer) for answer in answers[one.name]), Value(one.limit)),
            )
            for one in found
        ),
    )


def _figure(found: tuple[Curve, ...], answers: dict[str, list[float]]) -> Figure:
    x = tuple(float(count) for count in COUNTS)
    return Figure(
        "theorems_consistency",
        "P2: items that all support one value",
        "The probability of that value. It need not approach 1.",
        "lines",
        "Items",
        "Probability",
        tuple(
            Series(
                one.title,
                x,
                tuple(answers[one.name]),
                standing="ours" if one.name == "robust" else "rival",
            )
            for one in found
        ),
        log_x=True,
    )
