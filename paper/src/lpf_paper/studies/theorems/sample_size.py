"""T6: does ECE fall as one over the square root of the number of items?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from lpf import metrics
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.printed import printed_table
from lpf_paper.studies.theorems.calibration import ece_of_silence
from lpf_paper.studies.theorems.known_items import corrected_answer, draw_items, vote_likelihood
from lpf_paper.studies.theorems.statement import (
    RISK,
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
    first_items,
)

SEED = 2
COUNTS = (1, 2, 3, 5, 7, 10, 15, 20)
ACCURACY = 0.6  # of an independent item
SHARES = np.full(3, 1 / 3)
MANY = 400
INSTEAD = (
    "With independent items, exact factors and the prior counted once, ECE is 0 for any number of "
    "items. What falls is the error rate, and exponentially: for two values at a time, by the "
    "overlap of their likelihoods per item."
)
TITLES = {
    PAPER: "LPF-SPN, paper mode",
    BEST: "LPF-SPN, paper's best",
    ROBUST: "LPF-SPN, robust",
    LEARNED: "LPF-Learned, published",
}


@dataclass(frozen=True)
class RootFit:
    """ECE = slope / sqrt(items) + floor, by least squares."""

    slope: float
    floor: float
    r2: float


def root_fit(counts: Sequence[float], eces: Sequence[float]) -> RootFit:
    x, y = 1.0 / np.sqrt(counts), np.asarray(eces)
    slope, floor = np.polyfit(x, y, 1)
    rest = y - (floor + slope * x)
    return RootFit(float(slope), float(floor), float(1.0 - rest.var() / y.var()))


def constant(values: int, risk: float = RISK) -> float:
    """C of T6, with the largest variance that a share can have, 1/4."""
    return sqrt(2 * 0.25 * log(2 * values / risk))


def error_bound(items: int, likelihood: FloatArray) -> float:
    """The most that the best answer can err with equal shares: for every other value, the overlap
    of its likelihood with the right one's, to the power of the number of items."""
    roots = np.sqrt(likelihood)
    overlap = roots.T @ roots
    others = ~np.eye(len(overlap), dtype=bool)
    return float(np.where(others, overlap**items, 0.0).sum(axis=1).max())


@dataclass(frozen=True)
class IndependentRun:
    """The corrected product on independent items with exact factors."""

    ece: MeasuredEce
    error: float
    bound: float


def independent_run(items: int, entities: int) -> IndependentRun:
    known = draw_items(entities, items, ACCURACY, SHARES, SEED)
    answer = corrected_answer(known, known.potential)
    return IndependentRun(
        MeasuredEce.of(answer, known.labels, SEED),
        1.0 - metrics.accuracy(answer, known.labels),
        error_bound(items, vote_likelihood(ACCURACY, len(SHARES))),
    )


def trained_curves(networks: TrainedNetworks) -> dict[str, list[float]]:
    """ECE by number of items, of each method."""
    labels = networks.labels(networks.many)
    used = [first_items(networks.many, count) for count in COUNTS]
    return {
        method: [metrics.ece(networks.answer(method, items).distribution, labels) for items in used]
        for method in METHODS
    }


def sample_size_statement(networks: TrainedNetworks, quick: bool) -> CheckedStatement:
    entities = 2000 if quick else 20_000
    curves = trained_curves(networks)
    runs = {items: independent_run(items, entities) for items in COUNTS}
    limit = constant(3)
    silent, allowed = ece_of_silence(MANY), limit / sqrt(MANY)
    kept = all(one.error <= one.bound + 3 * sqrt(0.25 / entities) for one in runs.values())
    calibrated = all(one.ece.keeps(0.0) for one in runs.values())
    fits = {method: root_fit(COUNTS, curve) for method, curve in curves.items()}
    published = published_fit()
    last = runs[COUNTS[-1]]
    return CheckedStatement(
        "T6",
        "T6, number of items needed",
        "For an ECE of at most e, C² / e² items are enough, with C = sqrt(2 s² log(2V/d)) for "
        "factors of variance s², V values and a risk d; ECE falls as 1 / sqrt(items).",
        INSTEAD if kept and calibrated else "",
        f"{MANY} calibrated items that say nothing give the paper's product an ECE of "
        f"{silent:.3f}; T6 allows {allowed:.3f}.",
        f"The paper's own fit has a floor of "
        f"{printed('theory_numbers', 'T6 fit_floor').value:.2f} (from its table we get "
        f"{published.slope:.3f} / sqrt(items) + {published.floor:.3f}, R² {published.r2:.3f}): no "
        f"number of items gives 5 %, where T6 says that {ceil(limit**2 / 0.05**2):,} are enough. "
        f"Trained, from {COUNTS[0]} to {COUNTS[-1]} items: {_ranges(curves, fits)}. Exact "
        f"factors: ECE {last.ece.ece:.4f} with {COUNTS[-1]} items (chance alone "
        f"{last.ece.chance:.4f}), error rate {last.error:.4f} (bound {last.bound:.3f}).",
        verdict_of(stated=silent <= allowed, corrected=None),
        (_trained_table(curves, fits), _exact_table(runs, entities)),
        (_figure(curves, limit), _error_figure(runs)),
    )


