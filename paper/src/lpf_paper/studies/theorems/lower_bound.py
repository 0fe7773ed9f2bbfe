"""T4: is there a lower bound on the ECE of every predictor?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from lpf.domains import perfect_answers
from lpf.metrics import LabelArray
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.studies.theorems.statement import (
    CheckedStatement,
    MeasuredEce,
    printed,
    verdict_of,
)
from lpf_paper.studies.theorems.trained import (
    BEST,
    LEARNED,
    METHODS,
    PAPER,
    ROBUST,
    TrainedNetworks,
)

SHARES, PERFECT = "class_shares", "perfect_reader"
SEED = 1
INSTEAD = (
    "It is the log loss that has a lower bound for every predictor, the entropy of the labels "
    "given the evidence. ECE has an upper one: at most sqrt(excess log loss / 2)."
)
TITLES = {
    SHARES: "Class shares",
    PERFECT: "Perfect reader",
    PAPER: "LPF-SPN, paper mode",
    BEST: "LPF-SPN, paper's best",
    ROBUST: "LPF-SPN, robust",
    LEARNED: "LPF-Learned, published",
}


@dataclass(frozen=True)
class Excess:
    """Of one predictor: its ECE, the entropy of its answers over that of the labels, and its
    expected log loss with its excess over the perfect reader's, in nats."""

    ece: MeasuredEce
    entropy_ratio: float
    loss: float
    excess: float

    @property
    def bound(self) -> float:
        """The most that ECE can be, by Pinsker's inequality: the average distance between the
        answer and the truth is at most sqrt(excess / 2)."""
        return sqrt(max(self.excess, 0.0) / 2.0)


def excess_of(answer: FloatArray, exact: FloatArray, labels: LabelArray) -> Excess:
    """``exact`` [E, V] is the posterior that the labels were drawn from."""
    own, best = cross_entropy(exact, answer), cross_entropy(exact, exact)
    shares = np.bincount(labels, minlength=exact.shape[1]) / len(labels)
    return Excess(
        MeasuredEce.of(answer, labels, SEED),
        cross_entropy(answer, answer) / cross_entropy(shares[None], shares[None]),
        own,
        own - best,
    )


def cross_entropy(truth: FloatArray, answer: FloatArray) -> float:
    """The expected log loss of ``answer`` if labels come from ``truth``, both [E, V]."""
    logs = np.log(answer, out=np.full_like(answer, -np.inf), where=answer > 0)
    return float(-np.where(truth > 0, truth * logs, 0.0).sum(axis=1).mean())


def measured_predictors(networks: TrainedNetworks) -> dict[str, Excess]:
    examples = networks.usual
    labels = networks.labels(examples)
    exact = perfect_answers(examples.dataset)
    shares = np.bincount(labels, minlength=exact.shape[1]) / len(labels)
    answers = {
        SHARES: np.tile(shares, (len(labels), 1)),
        PERFECT: exact,
        **{method: networks.answer(method, examples.items).distribution for method in METHODS},
    }
    return {name: excess_of(answer, exact, labels) for name, answer in answers.items()}


def lower_bound_statement(networks: TrainedNetworks) -> CheckedStatement:
    found = measured_predictors(networks)
    shares, perfect = found[SHARES], found[PERFECT]
    refuted = shares.ece.ece < 1e-9 and shares.entropy_ratio > 0.0
    kept = all(one.excess >= -1e-9 and one.ece.keeps(one.bound) for one in found.values())
    lower = printed("theory_numbers", "T4 lower_bound").value
    own = printed("theory_numbers", "T4 lpf_paper_best ece").value
    return CheckedStatement(
        "T4",
        "T4, lower bound on ECE",
        "Every predictor has an ECE of at least c1 x (mean entropy of its answers / entropy of "
        "the labels) + c2 x (conflict between items).",
        INSTEAD if kept else "",
        f"Always answering the class shares has an ECE of {shares.ece.ece:.4f} at the highest "
        f"entropy ratio, {shares.entropy_ratio:.3f}, so that c1 would have to be 0.",
        f"The perfect reader has an ECE of {perfect.ece.ece:.4f} (chance alone gives "
        f"{perfect.ece.chance:.4f}) at a ratio of {perfect.entropy_ratio:.3f}. The paper's own "
        f"ECE of {own:.3f} lies below its lower bound of {lower:.3f}. No predictor's expected log "
        f"loss is below {perfect.loss:.4f}, the perfect reader's.",
        verdict_of(stated=not refuted, corrected=None),
        (_table(found),),
        (_figure(found),),
    )


def _table(found: Mapping[str, Excess]) -> Table:
    return Table(
        "theorems_lower_bound",
        "T4: ECE and log loss of six predictors",
        "Compliance, new entities with five items each. The log loss is the expected one under the "
        "exact posterior of the generator, and the excess is over the perfect reader's. The upper "
        "bound on ECE comes on top of what chance alone gives.",
        (
            Column("ece", "ECE", "share", None, 4),
            Column("chance", "ECE by chance alone", "share", None, 4),
            Column("ratio", "Entropy of answers / of labels", "share", None, 3),
            Column("loss", "Expected log loss", "number", None, 4),
            Column("excess", "Excess", "number", None, 4),
            Column("bound", "Upper bound on ECE", "share", None, 4),
        ),
        tuple(
            Row(
                name,
                TITLES[name],
                (
                    Value(one.ece.ece),
                    Value(one.ece.chance),
                    Value(one.entropy_ratio),
                    Value(one.loss),
                    Value(one.excess),
                    Value(one.bound),
                ),
                "reference" if name in (SHARES, PERFECT) else "rival",
            )
            for name, one in found.items()
        ),
    )


def _figure(found: Mapping[str, Excess]) -> Figure:
    return Figure(
        "theorems_lower_bound",
        "T4: ECE against the entropy of the answers",
        "A lower bound that grows with the entropy would leave the lower right corner empty. The "
        "class shares are in that corner.",
        "points",
        "Entropy of answers / entropy of labels",
        "ECE",
        tuple(
            Series(
                TITLES[name],
                (one.entropy_ratio,),
                (one.ece.ece,),
                standing="reference" if name in (SHARES, PERFECT) else "rival",
            )
            for name, one in found.items()
        ),
    )
