"""Test entities: of the file, new ones of the same or another domain, with changed evidence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from split_entities import ids

from lpf.datasets import Dataset
from lpf.domains import load_domain, perfect_answers
from lpf.errors import ConfigError, DatasetError
from lpf.evaluation.spec_datasets import eval_dataset, file_dataset, train_dataset
from lpf.evaluation.specs import DomainData, EvalSpec, TrainSpec
from small_specs import TRAIN_SPEC, Reworded, all_three, entities, file_data, in_splits, written

PREDICATE = "compliance_level"


@pytest.fixture(scope="module")
def domain() -> Dataset:
    return train_dataset(TRAIN_SPEC)[0]


def test_the_train_specs_own_test_entities_are_used(domain: Dataset) -> None:
    asked = eval_dataset(EvalSpec(), domain, PREDICATE)
    assert {entity.entity_id for entity in asked} == ids(domain, "test")


def test_new_entities_of_a_domain(domain: Dataset) -> None:
    eval_spec = EvalSpec(DomainData("compliance", seed=1000, changes=("items=3",)), entities=25)
    asked = eval_dataset(eval_spec, domain, PREDICATE)
    assert len(asked) == 25
    assert asked == eval_dataset(eval_spec, domain, PREDICATE)
    learned = {
        item.text for entity in domain if entity.split == "train" for item in entity.evidence
    }
    assert sum(item.text in learned for item in asked.items) < len(list(asked.items)) / 10
    assert perfect_answers(asked).shape == (25, 3)


def test_only_the_best_items_are_used(domain: Dataset) -> None:
    whole = eval_dataset(EvalSpec(), domain, PREDICATE)
    cut = eval_dataset(EvalSpec(top_k=2), domain, PREDICATE)
    assert [len(entity.evidence) for entity in cut] == [2] * len(whole)
    for before, after in zip(whole, cut, strict=True):
        assert all(item in before.evidence for item in after.evidence)
        assert (before.labels, after.truth) == (after.labels, None)


def test_a_change_is_applied_to_the_test_entities(domain: Dataset) -> None:
    whole = eval_dataset(EvalSpec(), domain, PREDICATE)
    change = Reworded(1)
    assert eval_dataset(EvalSpec(change=change), domain, PREDICATE) == change.apply(
        whole, PREDICATE
    )


def test_a_change_comes_before_the_best_items_are_chosen(domain: Dataset) -> None:
    cut = eval_dataset(EvalSpec(change=Reworded(9, "all alike"), top_k=2), domain, PREDICATE)
    assert {item.text for item in cut.items} == {"all alike"}
    assert {len(entity.evidence) for entity in cut} == {2}


def test_top_k_below_one_is_refused(domain: Dataset) -> None:
    with pytest.raises(ConfigError, match="top_k: must be 1 or above, got 0"):
        eval_dataset(EvalSpec(top_k=0), domain, PREDICATE)


def test_labels_of_another_domain_are_mapped_by_position(domain: Dataset) -> None:
    eval_spec = EvalSpec(DomainData("legal", seed=1000), entities=30)
    asked = eval_dataset(eval_spec, domain, PREDICATE)
    theirs = load_domain("legal")
    native = eval_dataset(
        eval_spec, train_dataset(TrainSpec(DomainData("legal")))[0], theirs.predicate
    )
    np.testing.assert_array_equal(asked.labels(PREDICATE), native.labels(theirs.predicate))
    assert asked.schema == domain.schema
    assert [item.text for item in asked.items] == [item.text for item in native.items]
    assert all(set(entity.labels) == {PREDICATE} for entity in asked)
    assert all(entity.truth is None and not entity.facts for entity in asked)
    assert all(item.truth is None and not item.labels for item in asked.items)


def test_a_domain_with_more_values_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "two.jsonl", in_splits(entities(60), all_three))
    train_spec, predicate = file_dataset(file_data(path))
    with pytest.raises(DatasetError, match="has 2 values"):
        eval_dataset(EvalSpec(DomainData("legal"), entities=10), train_spec, predicate)
