"""What to read next: how few items give the accuracy of five random ones?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.evaluation import Cell, EvalSpec
from lpf.types import FloatArray
from lpf_paper.exhibits import (
    Column,
    Figure,
    Row,
    Series,
    Standing,
    StudyResult,
    Table,
    Value,
)
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.collecting import (
    ITEMS,
    METHOD,
    ORDERS,
    RANDOM_ORDERS,
    Collected,
    stored_collection,
)
from lpf_paper.studies.domains_tables import domain_train_spec
from lpf_paper.studies.study import ResultReader

TITLES: Mapping[str, str] = {
    "information": "Expected information",
    "credibility": "Highest credibility first",
    "diversity": "Unread sources first",
    "uncertainty": "Most uncertain text first",
    "random": "Random",
}
OURS, BASELINE, BASELINE_ITEMS = "information", "random", 5
GOAL = 3.5  # items, the middle of what the paper expects
# From half to nearly certain, in steps of a tenth of a bit of odds.
THRESHOLDS: tuple[float, ...] = tuple(
    float(one) for one in 1.0 / (1.0 + np.exp2(-np.arange(0.0, 12.0, 0.1)))
)
SAME = 0.95
SHOWN = (0.9, 0.95, 0.98, 0.99)
DRAWS = 2000
ENTITIES = 300  # of a data set


@dataclass(frozen=True, eq=False)
class Orders:
    """Runs of all data sets, one after the other: ``right`` and ``confidence`` [D, E, T + 1]."""

    right: Mapping[str, FloatArray]
    confidence: Mapping[str, FloatArray]

    @classmethod
    def of(cls, runs: Sequence[Collected]) -> Orders:
        return cls(
            {name: np.concatenate([one.right[name] for one in runs], axis=1) for name in ORDERS},
            {
                name: np.concatenate([one.confidence[name] for one in runs], axis=1)
                for name in ORDERS
            },
        )

    def part(self, places: NDArray[np.intp]) -> Orders:
        return Orders(
            {name: rows[:, places] for name, rows in self.right.items()},
            {name: rows[:, places] for name, rows in self.confidence.items()},
        )

    def after(self, order: str, items: int) -> FloatArray:
        """The share of draws in which the answer from this many items is right, [E]."""
        return np.asarray(self.right[order][..., items].mean(axis=0))

    def stopped(self, order: str, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Items read and right answers [E] if reading stops as soon as the most probable value has
        the probability ``threshold``, or nothing is left."""
        sure = self.confidence[order][..., 1:] >= threshold
        items = np.where(sure.any(axis=-1), sure.argmax(axis=-1) + 1, sure.shape[-1])
        right = np.take_along_axis(self.right[order], items[..., None], axis=-1)[..., 0]
        return items.mean(axis=0), right.mean(axis=0)

    def threshold(self, order: str, accuracy: float) -> float:
        """The lowest threshold with this accuracy; the highest if none has it."""
        for threshold in THRESHOLDS:
            if self.stopped(order, threshold)[1].mean() >= accuracy:
                return threshold
        return THRESHOLDS[-1]

    def items_for(self, order: str, accuracy: float) -> float | None:
        """How many items for every entity have this accuracy, between two whole numbers in
        proportion; None if not even all have it."""
        means = self.right[order].mean(axis=(0, 1))
        for count in range(1, len(means)):
            if means[count] >= accuracy:
                low, high = means[count - 1], means[count]
                return count - 1 + float((accuracy - low) / (high - low)) if high > low else count
        return None


@dataclass(frozen=True)
class NextEvidenceStudy:
    name: str = "next_evidence"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        """The data sets' own test entities: their models are trained with them."""
        return [
            Cell(domain_train_spec(plan, domain, seed), EvalSpec(), METHOD)
            for domain, seed in data_sets(plan)
        ]

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        runs = [
            stored_collection(domain_train_spec(plan, domain, seed), ENTITIES, results.folder)
            for domain, seed in data_sets(plan)
        ]
        return study_result(self.name, plan, runs)


def data_sets(plan: ExperimentPlan) -> list[tuple[str, int]]:
    return [(domain, seed) for seed in plan.data_seeds[:2] for domain in plan.domains]


