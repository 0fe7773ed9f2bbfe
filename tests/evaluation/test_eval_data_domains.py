"""Who is learned from: all of a domain, or fewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from split_entities import ids, split_sizes

from lpf.datasets import Dataset
from lpf.evaluation.eval_data import lesson_dataset
from small_specs import DATA, LESSON

PREDICATE = "compliance_level"


@pytest.fixture(scope="module")
def domain() -> Dataset:
    return lesson_dataset(LESSON)[0]


def test_a_domain_comes_in_three_splits_and_with_its_predicate(domain: Dataset) -> None:
    assert lesson_dataset(LESSON)[1] == PREDICATE
    assert split_sizes(domain) == {"train": 84, "validation": 18, "test": 18}
    assert domain.digest == lesson_dataset(replace(LESSON, seed=9))[0].digest
    other = lesson_dataset(replace(LESSON, data=replace(DATA, seed=2)))[0]
    assert other.digest != domain.digest


def test_fewer_entities_keep_shares_and_validation_and_are_among_more(domain: Dataset) -> None:
    sizes = (9, 30, 60)
    few = {size: lesson_dataset(replace(LESSON, entities=size))[0] for size in sizes}
    shares = np.bincount(domain.labels(PREDICATE)[domain.positions("train")]) / 84
    for size, dataset in few.items():
        labels = dataset.labels(PREDICATE)[dataset.positions("train")]
        assert len(labels) == size
        assert np.abs(np.bincount(labels, minlength=3) - size * shares).max() <= 1.5
        assert ids(dataset, "validation") == ids(domain, "validation")
        assert ids(dataset, "test") == ids(domain, "test")
    assert ids(few[9], "train") < ids(few[30], "train") < ids(few[60], "train")
    other = lesson_dataset(replace(LESSON, entities=30, seed=2))[0]
    assert ids(other, "train") != ids(few[30], "train")


@pytest.mark.parametrize("enough", [84, 500])
def test_as_many_as_there_are_is_all(enough: int, domain: Dataset) -> None:
    assert lesson_dataset(replace(LESSON, entities=enough))[0] == domain
