"""How a trained model does on labelled entities it has not seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from lpf import metrics
from lpf.datasets import Split
from lpf.engine import Engine
from lpf.metrics import LabelArray
from lpf.model.runtime import Runtime
from lpf.schema import Schema
from lpf.training.examples import Examples
from lpf.types import FloatArray, QueryOptions, Variant

HELD_OUT: tuple[Split, ...] = ("validation", "test")
NULL_SEED = 7  # draws what a perfectly calibrated predictor would show


@dataclass(frozen=True)
class Scores:
    """``ece_null`` is the 95 % quantile of what a perfectly calibrated predictor with the same
    confidences would show: an ECE below it cannot be told from perfect. ``prior_nll`` is what
    knowing nothing but the prior costs."""

    entities: int
    accuracy: float
    macro_f1: float
    nll: float
    brier: float
    ece: float
    ece_null: float
    prior_nll: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def answers(
    runtime: Runtime, schema: Schema, predicate: str, examples: Examples, options: QueryOptions
) -> FloatArray:
    """One distribution an entity, [E, V], from all its items."""
    return Engine(runtime, schema).answer(examples.items, predicate, options).distribution


def evaluate(
    runtime: Runtime,
    schema: Schema,
    predicate: str,
    examples: Examples,
    variant: Variant = "spn",
) -> Scores:
    """Of the entities labelled with the predicate."""
    labels = examples.dataset.labels(predicate)
    known = np.flatnonzero(labels >= 0)
    chosen = examples.select(known)
    found = answers(runtime, schema, predicate, chosen, QueryOptions(variant=variant))
    return score(found, labels[known], schema[predicate].prior)


def score(distribution: FloatArray, labels: LabelArray, prior: tuple[float, ...]) -> Scores:
    null = metrics.ece_null(distribution, np.random.default_rng(NULL_SEED), draws=500)
    return Scores(
        len(labels),
        metrics.accuracy(distribution, labels),
        metrics.macro_f1(distribution, labels),
        metrics.nll(distribution, labels),
        metrics.brier(distribution, labels),
        metrics.ece(distribution, labels),
        null.quantile_95,
        float(-np.log(np.array(prior))[labels].mean()),
    )
