"""What ``lpf evaluate --json`` prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_evaluations import METHODS, evaluator, made

from lpf import metrics
from lpf.evaluation.document import evaluation_document
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.result_store import ResultStore
from small_specs import all_three, entities, in_splits

MEASURES = ("accuracy", "nll", "brier", "ece", "ece_null", "macro_f1", "runtime_ms")
DETAILS = ("confusion", "by_label", "by_credibility", "reliability", "risk_coverage")


def as_json(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return found


def crash_of(asking: Evaluator, folder: Path, method: str, seed: int) -> ResultStore:
    """The method's answers of this repetition are gone; an error is there instead."""
    store = ResultStore(folder / "kept")
    for cell in asking.cells_of(method, seed):
        gone = {"raw": None, "tempered": None, "error": "TrainingError: it broke"}
        store.save(cell, replace(store.load(cell), **gone))
    return store


def test_the_document_has_the_promised_shape(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, seeds=(1, 2)), tmp_path)
    document = as_json(evaluation_document(found))
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
        assert (numbers["runs"], numbers["error"], numbers["notes"]) == (2, None, [])
    assert list(document["against"]["others"]) == ["logistic_mean"]
    assert document["against"]["others"]["logistic_mean"]["p_holm"] is not None


def test_one_seed_has_no_standard_deviation(tmp_path: Path) -> None:
    document = evaluation_document(made(evaluator(tmp_path, seeds=(1,)), tmp_path))
    assert document["methods"]["prior"]["accuracy_sd"] is None
    assert "nll_sd" not in document["methods"]["prior"]


def test_a_method_that_crashed_is_a_row_with_its_error(tmp_path: Path) -> None:
    asking = evaluator(tmp_path, seeds=(1,))
    made(asking, tmp_path)
    store = crash_of(asking, tmp_path, "logistic_mean", 1)
    document = as_json(evaluation_document(asking.evaluation(store)))
    crashed = document["methods"]["logistic_mean"]
    assert crashed == {
        **dict.fromkeys((*MEASURES, "accuracy_sd", *DETAILS)),
        "runs": 0,
        "error": "1 of 1 runs have no answers: TrainingError: it broke",
        "notes": [],
    }
    assert document["methods"]["prior"]["accuracy"] is not None
    against = document["against"]["others"]["logistic_mean"]
    assert (against["difference"], against["p_holm"]) == (None, None)
    assert against["note"]


def test_infinite_losses_are_null_and_reported(tmp_path: Path) -> None:
    asking = evaluator(tmp_path, seeds=(1,))
    made(asking, tmp_path)
    store = ResultStore(tmp_path / "kept")
    (cell,) = asking.cells_of("logistic_mean", 1)
    there = store.load(cell)
    sure = np.eye(2)[1 - there.labels]
    store.save(cell, replace(there, raw=sure, tempered=sure))
    document = json.loads(
        json.dumps(evaluation_document(asking.evaluation(store)), allow_nan=False)
    )
    numbers = document["methods"]["logistic_mean"]
    assert (numbers["nll"], numbers["accuracy"]) == (None, 0.0)
    assert numbers["error"] is None
    assert [note.partition(" in ")[0] for note in numbers["notes"]] == [
        "nll is infinite",
        "raw_nll is infinite",
    ]
    assert {part["nll"] for part in numbers["by_label"].values()} == {None}


def test_a_crashed_repetition_is_a_note_if_another_has_answers(tmp_path: Path) -> None:
    asking = evaluator(tmp_path, seeds=(1, 2))
    made(asking, tmp_path)
    store = crash_of(asking, tmp_path, "logistic_mean", 2)
    numbers = evaluation_document(asking.evaluation(store))["methods"]["logistic_mean"]
    assert (numbers["runs"], numbers["error"], numbers["accuracy_sd"]) == (1, None, None)
    assert numbers["notes"] == ["1 of 2 runs have no answers: TrainingError: it broke"]
    assert np.sum(numbers["confusion"]) == 14


