"""Evaluating a file: the cells it needs, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_evaluations import METHODS, a_file, evaluator, made

from lpf.errors import ConfigError, DatasetError
from lpf.evaluation.data_checks import FEWEST
from lpf.evaluation.document import evaluation_document
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.plan import DEFAULT_METHODS, EvaluationPlan
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.runner import Runner
from lpf.evaluation.spec_datasets import file_dataset
from lpf.reading import stance_is_installed
from lpf.schema import Schema
from small_specs import all_three, entities, in_splits

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"
VERDICTS = ("fever_dev_sr", "fever_symmetric", "rumoureval2017", "scifact")
REAL = {
    # entities, folds, and whether there are claims or questions
    "climate_fever": (1535, 5, True),
    "fever_dev_sr": (13092, 0, True),
    "fever_symmetric": (1420, 0, True),
    "peerread_iclr2017": (427, 0, True),
    "rumoureval2017": (325, 0, True),
    "scifact": (1109, 5, True),
}


def test_a_file_with_a_test_split_has_one_train_spec_per_seed(tmp_path: Path) -> None:
    found = evaluator(tmp_path, seeds=(1, 2))
    cells = found.cells()
    assert found.folds == 0
    assert len(cells) == len(set(cells)) == 3 * 2
    assert len({cell.train_spec for cell in cells}) == 2
    assert {cell.method for cell in cells} == set(METHODS)
    assert len({cell.train_spec.seeds for cell in cells}) == 2  # other networks each time
    assert all(len(cell.train_spec.seeds) == 7 for cell in cells)


def test_a_file_without_a_test_split_has_folds(tmp_path: Path) -> None:
    rows = in_splits(entities(70), lambda place: "dev" if place < 20 else "train")
    found = evaluator(tmp_path, rows, seeds=(1,), folds=3)
    assert (found.folds, len(found.cells())) == (3, 9)
    assert [part.fold for part in found.fold_data()] == [0, 1, 2]


def test_splits_can_be_ignored(tmp_path: Path) -> None:
    found = evaluator(tmp_path, resplit=True, seeds=(1,))
    assert (found.folds, len(found.cells())) == (5, 15)


def test_a_moved_file_has_the_same_cells_and_a_changed_one_others(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    keys = [cell.key for cell in evaluator(tmp_path).cells()]
    assert [cell.key for cell in evaluator(tmp_path / "other").cells()] == keys
    rows = in_splits(entities(72), all_three)
    assert not set(keys) & {cell.key for cell in evaluator(tmp_path, rows).cells()}


def test_claim_only_is_added_if_there_are_claims(tmp_path: Path) -> None:
    rows = [{**row, "claim": "It works."} for row in in_splits(entities(70), all_three)]
    assert evaluator(tmp_path, rows).methods == (*METHODS, "claim_only")
    assert evaluator(tmp_path, rows, methods=("claim_only",)).methods == ("claim_only",)


def test_a_description_in_the_schema_is_read_as_the_claim(tmp_path: Path) -> None:
    """As if every entity had it; an entity's own claim stays."""
    rows = in_splits(entities(72), all_three)
    rows[0]["claim"] = "It works."
    plain = evaluator(tmp_path, rows).source
    (predicate,) = plain.schema
    question = "Is the thing any good?"
    described = Schema((replace(predicate, description=question),))
    found = Evaluator.of(EvaluationPlan(replace(plain, schema=described), METHODS))
    claims = [entity.claim for entity in found.source]
    assert claims == ["It works.", *[question] * 71]
    assert "claim_only" in found.methods
    assert found.digest != Evaluator.of(EvaluationPlan(plain, METHODS)).digest


def test_a_relative_path_is_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    one, other = (
        Evaluator.of(EvaluationPlan(given, METHODS)).cells() for given in (path, Path(path.name))
    )
    assert one == other


def test_editing_an_own_method_during_a_run_does_not_change_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    source = tmp_path / "edited_meanwhile.py"
    source.write_text("class Mine:\n    pass\n")
    plan = EvaluationPlan(a_file(tmp_path), ("edited_meanwhile:Mine",), seeds=(1,))
    asking = Evaluator.of(plan)
    before = asking.cells()
    source.write_text("class Mine:\n    another = True\n")
    assert asking.cells() == before
    assert Evaluator.of(plan).cells() != before


def test_a_named_transformer_is_added_under_its_name(tmp_path: Path) -> None:
    before = [cell.key for cell in evaluator(tmp_path, methods=(*METHODS, "transformer")).cells()]
    found = evaluator(tmp_path, model="bert-base-uncased")
    assert found.methods == (*METHODS, "transformer")
    settings = {cell.method: cell.settings for cell in found.cells()}
    assert settings["transformer"] == (("checkpoint", "bert-base-uncased"),)
    assert all(settings[name] == () for name in METHODS)
    keys = [cell.key for cell in found.cells()]
    assert len(set(keys) & set(before)) == len(before) * len(METHODS) / (len(METHODS) + 1)
    twice = evaluator(tmp_path, methods=("transformer",), model="bert-base-uncased")
    assert twice.methods == ("transformer",)


