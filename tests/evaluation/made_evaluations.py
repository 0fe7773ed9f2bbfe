"""Evaluations of small files, with artificial answers instead of methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from answered_runs import a_run

from lpf.evaluation.evaluation import Evaluation
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.plan import EvaluationPlan
from lpf.evaluation.predictions import Costs, Predictions
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.spec_datasets import file_dataset
from lpf.evaluation.specs import Cell
from small_specs import Entity, all_three, entities, in_splits, written

METHODS = ("lpf_robust", "logistic_mean", "prior")


def a_file(folder: Path, rows: Sequence[Entity] | None = None) -> Path:
    return written(folder / "parts.jsonl", rows or in_splits(entities(70), all_three))


def evaluator(folder: Path, rows: Sequence[Entity] | None = None, **changes: Any) -> Evaluator:
    return Evaluator.of(EvaluationPlan(a_file(folder, rows), **{"methods": METHODS, **changes}))


def answers_for(evaluator: Evaluator, cell: Cell, strength: float) -> Predictions:
    """As a method of this strength would answer the cell, without one."""
    dataset, predicate = file_dataset(cell.train_spec.data)  # type: ignore[arg-type]
    asked = dataset.select(dataset.positions("test").tolist())
    labels = asked.labels(predicate)
    generator = np.random.default_rng([cell.train_spec.seed, len(cell.method)])
    values = dataset.schema[predicate].values
    logits = strength * np.eye(len(values))[labels] + generator.normal(
        size=(len(labels), len(values))
    )
    rows = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    protected = evaluator.plan.protected
    return a_run(
        rows,
        labels.tolist(),
        entity_ids=tuple(entity.entity_id for entity in asked),
        values=values,
        groups=tuple(str(entity.fields[protected]) for entity in asked) if protected else (),
        costs=Costs(1.0, 0.5, 100.0, 10, 10),
    )


def made(evaluator: Evaluator, folder: Path, **strength: float) -> Evaluation:
    store = ResultStore(folder / "kept")
    for cell in evaluator.cells():
        store.save(cell, answers_for(evaluator, cell, strength.get(cell.method, 1.0)))
    return evaluator.evaluation(store)