def test_an_error_of_several_folds_is_reported_once(tmp_path: Path) -> None:
    asking = evaluator(tmp_path, entities(70), seeds=(1, 2), folds=3)
    made(asking, tmp_path)
    crash_of(asking, tmp_path, "logistic_mean", 1)
    store = crash_of(asking, tmp_path, "logistic_mean", 2)
    error = evaluation_document(asking.evaluation(store))["methods"]["logistic_mean"]["error"]
    assert error == "2 of 2 runs have no answers: in 3 of 3 folds: TrainingError: it broke"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[dict[str, Any], list[Predictions]]:
    """What the document says of a method, and its two runs."""
    found = made(evaluator(tmp_path, seeds=(1, 2)), tmp_path)
    document = as_json(evaluation_document(found))["methods"]["lpf_robust"]
    return document, found.runs["lpf_robust"]


def labels_of(run: Predictions) -> metrics.LabelArray:
    return run.labels.astype(np.int64)


def test_confusions_are_summed_over_runs_and_give_the_mean_accuracy(
    pair: tuple[dict[str, Any], list[Predictions]],
) -> None:
    document, runs = pair
    confusion = np.array(document["confusion"])
    one, two = (metrics.confusion(run.answers, labels_of(run)) for run in runs)
    np.testing.assert_array_equal(confusion, one + two)
    np.testing.assert_array_equal(confusion.sum(axis=1), 2 * np.bincount(runs[0].labels))
    assert np.trace(confusion) / confusion.sum() == pytest.approx(document["accuracy"])


def test_subsets_by_label_and_credibility_cover_all_entities(
    pair: tuple[dict[str, Any], list[Predictions]],
) -> None:
    document, _ = pair
    assert list(document["by_label"]) == ["bad", "good"]
    assert [part["credibility"] for part in document["by_credibility"]] == ["unknown"]
    for parts in (document["by_label"].values(), document["by_credibility"]):
        assert sum(part["entities"] for part in parts) == 14
        nll = sum(part["entities"] * part["nll"] for part in parts) / 14
        assert nll == pytest.approx(document["nll"])


def test_quarters_by_credibility_are_listed_lowest_first(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, seeds=(1,)), tmp_path)
    (run,) = found.runs["prior"]
    found.runs["prior"][0] = replace(run, credibility=np.linspace(0.2, 0.9, 14))
    parts = evaluation_document(found)["methods"]["prior"]["by_credibility"]
    assert [part["entities"] for part in parts] == [4, 3, 3, 4]
    assert parts[0]["credibility"].startswith("0.200 to ")
    assert parts[-1]["credibility"].endswith(" to 0.900")


def test_the_points_of_the_curves(pair: tuple[dict[str, Any], list[Predictions]]) -> None:
    document, runs = pair
    reliability = {name: np.array(points) for name, points in document["reliability"].items()}
    assert reliability["count"].sum() == 2 * 14
    weights = reliability["count"] / reliability["count"].sum()
    assert (weights * reliability["accuracy"]).sum() == pytest.approx(document["accuracy"])
    assert (weights * reliability["confidence"]).sum() == pytest.approx(document["mean_confidence"])
    curve = document["risk_coverage"]
    whole = [metrics.risk_coverage(run.answers, labels_of(run)).risk for run in runs]
    np.testing.assert_allclose(curve["risk"], np.mean(whole, axis=0))  # fewer entities than points
    np.testing.assert_allclose(curve["coverage"], np.arange(1, 15) / 14)
    assert curve["risk"][-1] == pytest.approx(1 - document["accuracy"])


def test_long_curves_are_cut_to_few_points(tmp_path: Path) -> None:
    rows = in_splits(entities(400), all_three)
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    curve = evaluation_document(found)["methods"]["prior"]["risk_coverage"]
    assert len(curve["risk"]) == len(curve["coverage"]) == 20
    assert curve["coverage"][-1] == 1.0


def test_results_are_reported_by_a_protected_field(tmp_path: Path) -> None:
    rows = [
        {**row, "fields": {"region": ("north", "south")[place // 10 % 2]}}
        for place, row in enumerate(in_splits(entities(70), all_three))
    ]
    found = made(evaluator(tmp_path, rows, seeds=(1,), protected="region"), tmp_path)
    groups = evaluation_document(found)["methods"]["prior"]["groups"]
    assert set(groups) == {"north", "south"}
    assert groups["north"]["entities"] + groups["south"]["entities"] == 14
    assert 0 <= groups["north"]["accuracy"] <= 1
