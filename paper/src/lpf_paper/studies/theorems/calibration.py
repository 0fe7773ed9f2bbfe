"""T1: does combining calibrated items give a calibrated answer?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt, tanh

import numpy as np

from lpf import metrics
from lpf.combine import Segments, combine_paper
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.studies.theorems.known_items import (
    KnownItems,
    corrected_answer,
    draw_items,
    published_answer,
)
from lpf_paper.studies.theorems.statement import (
    CheckedStatement,
    MeasuredEce,
    printed,
    verdict_of,
)
from lpf_paper.studies.theorems.trained import BEST, PAPER, ROBUST, TrainedNetworks

SEED = 1
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 400)
CORRECTED_COUNTS = (1, 2, 5, 10, 20)
LOG_ERROR = 0.05  # of each factor, in the check of the corrected bound
UNEQUAL_SHARES = np.array([0.05, 0.15, 0.8])
EVEN_SHARES = np.full(3, 1 / 3)
RIGHT = 0.7  # of the item that is copied
INFORMATIVE = 0.5  # of independent items, where a vote at random is right in a third
TITLES = {PAPER: "LPF-SPN, paper mode", BEST: "LPF-SPN, paper's best", ROBUST: "LPF-SPN, robust"}


def stated_bound(item_ece: float, constant: float, items: float) -> float:
    return item_ece + constant / sqrt(items)


def corrected_bound(items: int, log_error: float) -> float:
    """The most that an answer's confidence can be off if the logarithm of every factor is at most
    ``log_error`` off, for independent items whose prior is divided out: the log-odds of any event
    are off by at most twice the sum, and p changes most around one half."""
    return tanh(items * log_error / 2.0)


def ece_of_copies(items: int) -> float:
    """The exact ECE of the paper's product on copies of one item, which is calibrated and right in
    RIGHT of the cases, with three equal shares: confidence grows, accuracy does not."""
    row = np.array([[RIGHT, (1 - RIGHT) / 2, (1 - RIGHT) / 2]])
    return float(_product(row, np.zeros(3), items).max() - RIGHT)


def ece_of_silence(items: int, weight: float = 1.0) -> float:
    """The exact ECE of the paper's product on independent items that say nothing: each gives the
    class shares, which is calibrated."""
    row = UNEQUAL_SHARES[None]
    answer = _product(row, np.log(UNEQUAL_SHARES), items, weight)
    return float(answer.max() - UNEQUAL_SHARES.max())


def _product(row: FloatArray, log_prior: FloatArray, items: int, weight: float = 1.0) -> FloatArray:
    return combine_paper(
        np.repeat(row, items, axis=0), np.full(items, weight), log_prior, Segments.one(items)
    ).distribution


@dataclass(frozen=True)
class TrainedCalibration:
    """Of trained networks on entities with five items: ECE of single items, ECE of the answer, the
    effective number of items and the mean weight."""

    items: float
    answer: float
    effective: float
    weight: float


def trained_calibration(networks: TrainedNetworks, method: str) -> TrainedCalibration:
    examples = networks.usual
    answers = networks.answer(method, examples.items)
    labels = networks.labels(examples)
    assert answers.factors is not None  # these are variants of LPF-SPN
    segments = answers.combined.segments
    weights = answers.combined.parts["exponent"]  # type: ignore[union-attr]
    effective = segments.sum(weights) ** 2 / segments.sum(weights**2)
    return TrainedCalibration(
        metrics.ece(answers.factors.potential, labels[segments.owner]),
        metrics.ece(answers.distribution, labels),
        float(effective.mean()),
        float(weights.mean()),
    )


@dataclass(frozen=True)
class CorrectedRun:
    """Independent items with factors that are off by LOG_ERROR: the ECE of the corrected product,
    how far its top probability is from the exact one on average, and the ECE of the paper's product
    of the same items with exact factors."""

    ece: MeasuredEce
    distance: float
    published: float


def corrected_run(items: int, entities: int, log_error: float = LOG_ERROR) -> CorrectedRun:
    known = draw_items(entities, items, INFORMATIVE, UNEQUAL_SHARES, SEED)
    answer = corrected_answer(known, misread(known, log_error))
    top = answer.argmax(axis=1)
    rows = np.arange(entities)
    return CorrectedRun(
        MeasuredEce.of(answer, known.labels, SEED),
        float(np.abs(answer[rows, top] - known.exact[rows, top]).mean()),
        metrics.ece(published_answer(known, 1.0), known.labels),
    )


def misread(known: KnownItems, log_error: float) -> FloatArray:
    """Each factor believes its own vote too much: by a factor of exp(log_error) for the value that
    it names, and exp(-log_error) for the others."""
    sign = np.where(np.eye(len(known.shares), dtype=bool)[known.votes.ravel()], 1.0, -1.0)
    moved = known.potential * np.exp(sign * log_error)
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def calibration_statement(networks: TrainedNetworks, quick: bool) -> CheckedStatement:
    constant = printed("theory_numbers", "T1 constant").value
    item_ece = printed("theory_numbers", "T1 item_ece").value
    entities = 2000 if quick else 20_000
    trained = {method: trained_calibration(networks, method) for method in TITLES}
    weight = trained[PAPER].weight
    curves = {
        "Copies of one item": [ece_of_copies(items) for items in COUNTS],
        "Independent items that say nothing": [ece_of_silence(items) for items in COUNTS],
        f"The same with the trained weight, {weight:.3f}": [
            ece_of_silence(items, weight) for items in COUNTS
        ],
    }
    runs = {items: corrected_run(items, entities) for items in CORRECTED_COUNTS}
    kept = all(
        run.ece.keeps(corrected_bound(items, LOG_ERROR))
        and run.distance <= corrected_bound(items, LOG_ERROR)
        for items, run in runs.items()
    )
    limits = [stated_bound(0.0, constant, items) for items in COUNTS]
    broken = [
        (name, items, ece, limit)
        for name, curve in curves.items()
        for items, ece, limit in zip(COUNTS, curve, limits, strict=True)
        if ece > limit
    ]
    return CheckedStatement(
        "T1",
        "T1, calibration is preserved",
        "If single items have an ECE of at most e, the product has one of at most "
        "e + C / sqrt(effective items), with C = 2.4.",
        "For items that are independent given the value, with the prior divided out, weight 1 and "
        "log factors off by at most h: ECE is at most tanh(items x h / 2). It grows with the "
        "items, and is 0 for exact factors.",
        _deciding(broken),
        _details(item_ece, constant, trained, runs),
        verdict_of(stated=not broken, corrected=kept),
        (_trained_table(trained, constant), _corrected_table(runs, entities)),
        (_figure(curves, limits),),
    )


def _deciding(broken: Sequence[tuple[str, int, float, float]]) -> str:
    if not broken:
        return "No combination of calibrated items was found that exceeds the stated bound."
    name, items, ece, limit = max(broken, key=lambda one: one[2] - one[3])
    return (
        f"{name}, {items} of them and each exactly calibrated, give the paper's product an ECE of "
        f"{ece:.3f}; the bound is {limit:.3f}."
    )


def _details(
    item_ece: float,
    constant: float,
    trained: Mapping[str, TrainedCalibration],
    runs: Mapping[int, CorrectedRun],
) -> str:
    own = stated_bound(item_ece, constant, 5.0)
    claimed = printed("theory_numbers", "T1 bound").value
    paper, most = trained[PAPER], max(runs)
    return (
        f"With the paper's numbers and five items the bound is {own:.1%}, not {claimed:.1%}, and "
        f"no ECE exceeds 100 %. Trained networks in paper mode have an ECE of {paper.items:.1%} "
        f"for single items and {paper.answer:.1%} for the answer. With independent items whose log "
        f"factors are off by {LOG_ERROR:g}, the corrected product of {most} items has an ECE of "
        f"{runs[most].ece.ece:.3f} (chance alone gives {runs[most].ece.chance:.3f}; the corrected "
        f"bound is {corrected_bound(most, LOG_ERROR):.3f})."
    )


def _trained_table(trained: Mapping[str, TrainedCalibration], constant: float) -> Table:
    item = printed("theory_numbers", "T1 item_ece")
    claimed = printed("theory_numbers", "T1 bound")
    rows = tuple(
        Row(
            method,
            TITLES[method],
            (
                Value(one.items, paper=item.value if method == BEST else None),
                Value(one.answer),
                Value(one.weight),
                Value(one.effective),
                Value(
                    stated_bound(one.items, constant, one.effective),
                    paper=claimed.value if method == BEST else None,
                    doubt=" ".join(claimed.doubts) or None if method == BEST else None,
                ),
            ),
            "ours" if method == ROBUST else "rival",
        )
        for method, one in trained.items()
    )
    return Table(
        "theorems_calibration_trained",
        "T1 with trained networks",
        "Compliance, new entities with five items each. The bound is the stated one with C = 2.4; "
        "above 1 it says nothing.",
        (
            Column("item_ece", "ECE of single items", "share", None, 4),
            Column("ece", "ECE of the answer", "share", None, 4),
            Column("weight", "Mean weight", "number", None, 4),
            Column("effective", "Effective items", "number", None, 2),
            Column("bound", "Stated bound", "share", None, 3),
        ),
        rows,
    )


def _corrected_table(runs: Mapping[int, CorrectedRun], entities: int) -> Table:
    return Table(
        "theorems_calibration_corrected",
        "T1, the corrected bound",
        f"{entities:,} entities (seed {SEED}) with shares of 5, 15 and 80 %; independent items "
        f"that are right in {INFORMATIVE:.0%}; every log factor is off by {LOG_ERROR:g} towards "
        "its own vote. The corrected product divides the prior out and counts it once; the paper's "
        "(last column, exact factors, weight 1) counts it once per item too.",
        (
            Column("ece", "ECE", "share", None, 4),
            Column("chance", "ECE by chance alone", "share", None, 4),
            Column("distance", "Distance of the top probability", "share", None, 4),
            Column("bound", "Corrected bound", "share", None, 4),
            Column("published", "ECE of the paper's product", "share", None, 4),
        ),
        tuple(
            Row(
                str(items),
                f"{items} items" if items > 1 else "1 item",
                (
                    Value(run.ece.ece),
                    Value(run.ece.chance),
                    Value(run.distance),
                    Value(corrected_bound(items, LOG_ERROR)),
                    Value(run.published),
                ),
            )
            for items, run in runs.items()
        ),
    )


def _figure(curves: Mapping[str, Sequence[float]], limits: Sequence[float]) -> Figure:
    x = tuple(float(items) for items in COUNTS)
    shown = tuple(limit if limit <= 1.0 else None for limit in limits)
    return Figure(
        "theorems_calibration",
        "T1: the paper's product of calibrated items",
        "Every single item is exactly calibrated, so the stated bound is 2.4 / sqrt(items), shown "
        "where it is below 1. The ECE of the product is exact.",
        "lines",
        "Items",
        "ECE",
        (
            *(Series(name, x, tuple(curve)) for name, curve in curves.items()),
            Series("Stated bound", x, shown, standing="reference"),
        ),
        log_x=True,
    )