def study_result(name: str, plan: ExperimentPlan, runs: Sequence[Collected]) -> StudyResult:
    everyone = Orders.of(runs)
    count = len(everyone.after(BASELINE, 0))
    chosen = everyone.part(np.arange(0, count, 2))
    measured = everyone.part(np.arange(1, count, 2))
    rows = {order: Measured.of(order, chosen, measured) for order in ORDERS}
    return StudyResult(
        name,
        "What to read next",
        "How few items give the accuracy of five random ones, if the next item is chosen by what "
        "it is expected to tell, and reading stops when the answer is sure enough?",
        tuple(_findings(rows, measured)),
        (_equal_accuracy(plan, rows, measured), _equal_threshold(plan, measured)),
        (_fixed_figure(plan, everyone), _stopped_figure(plan, everyone)),
    )


@dataclass(frozen=True)
class Measured:
    """One order at the ``threshold`` that was chosen on other entities: ``items`` read, right
    ``answers`` and their ``difference`` from those of five random items, with their intervals.
    ``fixed`` is how many items for every entity are needed instead."""

    threshold: float
    items: Value
    answers: Value
    difference: Value
    fixed: float | None

    @classmethod
    def of(cls, order: str, chosen: Orders, measured: Orders) -> Measured:
        wanted = float(chosen.after(BASELINE, BASELINE_ITEMS).mean())
        threshold = chosen.threshold(order, wanted)
        items, right = measured.stopped(order, threshold)
        baseline = measured.after(BASELINE, BASELINE_ITEMS)
        fixed = measured.items_for(order, float(baseline.mean()))
        return cls(threshold, _mean(items), _mean(right), _mean(right - baseline), fixed)


def _mean(row: FloatArray) -> Value:
    """With the interval over entities."""
    generator = np.random.default_rng(0)
    drawn = np.array(
        [row[generator.integers(len(row), size=len(row))].mean() for _ in range(DRAWS)]
    )
    low, high = metrics.percentiles(drawn)
    return Value(float(row.mean()), low=float(low), high=float(high))


def _how(plan: ExperimentPlan) -> str:
    sets = data_sets(plan)
    return (
        f"{len(sets)} data sets of {len(plan.domains)} domains with the preset paper, "
        f"{ENTITIES} new test entities each, of which {ITEMS} items may be read; the random order "
        f"is the mean of {RANDOM_ORDERS}. Expected information is taken from the items of the "
        "validation entities."
    )


def _equal_accuracy(plan: ExperimentPlan, rows: Mapping[str, Measured], measured: Orders) -> Table:
    columns = (
        Column("threshold", "Stops at", "share", None, 3),
        Column("items", "Items read", "number", "lower", 2),
        Column("accuracy", "Accuracy", "share", "higher", 4),
        Column("difference", "Against five random items", "share", None, 4),
        Column("fixed", "Items without stopping", "number", "lower", 2),
    )
    ordered = sorted(ORDERS, key=lambda order: rows[order].items.value or 0.0)
    baseline = _mean(measured.after(BASELINE, BASELINE_ITEMS))
    five = Row(
        "five_random",
        "Five random items for every entity",
        (None, Value(float(BASELINE_ITEMS)), baseline, None, None),
        "reference",
    )
    return Table(
        "next_evidence_items",
        "Items for the accuracy of five random ones",
        f"{_how(plan)} Reading about an entity stops when the most probable value has the "
        "probability in the first column: the lowest one that reaches the accuracy of five random "
        "items on half of the entities. The numbers are those of the other half, with 95 % "
        "intervals over entities. Without stopping, every entity gets the same number of items.",
        columns,
        (
            *(
                Row(
                    order,
                    TITLES[order],
                    (
                        Value(rows[order].threshold),
                        rows[order].items,
                        rows[order].answers,
                        rows[order].difference,
                        Value(rows[order].fixed),
                    ),
                    "ours" if order == OURS else "rival",
                    None if rows[order].fixed is not None else f"{ITEMS} items are not enough",
                )
                for order in ordered
            ),
            five,
        ),
    )