def published_fit() -> RootFit:
    """Of the numbers that the paper prints for LPF-SPN."""
    table = printed_table("ece_by_items")
    cells = {row: table.value(row, "lpf_paper") for row in table.rows}
    points = {float(row): cell.value for row, cell in cells.items() if cell is not None}
    return root_fit(list(points), list(points.values()))


def _ranges(curves: Mapping[str, Sequence[float]], fits: Mapping[str, RootFit]) -> str:
    return "; ".join(
        f"{TITLES[method]} {curve[0]:.3f} to {curve[-1]:.3f} (floor of the fit "
        f"{fits[method].floor:.3f}, R² {fits[method].r2:.2f})"
        for method, curve in curves.items()
    )


def _trained_table(curves: Mapping[str, Sequence[float]], fits: Mapping[str, RootFit]) -> Table:
    beside = printed_table("ece_by_items")
    rows = []
    for place, count in enumerate(COUNTS):
        cells = []
        for method, curve in curves.items():
            paper = beside.value(str(count), method)
            doubt = " ".join(paper.doubts) or None if paper else None
            cells.append(Value(curve[place], paper=paper.value if paper else None, doubt=doubt))
        rows.append(Row(str(count), str(count), tuple(cells)))
    for name, title in (("slope", "Fit: slope"), ("floor", "Fit: floor"), ("r2", "Fit: R²")):
        cells = [Value(getattr(fits[method], name)) for method in curves]
        rows.append(Row(f"fit_{name}", title, tuple(cells), "reference"))
    return Table(
        "theorems_items_trained",
        "T6: ECE by number of items, trained networks",
        "Compliance, new entities, their first items. No temperature is fitted after the answer.",
        tuple(Column(method, TITLES[method], "share", None, 4) for method in curves),
        tuple(rows),
    )


def _exact_table(runs: Mapping[int, IndependentRun], entities: int) -> Table:
    return Table(
        "theorems_items_exact",
        "T6: independent items with exact factors",
        f"{entities:,} entities (seed {SEED}) with three equally likely values and items that are "
        f"right in {ACCURACY:.0%}.",
        (
            Column("ece", "ECE", "share", None, 4),
            Column("chance", "ECE by chance alone", "share", None, 4),
            Column("error", "Error rate", "share", None, 4),
            Column("bound", "Bound of the error rate", "share", None, 4),
        ),
        tuple(
            Row(
                str(items),
                str(items),
                (Value(run.ece.ece), Value(run.ece.chance), Value(run.error), Value(run.bound)),
            )
            for items, run in runs.items()
        ),
    )


def _figure(curves: Mapping[str, Sequence[float]], limit: float) -> Figure:
    x = tuple(float(count) for count in COUNTS)
    bound = tuple(one if (one := limit / sqrt(count)) <= 1.0 else None for count in COUNTS)
    table = printed_table("ece_by_items")
    printed_cells = [table.value(str(count), "lpf_paper") for count in COUNTS]
    paper = tuple(None if cell is None else cell.value for cell in printed_cells)
    return Figure(
        "theorems_items",
        "T6: ECE by number of items",
        "Trained networks on new entities; the bound is that of T6 with 95 % probability.",
        "lines",
        "Items",
        "ECE",
        (
            *(
                Series(
                    TITLES[method],
                    x,
                    tuple(curve),
                    standing="ours" if method == ROBUST else "rival",
                )
                for method, curve in curves.items()
            ),
            Series("LPF-SPN, the paper's numbers", x, paper, standing="reference"),
            Series("Bound of T6", x, bound),
        ),
        log_x=True,
    )


def _error_figure(runs: Mapping[int, IndependentRun]) -> Figure:
    x = tuple(float(items) for items in runs)
    return Figure(
        "theorems_items_errors",
        "T6 corrected: error rate by number of items",
        "Independent items with exact factors: errors become rarer with every item, while ECE "
        "stays at what chance alone gives.",
        "lines",
        "Items",
        "Share of entities",
        (
            Series("Error rate", x, tuple(one.error for one in runs.values()), standing="ours"),
            Series("ECE", x, tuple(one.ece.ece for one in runs.values())),
            Series(
                "Bound of the error rate",
                x,
                tuple(one.bound if one.bound <= 1.0 else None for one in runs.values()),
                standing="reference",
            ),
        ),
    )
