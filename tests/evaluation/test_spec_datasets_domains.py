"""Training entities of a domain: all of them, or fewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from split_entities import ids, split_sizes

from lpf.datasets import Dataset
from lpf.evaluation.spec_datasets import train_dataset
from small_specs import DATA, TRAIN_SPEC

PREDICATE = "compliance_level"


@pytest.fixture(scope="module")
def domain() -> Dataset:
    return train_dataset(TRAIN_SPEC)[0]


def test_a_domain_comes_in_three_splits_and_with_its_predicate(domain: Dataset) -> None:
    assert train_dataset(TRAIN_SPEC)[1] == PREDICATE
    assert split_sizes(domain) == {"train": 84, "validation": 18, "test": 18}
    assert domain.digest == train_dataset(replace(TRAIN_SPEC, seed=9))[0].digest
    other = train_dataset(replace(TRAIN_SPEC, data=replace(DATA, seed=2)))[0]
    assert other.digest != domain.digest


def test_fewer_entities_keep_shares_and_validation_and_are_among_more(domain: Dataset) -> None:
    sizes = (9, 30, 60)
    few = {size: train_dataset(replace(TRAIN_SPEC, entities=size))[0] for size in sizes}
    shares = np.bincount(domain.labels(PREDICATE)[domain.positions("train")]) / 84
    for size, dataset in few.items():
        labels = dataset.labels(PREDICATE)[dataset.positions("train")]
        assert len(labels) == size
        assert np.abs(np.bincount(labels, minlength=3) - size * shares).max() <= 1.5
        assert ids(dataset, "validation") == ids(domain, "validation")
        assert ids(dataset, "test") == ids(domain, "test")
    assert ids(few[9], "train") < ids(few[30], "train") < ids(few[60], "train")
    other = train_dataset(replace(TRAIN_SPEC, entities=30, seed=2))[0]
    assert ids(other, "train") != ids(few[30], "train")


@pytest.mark.parametrize("enough", [84, 500])
def test_a_limit_of_all_entities_changes_nothing(enough: int, domain: Dataset) -> None:
    assert train_dataset(replace(TRAIN_SPEC, entities=enough))[0] == domain