def test_a_transformer_is_loaded_only_if_answers_are_missing(tmp_path: Path) -> None:
    (tmp_path / "no-transformer").mkdir()
    asking = evaluator(tmp_path, seeds=(1,), model=str(tmp_path / "no-transformer"))
    store = ResultStore(tmp_path / "kept")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        asking.require_model(store)
    made(asking, tmp_path)
    asking.require_model(store)
    evaluator(tmp_path, seeds=(2,)).require_model(store)  # none is named


def test_a_named_transformer_is_shown_by_its_name(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, seeds=(1,), model="bert-base-uncased"), tmp_path)
    assert found.title("transformer") == "Fine-tuned bert-base-uncased"
    assert found.title("prior") == "Class shares"
    assert evaluation_document(found)["model"] == "bert-base-uncased"
    default = made(evaluator(tmp_path, seeds=(1,), methods=("transformer",)), tmp_path)
    assert default.title("transformer") == "BERT-style (MiniLM's top layer)"


def test_folds_are_pooled_and_every_entity_is_answered_once(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, entities(70), seeds=(1,), folds=3), tmp_path)
    (run,) = found.runs["prior"]
    assert sorted(run.entity_ids) == sorted(entity.entity_id for entity in found.dataset)
    assert evaluation_document(found)["asked"] == 70


# What is refused.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"methods": ("lpf_robust", "divination")},
            "methods: unknown methods ['divination']; choose from",
        ),
        ({"methods": ()}, "methods: no methods were given"),
        ({"seeds": ()}, "seeds: must be different numbers"),
        ({"seeds": (1, 1)}, "seeds: must be different numbers"),
        ({"folds": 1}, "folds: must be at least 2, got 1"),
        ({"protected": "colour"}, "no entity has a field 'colour'; they have none"),
        ({"predicate": "lable"}, "has a label of 'lable'; they have ['label']"),
        ({"model": " "}, "model: is empty"),
    ],
)
def test_an_invalid_plan_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        evaluator(tmp_path, **changes)
    assert message in str(error.value)


def test_too_few_entities(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=rf"has 59 labelled entities.*needs at least {FEWEST}"):
        evaluator(tmp_path, entities(59))
    assert evaluator(tmp_path, entities(60)).folds == 5
    unlabelled = [
        {**row, "label": None} if place else row for place, row in enumerate(entities(60))
    ]
    with pytest.raises(DatasetError, match="has 1 labelled"):
        evaluator(tmp_path, unlabelled)


def test_entities_without_a_label_of_the_predicate_are_not_counted(tmp_path: Path) -> None:
    rows = [
        {**row, "label": None, "labels": {"a": row["label"]} if place < 40 else {"b": "x"}}
        for place, row in enumerate(entities(80))
    ]
    with pytest.raises(DatasetError, match="has 40 labelled entities"):
        evaluator(tmp_path, rows)


# Real files.


def real_file(name: str) -> Path:
    path = SHARED_DATA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there: the public data sets are not part of the project")
    return path


@pytest.mark.parametrize("name", REAL)
def test_real_files_can_be_evaluated(name: str) -> None:
    path = real_file(name)
    found = Evaluator.of(EvaluationPlan(path, seeds=(1,)))
    cells = found.cells()
    entities, folds, claims = REAL[name]
    assert (len(found.dataset), found.folds) == (entities, folds)
    methods = (*DEFAULT_METHODS, *(("claim_only",) if claims else ()))
    if name in VERDICTS and stance_is_installed():
        methods = (*methods, "zero_label")
    assert found.methods == methods
    assert len(cells) == len(methods) * max(folds, 1)
    dataset, predicate = file_dataset(found.fold_data()[-1])
    sizes = [len(dataset.positions(split)) for split in ("train", "validation", "test")]
    assert min(sizes) >= 10
    values = range(len(dataset.schema[predicate].values))
    for split in ("train", "validation", "test"):
        labels = dataset.labels(predicate)[dataset.positions(split)]  # type: ignore[arg-type]
        assert set(labels.tolist()) == set(values)


@pytest.mark.slow
def test_fever_symmetric_is_evaluated(tmp_path: Path) -> None:
    plan = EvaluationPlan(real_file("fever_symmetric"), ("logistic_mean", "prior"), seeds=(1,))
    found = Evaluator.of(plan)
    runner = Runner(tmp_path, workers=1)
    runner.run(found.cells())
    evaluation = found.evaluation(runner.store)
    document = evaluation_document(evaluation)
    assert document["asked"] == 712
    assert set(document["methods"]) == {"logistic_mean", "prior", "claim_only"}
    assert all(numbers["error"] is None for numbers in document["methods"].values())
    # Built so that the claim alone tells nothing; half of each label.
    assert document["methods"]["prior"]["accuracy"] == pytest.approx(0.5, abs=0.02)
    assert document["methods"]["claim_only"]["accuracy"] == pytest.approx(0.5, abs=0.06)
    assert document["methods"]["logistic_mean"]["accuracy"] > 0.5
