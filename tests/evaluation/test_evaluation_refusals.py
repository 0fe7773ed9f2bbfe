"""Files that cannot be evaluated are refused before anything is run, with advice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lpf.errors import ConfigError, DatasetError
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.plan import EvaluationPlan
from small_specs import Entity, all_three, entities, in_splits, written


def evaluator(folder: Path, rows: Sequence[Entity], **changes: Any) -> Evaluator:
    path = written(folder / "parts.jsonl", rows)
    return Evaluator.of(EvaluationPlan(path, ("lpf_robust", "prior"), **changes))


def refusal_message(folder: Path, rows: Sequence[Entity], **changes: Any) -> str:
    with pytest.raises((DatasetError, ConfigError)) as error:
        evaluator(folder, rows, **changes)
    return str(error.value)


def test_a_predicate_with_one_value_is_refused(tmp_path: Path) -> None:
    rows = [{**row, "label": "good"} for row in entities(70)]
    assert "all 70 entities have the value 'good' of 'label'" in refusal_message(tmp_path, rows)


def test_splits_of_only_some_entities_are_refused_without_resplit(tmp_path: Path) -> None:
    rows = in_splits(entities(70), lambda place: all_three(place) if place < 65 else None)
    message = refusal_message(tmp_path, rows)
    assert "5 of 70 entities have no split (first: e65)" in message
    assert "--resplit" in message
    assert evaluator(tmp_path, rows, resplit=True).folds == 5


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (3, ("folds: 5 folds were requested", "has 3 groups of entities", "Use 3 folds")),
        (1, ("has 1 group of entities", "Give some entities a test split")),
    ],
)
def test_more_folds_than_groups_are_refused(
    groups: int, expected: tuple[str, ...], tmp_path: Path
) -> None:
    rows = [
        {**row, "group_id": f"g{place // 2 % groups}"} for place, row in enumerate(entities(72))
    ]
    message = refusal_message(tmp_path, rows)
    assert all(part in message for part in expected), message


def test_as_many_folds_as_groups_are_accepted(tmp_path: Path) -> None:
    rows = [{**row, "group_id": f"g{place // 2 % 5}"} for place, row in enumerate(entities(70))]
    assert len(evaluator(tmp_path, rows).fold_datasets) == 5


def test_a_file_without_validation_entities_is_refused(tmp_path: Path) -> None:
    """One group cannot be in two splits."""
    rows = [
        {**row, "group_id": "g", "split": "train"} if place < 50 else {**row, "split": "test"}
        for place, row in enumerate(entities(70))
    ]
    message = refusal_message(tmp_path, rows)
    assert "'validation' has no entities" in message
    assert "--resplit evaluates it in folds" in message
    assert "fold 1" not in message


@pytest.mark.parametrize(("split", "place"), [("train", 0), ("dev", 1)])
def test_a_split_that_lacks_a_value_is_refused(split: str, place: int, tmp_path: Path) -> None:
    rows = [
        {**row, "label": "good"} if row["split"] == split else row
        for row in in_splits(entities(70), all_three)
    ]
    assert (
        f"{('train', 'validation')[place]!r} has no entity of the value 'bad'"
        in refusal_message(tmp_path, rows)
    )


def test_test_entities_may_lack_a_value(tmp_path: Path) -> None:
    rows = [
        {**row, "label": "good"} if row["split"] == "test" else row
        for row in in_splits(entities(70), all_three)
    ]
    assert evaluator(tmp_path, rows).folds == 0


def test_the_fold_that_lacks_a_value_is_named(tmp_path: Path) -> None:
    """Three of a value in all: somewhere none is left to validate on."""
    rows = [
        {**row, "label": "good" if place > 2 else "bad"} for place, row in enumerate(entities(70))
    ]
    message = refusal_message(tmp_path, rows)
    assert ", fold 1 of 5: the training and validation entities do not suffice: " in message
    assert "of the value 'bad'" in message


def test_the_parts_are_read_once(tmp_path: Path) -> None:
    found = evaluator(tmp_path, entities(70))
    assert found.fold_datasets is found.fold_datasets
    asked = sorted(e.entity_id for one in found.fold_datasets for e in one if e.split == "test")
    assert asked == sorted(entity.entity_id for entity in found.dataset)
