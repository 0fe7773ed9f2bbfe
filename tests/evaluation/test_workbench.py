"""The workbench gives the methods' own answers, with the entities they are about."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from bench_answers import ELSEWHERE, answered

from lpf.baselines import Shared, make_methods
from lpf.baselines.linear import LogisticMean
from lpf.domains import perfect_answers
from lpf.errors import ArtefactError, DatasetError, MissingPackageError, StorageError
from lpf.evaluation.specs import Cell, EvalSpec, TrainSpec
from lpf.evaluation.variants import DEFAULT_ENSEMBLE, best_members
from lpf.evaluation.workbench import Workbench
from method_runs import run_methods
from small_specs import (
    TRAIN_SPEC,
    Reworded,
    all_three,
    bench,
    entities,
    file_data,
    in_splits,
    kept_folder,
    written,
)
from thread_counts import threads, two_threads


@pytest.fixture(scope="module")
def of_the_room() -> dict[str, object]:
    """The same methods as ``baselines`` runs them, from the same model and examples."""
    names = ("lpf_robust", "lpf_robust_single", "lpf_learned", "vae_only", "logistic_mean", "prior")
    shared = Shared(model=best_members(bench().model.runtime, DEFAULT_ENSEMBLE))
    return dict(
        run_methods(
            make_methods(shared, names),
            bench().train,
            bench().validation,
            bench().test_examples(EvalSpec()),
            bench().predicate,
            TRAIN_SPEC.seed,
        )
    )


@pytest.mark.parametrize(
    "name",
    ["lpf_robust", "lpf_robust_single", "lpf_learned", "vae_only", "logistic_mean", "prior"],
)
def test_answers_are_those_of_the_methods_themselves(name: str, of_the_room: dict) -> None:
    found, expected = answered(name), of_the_room[name]
    assert found.error is None
    np.testing.assert_allclose(found.raw, expected.raw, atol=1e-9)
    if name not in ("lpf_robust", "lpf_robust_single"):
        np.testing.assert_allclose(found.answers, expected.tempered, atol=1e-9)


def test_the_test_entities_are_stored_with_the_answers() -> None:
    found, asked = answered("prior"), bench().test_examples(EvalSpec()).dataset
    assert found.entity_ids == tuple(entity.entity_id for entity in asked)
    assert found.values == ("low", "medium", "high")
    np.testing.assert_array_equal(found.labels, asked.labels(bench().predicate))
    np.testing.assert_array_equal(found.counts, [3] * len(asked))
    means = [np.mean([item.credibility for item in entity.evidence]) for entity in asked]
    np.testing.assert_allclose(found.credibility, means, rtol=1e-6)
    assert found.groups == ()


def test_the_perfect_reader_knows_its_domain_and_refuses_elsewhere() -> None:
    own = answered("perfect_reader")
    np.testing.assert_allclose(
        own.answers, perfect_answers(bench().test_examples(EvalSpec()).dataset)
    )
    strange = answered("perfect_reader", ELSEWHERE)
    assert strange.error is not None
    assert strange.tempered is None
    assert len(strange.entity_ids) == 20
    spoilt = answered("perfect_reader", EvalSpec(change=Reworded(1)))
    assert spoilt.error is not None


def test_entities_of_another_domain_are_answered_with_our_values() -> None:
    found = answered("lpf_robust", ELSEWHERE)
    assert found.error is None
    assert found.answers.shape == (20, 3)
    assert found.values == ("low", "medium", "high")


def test_a_model_is_trained_once_for_all_seeds_of_other_methods() -> None:
    model_cache = bench().model_cache
    assert model_cache.load(TRAIN_SPEC).runtime.version == bench().model.runtime.version
    assert (
        model_cache.load(replace(TRAIN_SPEC, seed=9)).runtime.version
        == bench().model.runtime.version
    )
    with pytest.raises(StorageError):
        model_cache.load(replace(TRAIN_SPEC, seed=9, entities=45))
    trained = bench().model
    assert [one.seed for one in trained.histories] == list(TRAIN_SPEC.seeds)
    assert sorted(trained.runtime.config.seeds) == list(TRAIN_SPEC.seeds)


def test_training_never_sees_test_entities() -> None:
    from lpf.evaluation.model_cache import _learned

    chosen = bench().examples.select(_learned(bench().examples))
    assert {entity.split for entity in chosen.dataset} == {"train", "validation"}


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 1}', b"[]"])
def test_a_damaged_model_ends_the_run_and_is_no_result(content: bytes, tmp_path: Path) -> None:
    bench().model  # noqa: B018 -- trains it
    folder = tmp_path / "copy"
    shutil.copytree(bench().model_cache.folder.parent, folder)
    files = list((folder / "models").glob("*/training.json"))  # other tests train models here too
    for file in files:
        file.write_bytes(content)
    broken = Workbench(TRAIN_SPEC, folder)
    with pytest.raises(ArtefactError, match="Remove the folder it is in and repeat") as caught:
        broken.predict(Cell(TRAIN_SPEC, EvalSpec(), "lpf_robust"))
    assert any(str(file) in str(caught.value) for file in files)
    assert broken.predict(Cell(TRAIN_SPEC, EvalSpec(), "prior")).error is None


def test_a_protected_field_is_stored_with_the_answers(tmp_path: Path) -> None:
    rows = in_splits(entities(60), all_three)
    fields = ({"region": "north"}, {"region": 7}, {})
    rows = [{**row, "fields": fields[place % 3]} for place, row in enumerate(rows)]
    data = file_data(written(tmp_path / "regions.jsonl", rows), protected="region")
    train_spec = TrainSpec(data, seeds=(1,))
    found = Workbench(train_spec, tmp_path).predict(Cell(train_spec, EvalSpec(), "prior"))
    expected = {
        row["entity_id"]: (None if not row["fields"] else str(row["fields"]["region"]))
        for row in rows
    }
    assert found.groups == tuple(expected[name] for name in found.entity_ids)
    assert set(found.groups) == {"north", "7", None}


def test_a_test_set_that_cannot_be_built_ends_the_run(tmp_path: Path) -> None:
    path = written(tmp_path / "two.jsonl", in_splits(entities(60), all_three))
    train_spec = TrainSpec(file_data(path), seeds=(1,))
    with pytest.raises(DatasetError, match="has 2 values"):
        Workbench(train_spec, kept_folder("eval_spec")).predict(
            Cell(train_spec, ELSEWHERE, "prior")
        )


def test_a_missing_package_ends_the_run_and_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    with pytest.raises(MissingPackageError, match="pip install"):
        bench().predict(Cell(TRAIN_SPEC, EvalSpec(), "relational_graph"))


class CountsThreads:
    """An own method; ``seen`` has the numbers of threads while it is fitted."""

    seen: ClassVar[list[set[int]]] = []

    def fit(self, X: list[dict[str, object]], y: list[str]) -> CountsThreads:
        self.classes_ = sorted(set(y))
        CountsThreads.seen.append(threads())
        return self

    def predict_proba(self, X: list[dict[str, object]]) -> np.ndarray:
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_methods_use_one_thread_but_own_ones_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our networks and regressions are small; how large an own method is, nobody knows."""
    seen: list[set[int]] = []
    original = LogisticMean.fit

    def fit(self: LogisticMean, *given: object) -> object:
        seen.append(threads())
        return original(self, *given)

    monkeypatch.setattr(LogisticMean, "fit", fit)
    spec = replace(TRAIN_SPEC, seeds=(1,))
    bench = Workbench(spec, tmp_path, estimators={"mine": CountsThreads})
    with two_threads():
        for name in ("logistic_mean", "mine"):
            assert bench.predict(Cell(spec, EvalSpec(), name)).error is None
        assert threads() == {2}
    assert seen == [{1}]
    assert CountsThreads.seen == [{2}]
