"""A statement of the paper, checked: what it claims, what was measured, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lpf import metrics
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Figure, Row, Table
from lpf_paper.printed import Printed, printed_table

Verdict = Literal["holds", "holds with this correction", "does not hold"]
CONFIDENCE = 0.95  # of every bound that holds "with high probability"
RISK = 1.0 - CONFIDENCE


@dataclass(frozen=True)
class CheckedStatement:
    """``stated`` is the bound in words. ``corrected`` is the same claim with a bound that holds, or
    for a claim that does not hold what holds instead; it is empty if there is none. ``deciding`` is
    one sentence with the figures that decide, ``details`` are sentences with all others."""

    name: str
    title: str
    stated: str
    corrected: str
    deciding: str
    details: str
    verdict: Verdict
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def sentence(self) -> str:
        begin = f"{self.title}: {self.verdict}. {self.deciding}"
        if not self.corrected:
            return begin
        what = "What holds instead" if self.verdict == "does not hold" else "Correction"
        return f"{begin} {what}: {self.corrected}"


def verdict_of(*, stated: bool, corrected: bool | None) -> Verdict:
    """From whether every measurement kept the stated and the corrected bound. ``corrected`` is
    None if no correction saves the claim."""
    if stated:
        return "holds"
    return "holds with this correction" if corrected else "does not hold"


COLUMNS = (
    Column("verdict", "Verdict", "word"),
    Column("stated", "As stated", "text"),
    Column("corrected", "Corrected, or what holds instead", "text"),
    Column("measured", "Measured", "text"),
)


def verdict_table(statements: Sequence[CheckedStatement]) -> Table:
    return Table(
        "theorems_verdicts",
        "What holds",
        "T1 to T7 are the theorems of section 12.8, P1 to P5 those of section 5. A bound holds if "
        "no measurement below contradicts it and its proof has no gap that a measurement shows.",
        COLUMNS,
        tuple(
            Row(
                one.name,
                one.title,
                (one.verdict, one.stated, one.corrected or None, f"{one.deciding} {one.details}"),
                "ours" if one.verdict == "holds" else "rival",
            )
            for one in statements
        ),
    )


def printed(slug: str, row: str, column: str = "value") -> Printed:
    """A number that the paper prints; it must be there."""
    found = printed_table(slug).value(row, column)
    assert found is not None, f"{slug} has no {row!r}, {column!r}"
    return found


@dataclass(frozen=True)
class MeasuredEce:
    """An ECE, with what the same confidences give by chance alone if they are perfectly calibrated:
    the mean, and the ``most`` that one of a hundred such predictors exceeds."""

    ece: float
    chance: float
    most: float

    @classmethod
    def of(cls, answer: FloatArray, labels: metrics.LabelArray, seed: int) -> MeasuredEce:
        null = metrics.ece_null(answer, np.random.default_rng(seed))
        return cls(metrics.ece(answer, labels), null.mean, null.quantile_99)

    def keeps(self, bound: float) -> bool:
        """Return True if chance explains what is above the bound."""
        return self.ece <= bound + self.most
