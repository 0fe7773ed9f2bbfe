"""What ``lpf evaluate --json`` prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from answered_runs import a_crash
from made_evaluations import METHODS, evaluator, made

from lpf.experiments.evaluation.document import evaluation_document
from lpf.experiments.keeping import Keeper
from small_lessons import all_three, entities, in_splits

MEASURES = ("accuracy", "nll", "brier", "ece", "ece_null", "macro_f1", "runtime_ms")


def test_the_document_has_the_promised_shape(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, seeds=(1, 2)), tmp_path)
    document = json.loads(json.dumps(evaluation_document(found), allow_nan=False))
    assert document["dataset"] == "parts"
    assert (document["predicate"], document["values"]) == ("label", ["bad", "good"])
    assert (document["entities"], document["asked"], document["folds"]) == (70, 14, 0)
    assert document["seeds"] == [1, 2]
    assert list(document["methods"]) == list(METHODS)
    for numbers in document["methods"].values():
        assert all(isinstance(numbers[name], float) for name in MEASURES)
        assert numbers["accuracy_sd"] >= 0
        low, high = numbers["nll_interval"]
        assert low <= numbers["nll"] <= high
        assert (numbers["runs"], numbers["error"]) == (2, None)
    assert list(document["against"]["others"]) == ["logistic_mean"]
    assert document["against"]["others"]["logistic_mean"]["p_holm"] is not None


def test_one_seed_has_no_standard_deviation(tmp_path: Path) -> None:
    document = evaluation_document(made(evaluator(tmp_path, seeds=(1,)), tmp_path))
    assert "accuracy_sd" not in document["methods"]["prior"]


def test_a_method_that_crashed_is_a_row_with_its_error(tmp_path: Path) -> None:
    asking = evaluator(tmp_path, seeds=(1,))
    made(asking, tmp_path)
    keeper = Keeper(tmp_path / "kept")
    (cell,) = asking.cells_of("logistic_mean", 1)
    there = keeper.answered(cell)
    crash = a_crash([0], "TrainingError: it broke")
    keeper.keep(
        cell,
        replace(
            crash,
            labels=there.labels,
            counts=there.counts,
            credibility=there.credibility,
            entity_ids=there.entity_ids,
            values=there.values,
        ),
    )
    document = evaluation_document(asking.evaluation(keeper))
    assert "TrainingError: it broke" in document["methods"]["logistic_mean"]["error"]
    assert document["methods"]["logistic_mean"]["runs"] == 0
    assert "accuracy" in document["methods"]["prior"]
    against = document["against"]["others"]["logistic_mean"]
    assert (against["difference"], against["p_holm"]) == (None, None)
    assert against["note"]


def test_losses_that_are_infinite_are_null_and_said(tmp_path: Path) -> None:
    asking = evaluator(tmp_path, seeds=(1,))
    made(asking, tmp_path)
    keeper = Keeper(tmp_path / "kept")
    (cell,) = asking.cells_of("logistic_mean", 1)
    there = keeper.answered(cell)
    sure = np.eye(2)[1 - there.labels]
    keeper.keep(cell, replace(there, raw=sure, tempered=sure))
    document = json.loads(
        json.dumps(evaluation_document(asking.evaluation(keeper)), allow_nan=False)
    )
    numbers = document["methods"]["logistic_mean"]
    assert (numbers["nll"], numbers["accuracy"]) == (None, 0.0)
    assert "nll is infinite" in numbers["error"]


def test_results_are_told_apart_by_a_protected_field(tmp_path: Path) -> None:
    rows = [
        {**row, "fields": {"region": ("north", "south")[place // 10 % 2]}}
        for place, row in enumerate(in_splits(entities(70), all_three))
    ]
    found = made(evaluator(tmp_path, rows, seeds=(1,), protected="region"), tmp_path)
    groups = evaluation_document(found)["methods"]["prior"]["groups"]
    assert set(groups) == {"north", "south"}
    assert groups["north"]["entities"] + groups["south"]["entities"] == 14
    assert 0 <= groups["north"]["accuracy"] <= 1