def _equal_threshold(plan: ExperimentPlan, measured: Orders) -> Table:
    columns = []
    for threshold in SHOWN:
        name = f"{100 * threshold:g}"
        columns.append(Column(f"items_{name}", f"Items, {threshold:g}", "number", "lower", 2))
        columns.append(Column(f"accuracy_{name}", f"Accuracy, {threshold:g}", "share", "higher", 4))
    rows = []
    for order in ORDERS:
        cells: list[Value] = []
        for threshold in SHOWN:
            items, right = measured.stopped(order, threshold)
            cells += [Value(float(items.mean())), Value(float(right.mean()))]
        rows.append(Row(order, TITLES[order], tuple(cells), "ours" if order == OURS else "rival"))
    return Table(
        "next_evidence_thresholds",
        "One stopping rule for all orders",
        f"{_how(plan)} Mean number of items and accuracy if reading stops when the most probable "
        "value has this probability; the same half of the entities as above.",
        tuple(columns),
        tuple(rows),
    )


def _fixed_figure(plan: ExperimentPlan, everyone: Orders) -> Figure:
    counts = tuple(float(count) for count in range(1, ITEMS + 1))
    series = tuple(
        Series(
            TITLES[order],
            counts,
            tuple(everyone.right[order].mean(axis=(0, 1))[1:].tolist()),
            standing="ours" if order == OURS else "rival",
        )
        for order in ORDERS
    )
    return Figure(
        "next_evidence_fixed",
        "Accuracy by number of items",
        f"{_how(plan)} The same number of items for every entity.",
        "lines",
        "Items",
        "Accuracy",
        series,
    )


def _stopped_figure(plan: ExperimentPlan, everyone: Orders) -> Figure:
    series = []
    for order in ORDERS:
        points = [everyone.stopped(order, threshold) for threshold in THRESHOLDS]
        items = tuple(float(read.mean()) for read, _ in points)
        accuracy = tuple(float(right.mean()) for _, right in points)
        standing: Standing = "ours" if order == OURS else "rival"
        series.append(Series(TITLES[order], items, accuracy, standing=standing))
    return Figure(
        "next_evidence_stopped",
        "Accuracy by mean number of items, with stopping",
        f"{_how(plan)} Reading stops when the answer is sure enough; each point is one threshold.",
        "lines",
        "Mean number of items",
        "Accuracy",
        tuple(series),
    )


def _findings(rows: Mapping[str, Measured], measured: Orders) -> list[str]:
    ours, random = rows[OURS], rows[BASELINE]
    five = float(measured.after(BASELINE, BASELINE_ITEMS).mean())
    verdict = "at most" if (ours.items.value or 0.0) <= GOAL else "more than"
    return [
        f"Five random items give an accuracy of {five:.4f}. In the order of expected information, "
        f"and stopping when the most probable value has {ours.threshold:.3f}, "
        f"{_shown(ours.items, 2)} items give {_shown(ours.answers, 4)}: {verdict} the {GOAL} items "
        "aimed at.",
        f"With the same rule a random order needs {_shown(random.items, 2)} items for "
        f"{_shown(random.answers, 4)}. So {_share(random, ours)} of the saving is due to stopping, "
        "not to the order.",
        f"At the same threshold of {SAME:g}, expected information saves "
        f"{_saved(measured, 'random')} items against a random order and "
        f"{_saved(measured, 'credibility')} against the most credible items first.",
        "Without stopping, the accuracy of five random items takes "
        + ", ".join(f"{_number(rows[order].fixed)} ({TITLES[order].lower()})" for order in ORDERS)
        + " items.",
    ]


def _saved(measured: Orders, other: str) -> str:
    """How many items are saved, with the interval of the difference on the same entities."""
    saved = _mean(measured.stopped(other, SAME)[0] - measured.stopped(OURS, SAME)[0])
    return _shown(saved, 2)


def _share(random: Measured, ours: Measured) -> str:
    saved = BASELINE_ITEMS - (ours.items.value or 0.0)
    stopping = BASELINE_ITEMS - (random.items.value or 0.0)
    return f"{100 * min(max(stopping / saved, 0.0), 1.0):.0f} %" if saved > 0 else "none"


def _shown(value: Value, decimals: int) -> str:
    return (
        f"{value.value:.{decimals}f} (95 % interval {value.low:.{decimals}f} to "
        f"{value.high:.{decimals}f})"
    )


def _number(count: float | None) -> str:
    return f"more than {ITEMS}" if count is None else f"{count:.1f}"
