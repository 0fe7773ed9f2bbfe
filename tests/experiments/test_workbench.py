"""Answers on the bench are those of the methods themselves, with what they cost."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from lpf.baselines import Shared, make_methods, run_methods
from lpf.domains import perfect_answers
from lpf.errors import ArtefactError, DatasetError, MissingPackageError, StorageError
from lpf.experiments.answered import Answered
from lpf.experiments.cells import Cell, DomainData, Exam, Lesson
from lpf.experiments.variants import DEFAULT_ENSEMBLE, LpfVariant, best_members
from lpf.experiments.workbench import Workbench
from small_lessons import (
    DATA,
    LESSON,
    all_three,
    bench,
    entities,
    file_data,
    in_splits,
    kept_folder,
    written,
)

ELSEWHERE = Exam(DomainData("legal", seed=1000, changes=("items=3",)), entities=20)


def answered(method: str, exam: Exam = Exam(), **settings: bool | float | str) -> Answered:  # noqa: B008
    return bench().answered(Cell(LESSON, exam, method, tuple(settings.items())))


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
            bench().exam(Exam()),
            bench().predicate,
            LESSON.seed,
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


def test_who_was_asked_is_kept_with_the_answers() -> None:
    found, asked = answered("prior"), bench().exam(Exam()).dataset
    assert found.entity_ids == tuple(entity.entity_id for entity in asked)
    assert found.values == ("low", "medium", "high")
    np.testing.assert_array_equal(found.labels, asked.labels(bench().predicate))
    np.testing.assert_array_equal(found.counts, [3] * len(asked))
    means = [np.mean([item.credibility for item in entity.evidence]) for entity in asked]
    np.testing.assert_allclose(found.credibility, means, rtol=1e-6)
    assert found.groups == ()


@pytest.mark.parametrize("name", ["lpf_robust", "lpf_robust_single", "prior", "oracle"])
def test_no_temperature_is_put_on_top_of_what_has_its_own(name: str) -> None:
    found = answered(name)
    assert found.temperature is None
    np.testing.assert_array_equal(found.answers, found.raw)


@pytest.mark.parametrize("name", ["lpf_paper", "vae_only", "logistic_mean"])
def test_every_other_method_gets_one_and_keeps_its_raw_answers(name: str) -> None:
    found = answered(name)
    assert found.temperature is not None
    assert found.temperature[1] == 0.0  # all have three items
    assert np.abs(found.answers - found.raw).max() > 1e-3
    np.testing.assert_array_equal(found.answers.argmax(1), found.raw.argmax(1))


def test_where_numbers_of_items_vary_the_temperature_depends_on_them() -> None:
    varying = Exam(replace(DATA, seed=1000, changes=("items=3", "items_min=1")), entities=20)
    found = answered("vae_only", varying)
    assert len(set(found.counts.tolist())) > 1
    assert found.temperature is not None
    assert found.temperature[1] != 0.0


def test_costs_are_measured_and_training_is_charged_to_all_who_share_it() -> None:
    robust, single, cheap = (
        answered(name).costs for name in ("lpf_robust", "lpf_robust_single", "prior")
    )
    for costs in (robust, single, cheap):
        assert all(value is not None and value >= 0 for value in vars(costs).values())
    trained = bench().model.seconds
    assert trained > 0.1
    assert min(robust.fit_seconds, single.fit_seconds) >= trained > cheap.fit_seconds
    assert robust.stored_bytes > 2.5 * single.stored_bytes > cheap.stored_bytes > 0


def test_of_evidence_that_was_spoilt_only_the_rate_is_measured() -> None:
    for found in (
        answered("lpf_robust", Exam(perturbation="missing", level=0.3)),
        answered("lpf_robust", rho=0.5),
    ):
        assert found.costs.per_second > 0
        assert (found.costs.query_ms, found.costs.stored_bytes) == (None, None)


def test_the_perfect_reader_knows_its_domain_and_refuses_elsewhere() -> None:
    own = answered("perfect_reader")
    np.testing.assert_allclose(own.answers, perfect_answers(bench().exam(Exam()).dataset))
    strange = answered("perfect_reader", ELSEWHERE)
    assert strange.error is not None
    assert strange.tempered is None
    assert len(strange.entity_ids) == 20
    spoilt = answered("perfect_reader", Exam(perturbation="noise", level=0.5))
    assert spoilt.error is not None


def test_entities_of_another_domain_are_answered_in_our_words() -> None:
    found = answered("lpf_robust", ELSEWHERE)
    assert found.error is None
    assert found.answers.shape == (20, 3)
    assert found.values == ("low", "medium", "high")


def test_a_method_that_is_none_and_settings_that_do_not_apply_are_rows() -> None:
    assert "['divination'] are none" in (answered("divination").error or "")
    assert "logistic_mean: cannot be changed, got ['rho']" in (
        answered("logistic_mean", rho=0.5).error or ""
    )
    assert "cannot be changed by ['colour']" in (answered("lpf_robust", colour=1).error or "")


def test_what_failed_to_fit_is_not_fitted_again_for_the_next_exam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "falling_method.py").write_text(
        "class Falls:\n"
        "    fits = 0\n"
        "    def fit(self, X, y):\n"
        "        Falls.fits += 1\n"
        "        raise RuntimeError('it fell')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    first, second = answered("falling_method:Falls"), answered("falling_method:Falls", ELSEWHERE)
    assert first.error == second.error == "RuntimeError: it fell"
    assert (len(first.labels), len(second.labels)) == (18, 20)
    assert sys.modules["falling_method"].Falls.fits == 1


def test_paper_mode_starts_from_a_flat_prior() -> None:
    """With the domain's own prior it would say something else."""
    prior = bench().examples.dataset.schema[bench().predicate].prior
    assert max(prior) > min(prior)
    method = LpfVariant("lpf_paper", bench().model.runtime, {})
    fitted = method.fit(bench().train, bench().validation, bench().predicate, LESSON.seed)
    weighted = answered("lpf_paper").raw * prior
    weighted /= weighted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(bench().exam(Exam())), weighted, atol=1e-6)


