"""A file evaluated: which cells that takes, what comes of them, and what is refused beforehand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answered_runs import a_crash, a_run

from lpf.errors import ConfigError, DatasetError
from lpf.experiments.answered import Answered, Costs
from lpf.experiments.cells import Cell
from lpf.experiments.comparisons import compare
from lpf.experiments.evaluable import FEWEST
from lpf.experiments.evaluation import (
    DEFAULT_METHODS,
    Evaluation,
    EvaluationPlan,
    Evaluator,
    evaluation_document,
    only,
)
from lpf.experiments.keeping import Keeper
from lpf.experiments.lessons import file_dataset
from lpf.experiments.measures import by_group
from lpf.experiments.running import Runner
from lpf.experiments.summaries import summarise
from lpf.metrics import nll
from small_lessons import Entity, all_three, entities, in_splits, written

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"
REAL = {
    # entities, folds, and whether there are claims
    "climate_fever": (1535, 5, True),
    "fever_dev_sr": (13092, 0, True),
    "fever_symmetric": (1420, 0, True),
    "peerread_iclr2017": (427, 0, False),
    "rumoureval2017": (325, 0, True),
    "scifact": (1109, 5, True),
}
METHODS = ("lpf_robust", "logistic_mean", "prior")
MEASURES = ("accuracy", "nll", "brier", "ece", "ece_null", "macro_f1", "runtime_ms")


def real_file(name: str) -> Path:
    path = SHARED_DATA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there: the public data sets are not part of the project")
    return path


def a_file(folder: Path, rows: Sequence[Entity] | None = None) -> Path:
    return written(folder / "parts.jsonl", rows or in_splits(entities(70), all_three))


def evaluator(folder: Path, rows: Sequence[Entity] | None = None, **changes: Any) -> Evaluator:
    return Evaluator.of(EvaluationPlan(a_file(folder, rows), **{"methods": METHODS, **changes}))


def answers_for(evaluator: Evaluator, cell: Cell, strength: float) -> Answered:
    """As a method of this strength would answer the cell, without one."""
    dataset, predicate = file_dataset(cell.lesson.data)  # type: ignore[arg-type]
    asked = dataset.select(dataset.positions("test").tolist())
    labels = asked.labels(predicate)
    generator = np.random.default_rng([cell.lesson.seed, len(cell.method)])
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
    keeper = Keeper(folder / "kept")
    for cell in evaluator.cells():
        keeper.keep(cell, answers_for(evaluator, cell, strength.get(cell.method, 1.0)))
    return evaluator.evaluation(keeper)


# Which cells.


def test_a_file_with_its_own_test_is_one_lesson_a_seed(tmp_path: Path) -> None:
    found = evaluator(tmp_path, seeds=(1, 2))
    cells = found.cells()
    assert found.folds == 0
    assert len(cells) == len(set(cells)) == 3 * 2
    assert len({cell.lesson for cell in cells}) == 2
    assert {cell.method for cell in cells} == set(METHODS)
    assert len({cell.lesson.seeds for cell in cells}) == 2  # other networks each time
    assert all(len(cell.lesson.seeds) == 7 for cell in cells)


def test_without_one_there_are_folds(tmp_path: Path) -> None:
    rows = in_splits(entities(70), lambda place: "dev" if place < 20 else "train")
    found = evaluator(tmp_path, rows, seeds=(1,), folds=3)
    assert (found.folds, len(found.cells())) == (3, 9)
    assert [part.fold for part in found.parts()] == [0, 1, 2]


def test_splits_can_be_forgotten(tmp_path: Path) -> None:
    found = evaluator(tmp_path, resplit=True, seeds=(1,))
    assert (found.folds, len(found.cells())) == (5, 15)


def test_a_moved_file_has_the_same_cells_and_a_changed_one_others(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    keys = [cell.key for cell in evaluator(tmp_path).cells()]
    assert [cell.key for cell in evaluator(tmp_path / "other").cells()] == keys
    rows = in_splits(entities(72), all_three)
    assert not set(keys) & {cell.key for cell in evaluator(tmp_path, rows).cells()}


def test_where_there_are_claims_they_are_asked_alone_as_well(tmp_path: Path) -> None:
    rows = [{**row, "claim": "It works."} for row in in_splits(entities(70), all_three)]
    assert evaluator(tmp_path, rows).methods == (*METHODS, "claim_only")
    assert evaluator(tmp_path, rows, methods=("claim_only",)).methods == ("claim_only",)


def test_a_relative_path_is_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    one, other = (
        Evaluator.of(EvaluationPlan(given, METHODS)).cells() for given in (path, Path(path.name))
    )
    assert one == other


# What is refused.


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"methods": ("lpf_robust", "divination")}, "methods: ['divination'] given"),
        ({"methods": ()}, "methods: none given"),
        ({"seeds": ()}, "seeds: must be different numbers"),
        ({"seeds": (1, 1)}, "seeds: must be different numbers, got [1, 1]"),
        ({"folds": 1}, "folds: must be at least 2, got 1"),
        ({"protected": "colour"}, "no entity has a field 'colour'; they have none"),
    ],
)
def test_a_plan_that_makes_no_sense(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        evaluator(tmp_path, **changes)
    assert told in str(error.value)


def test_too_few_entities(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=rf"has 59 labelled entities.*needs {FEWEST} at least"):
        evaluator(tmp_path, entities(59))
    assert evaluator(tmp_path, entities(60)).folds == 5
    unlabelled = [
        {**row, "label": None} if place else row for place, row in enumerate(entities(60))
    ]
    with pytest.raises(DatasetError, match="has 1 labelled"):
        evaluator(tmp_path, unlabelled)


def test_entities_without_the_value_asked_about_are_not_counted(tmp_path: Path) -> None:
    rows = [
        {**row, "label": None, "labels": {"a": row["label"]} if place < 40 else {"b": "x"}}
        for place, row in enumerate(entities(80))
    ]
    with pytest.raises(DatasetError, match="has 40 labelled entities"):
        evaluator(tmp_path, rows)


# What comes of it.


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


def test_folds_are_pooled_so_that_everybody_is_asked_once(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, entities(70), seeds=(1,), folds=3), tmp_path)
    (run,) = found.runs["prior"]
    assert sorted(run.entity_ids) == sorted(entity.entity_id for entity in found.dataset)
    assert evaluation_document(found)["asked"] == 70


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


def test_parts_are_means_over_the_repetitions_that_have_answers(tmp_path: Path) -> None:
    rows = [
        {**row, "fields": {"region": ("north", "south")[place // 10 % 2]}}
        for place, row in enumerate(in_splits(entities(70), all_three))
    ]
    found = made(evaluator(tmp_path, rows, seeds=(1, 2, 3), protected="region"), tmp_path)
    found.runs["prior"][2] = replace(found.runs["prior"][2], tempered=None, error="it broke")
    first, second = (by_group(run) for run in found.runs["prior"][:2])
    parts = found.parts("prior")
    assert [(part.name, part.entities) for part in parts] == [
        (part.name, part.entities) for part in first
    ]
    for part, one, two in zip(parts, first, second, strict=True):
        assert one.nll != two.nll
        assert part.nll == pytest.approx((one.nll + two.nll) / 2)
        assert part.accuracy == pytest.approx((one.accuracy + two.accuracy) / 2)
    assert found.parts("lpf_robust") != parts


def in_groups(rows: Sequence[Entity], size: int) -> list[Entity]:
    return [{**row, "group_id": f"g{place // size}"} for place, row in enumerate(rows)]


def test_entities_of_a_group_are_drawn_together(tmp_path: Path) -> None:
    apart, grouped = (
        made(evaluator(tmp_path, rows, seeds=(1,), folds=2), tmp_path)
        for rows in (entities(200), in_groups(entities(200), 10))
    )
    assert apart.group_of == {}
    assert grouped.group_of["e199"] == "g19"
    for found in (apart, grouped):
        runs, groups = found.runs, found.group_of
        assert found.summary("prior") == summarise(runs["prior"], groups=groups)
        others = {"logistic_mean": runs["logistic_mean"]}
        assert found.comparisons() == compare(runs["lpf_robust"], others, groups=groups)
    assert grouped.summary("prior") != summarise(grouped.runs["prior"])


def test_too_few_groups_have_neither_intervals_nor_p_values(tmp_path: Path) -> None:
    rows = [
        {**row, "group_id": row["split"]} if row["split"] == "test" else row
        for row in in_splits(entities(70), all_three)
    ]
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    assert found.cautions == (
        "Those asked about are of 1 group: too few for intervals and p-values, which need 6, since "
        "entities of one are alike.",
    )
    assert found.summary("prior").spreads["nll"].low is None
    (one,) = found.comparisons()
    assert one.note == "not compared: those asked about are of fewer than 6 groups"
    assert "nll_interval" not in evaluation_document(found)["methods"]["prior"]


def test_a_method_of_yours_that_is_edited_meanwhile_keeps_its_cells(
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


def test_who_wins_is_said_by_nll(tmp_path: Path) -> None:
    rows = in_splits(entities(400), all_three)
    asking = evaluator(tmp_path, rows, seeds=(1,))
    found = made(asking, tmp_path, lpf_robust=4.0, logistic_mean=0.0)
    (one,) = found.comparisons()
    assert one.name == "logistic_mean"
    assert one.difference is not None
    assert one.difference.high < 0  # below 0 robust LPF is better
    assert evaluator(tmp_path, rows, seeds=(1,), methods=("prior",)).methods == ("prior",)
    alone = made(evaluator(tmp_path, rows, seeds=(1,), methods=("prior",)), tmp_path)
    assert alone.comparisons() == []


# What is shared between those asked about and those learned from.


def with_text(row: Entity, text: str) -> Entity:
    (first, *rest) = row["evidence"]
    return {**row, "evidence": [{**first, "text": text}, *rest]}


def test_where_nothing_is_shared_nothing_is_said(tmp_path: Path) -> None:
    found = made(evaluator(tmp_path, seeds=(1,)), tmp_path)
    assert (found.cautions, found.unshared_ids) == ((), None)
    assert found.clean_summary("prior") is None
    assert "unshared" not in evaluation_document(found)["methods"]["prior"]


def test_shared_texts_are_said_and_the_others_judged_beside(tmp_path: Path) -> None:
    rows = in_splits(entities(70), all_three)
    asked = [place for place, row in enumerate(rows) if row["split"] == "test"]
    for place in (0, *asked[:4]):
        rows[place] = with_text(rows[place], "The same old story.")
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    assert found.unshared_ids == {rows[place]["entity_id"] for place in asked[4:]}
    (caution,) = found.cautions
    assert "4 of 14 entities share a text, claim or group" in caution
    assert "1 text of 'test' is also in 'train'" in caution
    (run,) = found.runs["prior"]
    clean = [name in found.unshared_ids for name in run.entity_ids]
    assert evaluation_document(found)["methods"]["prior"]["unshared"]["nll"] == pytest.approx(
        nll(run.answers[clean], run.labels[clean].astype(np.int64))
    )


def test_a_claim_that_is_anothers_evidence_is_shared_too(tmp_path: Path) -> None:
    rows = [
        {**row, "claim": f"Claim {place}."}
        for place, row in enumerate(in_splits(entities(70), all_three))
    ]
    asked = next(place for place, row in enumerate(rows) if row["split"] == "test")
    rows[asked]["claim"] = rows[0]["evidence"][0]["text"]
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    assert found.cautions == (
        "1 of 14 entities share a text, claim or group with those learned from. What is said of "
        "the others alone is told beside.",
    )


def test_where_all_share_there_are_no_others(tmp_path: Path) -> None:
    rows = [with_text(row, "The same.") for row in in_splits(entities(70), all_three)]
    found = made(evaluator(tmp_path, rows, seeds=(1,)), tmp_path)
    assert found.unshared_ids == frozenset()
    assert found.clean_summary("prior") is None
    assert "14 of 14 entities" in found.cautions[0]
    assert "the others" not in found.cautions[0]


def test_in_folds_the_fold_is_named(tmp_path: Path) -> None:
    rows = entities(70)
    for place in range(0, 40, 2):
        rows[place] = with_text(rows[place], "The same old story.")
    found = made(evaluator(tmp_path, rows, seeds=(1,), folds=3), tmp_path)
    assert "20 of 70 entities" in found.cautions[0]
    assert "(in fold " in found.cautions[0]


def test_only_some_entities_keep_their_answers() -> None:
    run = a_run(np.eye(3), [0, 1, 2], groups=("a", "b", "c"), temperature=(1.0, 0.0))
    found = only(run, frozenset({"e0", "e2"}))
    assert (found.entity_ids, found.groups) == (("e0", "e2"), ("a", "c"))
    np.testing.assert_array_equal(found.answers, np.eye(3)[[0, 2]])
    np.testing.assert_array_equal(found.labels, [0, 2])
    assert found.temperature == (1.0, 0.0)
    crashed = only(a_crash([0, 1, 2]), frozenset({"e1"}))
    assert (crashed.entity_ids, crashed.tempered) == (("e1",), None)


# Real files.


@pytest.mark.parametrize("name", REAL)
def test_real_files_can_be_evaluated(name: str) -> None:
    path = real_file(name)
    found = Evaluator.of(EvaluationPlan(path, seeds=(1,)))
    cells = found.cells()
    entities, folds, claims = REAL[name]
    assert (len(found.dataset), found.folds) == (entities, folds)
    methods = (*DEFAULT_METHODS, *(("claim_only",) if claims else ()))
    assert found.methods == methods
    assert len(cells) == len(methods) * max(folds, 1)
    dataset, predicate = file_dataset(found.parts()[-1])
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
    evaluation = found.evaluation(runner.keeper)
    document = evaluation_document(evaluation)
    assert document["asked"] == 712
    assert set(document["methods"]) == {"logistic_mean", "prior", "claim_only"}
    assert all(numbers["error"] is None for numbers in document["methods"].values())
    # Built so that the claim alone tells nothing; half of each label.
    assert document["methods"]["prior"]["accuracy"] == pytest.approx(0.5, abs=0.02)
    assert document["methods"]["claim_only"]["accuracy"] == pytest.approx(0.5, abs=0.06)
    assert document["methods"]["logistic_mean"]["accuracy"] > 0.5
