"""``lpf.evaluate`` and the ``Evaluation`` that it returns."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpf
from lpf.datasets import read_dataset
from lpf.errors import ConfigError, MissingPackageError
from lpf.evaluation import spec_datasets
from lpf.evaluation.plan import DEFAULT_METHODS, chosen_methods, chosen_seeds
from small_specs import all_three, entities, in_splits, kept_folder, times, written


class Shares:
    """An own method: the shares of the values, sharpened by ``power``."""

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def fit(self, X: list[Any], y: list[str]) -> None:
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts**self.power / (counts**self.power).sum()

    def predict_proba(self, X: list[Any]) -> Any:
        return np.tile(self.shares_, (len(X), 1))


@pytest.fixture(scope="module")
def folder() -> Path:
    home = kept_folder("api")
    written(home / "parts.jsonl", in_splits(entities(60, items=1), all_three))
    return home


@pytest.fixture(scope="module")
def evaluation(folder: Path) -> lpf.Evaluation:
    return lpf.evaluate(
        folder / "parts.jsonl",
        methods=["logistic_mean", "prior", Shares, ("sharper", Shares(2.0))],
        seeds=2,
        workers=1,
        cache=folder / "kept",
    )


def test_it_has_one_row_per_method(evaluation: lpf.Evaluation) -> None:
    assert evaluation.methods == ("logistic_mean", "prior", "Shares", "sharper")
    frame = evaluation.to_frame()
    assert set(frame.index) == set(evaluation.methods)
    assert frame.loc["prior", "accuracy"] == pytest.approx(0.5)
    assert (
        frame.loc["logistic_mean", "nll"] == evaluation.scores("logistic_mean").spreads["nll"].mean
    )
    assert frame["runs"].tolist() == [2] * 4
    assert frame["error"].isna().all()


def test_pandas_is_named_if_it_is_missing(
    evaluation: lpf.Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match="pip install pandas"):
        evaluation.to_frame()


def test_the_summary_leads_with_the_best_method(evaluation: lpf.Evaluation) -> None:
    lines = evaluation.summary().splitlines()
    assert "12 test entities" in lines[0]
    assert lines[1].startswith("Lowest NLL: ")
    assert all(evaluation.title(name) in evaluation.summary() for name in evaluation.methods)
    assert str(evaluation) == evaluation.summary()
    assert "4 methods" in repr(evaluation)


def test_two_methods_are_compared(evaluation: lpf.Evaluation) -> None:
    found = evaluation.compare("logistic_mean", "Shares")
    back = evaluation.compare("Shares", "logistic_mean")
    assert found.difference is not None
    assert back.difference is not None
    losses = [evaluation.nll(name) for name in ("logistic_mean", "Shares")]
    assert found.difference.mean == pytest.approx(losses[0] - losses[1])
    assert back.difference.mean == pytest.approx(-found.difference.mean)
    assert found.adjusted is not None
    assert found.adjusted >= found.difference.p_value
    right = evaluation.compare("logistic_mean", "prior", "accuracy").difference
    assert right is not None
    shares = [
        evaluation.scores(name).spreads["accuracy"].mean for name in ("logistic_mean", "prior")
    ]
    assert right.mean == pytest.approx(shares[0] - shares[1])
    assert right.low <= right.mean <= right.high


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda one: one.compare("prior", "nobody"), "method"),
        (lambda one: one.compare("prior", "prior"), "b"),
        (lambda one: one.compare("prior", "Shares", "luck"), "measure"),
        (lambda one: one.scores("nobody"), "method"),
    ],
)
def test_unknown_names_are_refused(
    evaluation: lpf.Evaluation, call: Callable[[lpf.Evaluation], object], field: str
) -> None:
    with pytest.raises(ConfigError) as error:
        call(evaluation)
    assert error.value.field == field


def test_a_data_set_in_memory_gives_the_same_scores(
    folder: Path, evaluation: lpf.Evaluation
) -> None:
    dataset = read_dataset(folder / "parts.jsonl")
    again = lpf.evaluate(
        dataset, methods="logistic_mean", seeds=1, workers=1, cache=folder / "kept"
    )
    first = evaluation.runs["logistic_mean"][0]
    np.testing.assert_array_equal(again.runs["logistic_mean"][0].answers, first.answers)


def test_the_file_is_read_once_and_a_repeated_evaluation_computes_nothing(
    folder: Path, evaluation: lpf.Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []
    read = spec_datasets.read_labelled

    def counted(path: Path, **options: Any) -> Any:
        reads.append(path)
        return read(path, **options)

    monkeypatch.setattr(spec_datasets, "read_labelled", counted)
    before, calls = times(folder / "kept"), []
    lpf.evaluate(
        folder / "parts.jsonl",
        methods=["logistic_mean", ("sharper", Shares(2.0))],
        seeds=2,
        resplit=False,
        workers=1,
        cache=folder / "kept",
        progress=lambda done, total, last: calls.append((done, total)),
    )
    assert calls == [(4, 4)]
    assert times(folder / "kept") == before
    written(folder / "folds.jsonl", entities(60, items=1))
    lpf.evaluate(
        folder / "folds.jsonl", methods="prior", seeds=2, folds=3, workers=1, cache=folder / "kept"
    )
    assert reads == [folder / "parts.jsonl", folder / "folds.jsonl"]


def test_methods_are_names_classes_estimators_or_pairs() -> None:
    estimator = Shares()
    names, estimators = chosen_methods(["prior", Shares, ("mine", estimator), "a.b:C", "prior"])
    assert names == ("prior", "Shares", "mine", "a.b:C")
    assert estimators == {"Shares": Shares, "mine": estimator}
    assert chosen_methods(None) == (DEFAULT_METHODS, {})
    assert chosen_methods("prior") == (("prior",), {})
    assert chosen_methods(("mine", estimator)) == (("mine",), {"mine": estimator})
    with pytest.raises(ConfigError, match="given twice"):
        chosen_methods([("mine", estimator), ("mine", estimator)])


def test_seeds_are_a_number_or_a_list() -> None:
    assert chosen_seeds(3) == (1, 2, 3)
    assert chosen_seeds([7, 9]) == (7, 9)
    with pytest.raises(ConfigError, match="seeds"):
        chosen_seeds(0)


def test_an_estimator_must_have_the_methods_and_be_picklable(folder: Path) -> None:
    class Local:
        def fit(self, X: list[Any], y: list[str]) -> None: ...

        def predict_proba(self, X: list[Any]) -> None: ...

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Local())
    for given, message in ((("mine", Local()), "cannot be pickled"), (("mine", 3), "has no fit")):
        with pytest.raises(ConfigError, match=message) as error:
            lpf.evaluate(folder / "parts.jsonl", methods=[given], cache=folder / "none")
        assert error.value.field == "methods"
    assert not (folder / "none").exists()