def test_a_model_is_trained_once_for_all_seeds_of_other_methods() -> None:
    shelf = bench().shelf
    assert shelf.kept(LESSON).runtime.version == bench().model.runtime.version
    assert shelf.kept(replace(LESSON, seed=9)).runtime.version == bench().model.runtime.version
    with pytest.raises(StorageError):
        shelf.kept(replace(LESSON, seed=9, entities=45))
    trained = bench().model
    assert [one.seed for one in trained.histories] == list(LESSON.seeds)
    assert sorted(trained.runtime.config.seeds) == list(LESSON.seeds)


def test_training_never_sees_who_is_asked() -> None:
    from lpf.experiments.models import _learned

    chosen = bench().examples.select(_learned(bench().examples))
    assert {entity.split for entity in chosen.dataset} == {"train", "validation"}


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 1}', b"[]"])
def test_a_damaged_model_ends_the_run_and_is_no_result(content: bytes, tmp_path: Path) -> None:
    bench().model  # noqa: B018 -- trains it
    folder = tmp_path / "copy"
    shutil.copytree(bench().shelf.folder.parent, folder)
    (file,) = (folder / "models").glob("*/training.json")
    file.write_bytes(content)
    broken = Workbench(LESSON, folder)
    with pytest.raises(ArtefactError, match="Remove the folder it is in and repeat") as told:
        broken.answered(Cell(LESSON, Exam(), "lpf_robust"))
    assert str(file) in str(told.value)
    assert broken.answered(Cell(LESSON, Exam(), "prior")).error is None


def test_no_networks_are_trained_for_methods_that_have_none(tmp_path: Path) -> None:
    lesson = Lesson(replace(DATA, changes=("entities=60", "items=1")))
    other = Workbench(lesson, tmp_path)
    for name in ("prior", "logistic_mean", "oracle"):
        assert other.answered(Cell(lesson, Exam(), name)).error is None
    assert not (tmp_path / "models").exists()


def test_a_protected_field_is_kept_with_the_answers(tmp_path: Path) -> None:
    rows = in_splits(entities(60), all_three)
    fields = ({"region": "north"}, {"region": 7}, {})
    rows = [{**row, "fields": fields[place % 3]} for place, row in enumerate(rows)]
    data = file_data(written(tmp_path / "regions.jsonl", rows), protected="region")
    lesson = Lesson(data, seeds=(1,))
    found = Workbench(lesson, tmp_path).answered(Cell(lesson, Exam(), "prior"))
    expected = {
        row["entity_id"]: (None if not row["fields"] else str(row["fields"]["region"]))
        for row in rows
    }
    assert found.groups == tuple(expected[name] for name in found.entity_ids)
    assert set(found.groups) == {"north", "7", None}


def test_an_exam_that_cannot_be_made_ends_the_run(tmp_path: Path) -> None:
    path = written(tmp_path / "two.jsonl", in_splits(entities(60), all_three))
    lesson = Lesson(file_data(path), seeds=(1,))
    with pytest.raises(DatasetError, match="has 2 values"):
        Workbench(lesson, kept_folder("exam")).answered(Cell(lesson, ELSEWHERE, "prior"))


class Hardliner:
    """Sure of what it says, and wrong now and then."""

    classes_: tuple[str, ...] = ()

    def fit(self, X: list[dict[str, object]], y: list[str]) -> None:
        self.classes_ = tuple(sorted(set(y)))

    def predict_proba(self, X: list[dict[str, object]]) -> list[list[float]]:
        return [[1.0] + [0.0] * (len(self.classes_) - 1) for _ in X]


def test_a_method_that_rules_out_what_is_true_keeps_its_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("hardliners")
    module.Hardliner = Hardliner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hardliners", module)
    answered = bench().answered(Cell(LESSON, Exam(), "hardliners:Hardliner"))
    assert answered.error is None
    assert answered.note is not None
    assert "no temperature" in answered.note
    assert set(np.unique(answered.answers)) == {0.0, 1.0}


def test_a_missing_package_ends_the_run_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    with pytest.raises(MissingPackageError, match="pip install"):
        bench().answered(Cell(LESSON, Exam(), "relational_graph"))
