"""``lpf demo --worked-example``: the paper's worked question, from its factors to three answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from rich.table import Table
from rich.text import Text

from lpf.circuits import CircuitBuilder, CompiledCircuit, Variable, compile_circuit
from lpf.cli.safe_output import json_text
from lpf.cli.terminal import Output
from lpf.combine import (
    Combined,
    PaperParameters,
    RobustParameters,
    Segments,
    combine_paper,
    combine_robust,
    credibility_weight,
)
from lpf.combine.uncertainty import entropy

NAT = 1.0 / math.log(2.0)  # in bits
QUESTION = "How compliant is company C0001?"
VALUES = ("low", "medium", "high")
FACT = ("audit_outcome", "qualified")
EXPLANATION = (
    "Paper mode weights every item by less than one half, so five items that agree move it too "
    "little.\nRobust mode takes each as a likelihood ratio, and uses known facts: believe it."
)


@dataclass(frozen=True)
class WorkedItem:
    """An item as the paper prints it: text, credibility, mean σ and factor."""

    evidence_id: str
    text: str
    credibility: float
    mean_sigma: float
    potential: tuple[float, float, float]


ITEMS = (
    WorkedItem("E001", "Strong compliance, timely filings", 0.95, 0.105, (0.100, 0.223, 0.677)),
    WorkedItem("E002", "Excellent documentation", 0.91, 0.099, (0.092, 0.211, 0.697)),
    WorkedItem("E003", "Meets all statutory requirements", 0.87, 0.149, (0.112, 0.238, 0.650)),
    WorkedItem("E004", "Follows industry best practice", 0.85, 0.176, (0.125, 0.251, 0.624)),
    WorkedItem("E005", "Certified, robust internal controls", 0.93, 0.075, (0.085, 0.198, 0.717)),
)


@dataclass(frozen=True)
class WorkedAnswer:
    """One way of answering: its title and its result."""

    key: str
    title: str
    combined: Combined

    @property
    def distribution(self) -> dict[str, float]:
        row = self.combined.distribution[0]
        return {value: float(p) for value, p in zip(VALUES, row, strict=True)}

    @property
    def contributions(self) -> np.ndarray:
        """What each item adds to the log odds of the best two values, in nats, [K]."""
        order = np.argsort(self.combined.distribution[0])
        parts = self.combined.contributions
        return np.asarray(parts[:, order[-1]] - parts[:, order[-2]])


def circuit() -> CompiledCircuit:
    """Compliance and audit outcome: the audit of a company with low compliance is mostly
    qualified."""
    builder = CircuitBuilder(
        [Variable("compliance_level", VALUES), Variable(FACT[0], ("clean", "qualified"))]
    )
    clean = {"low": 0.2, "medium": 0.7, "high": 0.95}
    branches = [
        builder.product(
            [
                builder.leaf("compliance_level", [float(value == level) for value in VALUES]),
                builder.leaf(FACT[0], [clean[level], 1 - clean[level]]),
            ]
        )
        for level in VALUES
    ]
    return compile_circuit(builder.build(builder.sum(branches, [1 / 3] * 3)))


def answers() -> list[WorkedAnswer]:
    potential = np.array([item.potential for item in ITEMS])
    credibility = np.array([item.credibility for item in ITEMS])
    sigma = np.array([item.mean_sigma for item in ITEMS])
    segments, shares, known = Segments.one(len(ITEMS)), np.full(3, 1 / 3), circuit()
    prior = known.log_joint("compliance_level")
    with_fact = known.log_joint("compliance_level", hard=dict([FACT]))
    weight = credibility_weight(sigma, PaperParameters())
    parameters = RobustParameters()
    paper = combine_paper(potential, weight, prior, segments)
    robust = combine_robust(potential, credibility, shares, prior, segments, parameters)
    facts = combine_robust(potential, credibility, shares, with_fact, segments, parameters)
    return [
        WorkedAnswer("paper", "Paper mode", paper),
        WorkedAnswer("robust", "Robust mode (the default)", robust),
        WorkedAnswer("robust_with_fact", f"Robust mode, {FACT[0]} known to be {FACT[1]}", facts),
    ]


def as_json() -> str:
    document = {
        "question": QUESTION,
        "evidence": [item.evidence_id for item in ITEMS],
        "answers": {
            answer.key: {
                "distribution": answer.distribution,
                "entropy": float(entropy(answer.combined.distribution)[0]),
                "contributions": answer.contributions.tolist(),
            }
            for answer in answers()
        },
        "believe": {"answer": "robust", "reason": EXPLANATION.replace("\n", " ")},
    }
    return json_text(document, indent=2)


def show() -> None:
    console = Output()
    console.print(f"\n[bold]{QUESTION}[/bold]  five items, three answers\n")
    all_answers = answers()
    for answer in all_answers:
        bits = NAT * float(entropy(answer.combined.distribution)[0])
        console.print(f"[bold]{answer.title}[/bold]  [dim]entropy {bits:.2f} bits[/dim]")
        console.print(_distribution(answer))
    console.print(_evidence(all_answers))
    console.print(f"\n{EXPLANATION}\n")


def _distribution(answer: WorkedAnswer) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 1))
    for value, probability in answer.distribution.items():
        bar = Text("█" * round(40 * probability), style="cyan")
        table.add_row(f"  {value:<8}", f"{100 * probability:6.2f} %", bar)
    return table


def _evidence(all_answers: list[WorkedAnswer]) -> Table:
    table = Table(
        title="Bits that each item adds for the top value (+1 bit doubles the odds)",
        title_justify="left",
    )
    for heading in ("item", "text"):
        table.add_column(heading)
    for heading in ("credibility", "paper", "robust"):
        table.add_column(heading, justify="right")
    parts = {answer.key: NAT * answer.contributions for answer in all_answers}
    for row, item in enumerate(ITEMS):
        table.add_row(
            item.evidence_id,
            item.text,
            f"{item.credibility:.2f}",
            f"{parts['paper'][row]:+.3f}",
            f"{parts['robust'][row]:+.3f}",
        )
    return table
