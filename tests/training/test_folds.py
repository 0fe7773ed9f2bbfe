from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from training_examples import LEVEL, OUTCOME, made_up

from lpf.errors import DatasetError
from lpf.training import Examples
from lpf.training.folds import Folds


def one_predicate_each(entities: int = 40) -> Examples:
    """Every other entity has a level, the rest an outcome; two neighbours of a kind are a group."""
    both = made_up(entities, predicates=(LEVEL, OUTCOME), shares=(0.5, 0.2, 0.3), splits=False)
    kept = [
        replace(
            entity,
            labels={name: entity.labels[name] for name in [("level", "outcome")[place % 2]]},
            group_id=f"g{place // 4 * 2 + place % 2}",
        )
        for place, entity in enumerate(both.dataset)
    ]
    return replace(both, dataset=replace(both.dataset, entities=tuple(kept)))


def test_every_fold_leaves_all_values_of_all_predicates_for_training() -> None:
    examples = one_predicate_each()
    folds = Folds(examples, ("level", "outcome"))
    for name, values in (("level", 3), ("outcome", 2)):
        labels = examples.dataset.labels(name)
        for held_out, training in zip(folds.held_out, folds.training, strict=True):
            assert set(labels[training]) == {-1, *range(values)}
            assert (labels[held_out] >= 0).any()
    together = np.concatenate(folds.held_out)
    assert sorted(together.tolist()) == list(range(len(examples.dataset)))


def test_no_group_is_in_two_folds_even_with_missing_labels() -> None:
    examples = one_predicate_each()
    groups = [entity.group_id for entity in examples.dataset]
    folds = Folds(examples, ("level", "outcome"))
    for held_out, training in zip(folds.held_out, folds.training, strict=True):
        assert {groups[place] for place in held_out}.isdisjoint(groups[place] for place in training)


def test_one_group_alone_is_refused() -> None:
    examples = made_up(12, splits=False)
    alike = tuple(replace(entity, group_id="all") for entity in examples.dataset)
    lumped = replace(examples, dataset=replace(examples.dataset, entities=alike))
    with pytest.raises(
        DatasetError, match=r"all 12 entities are in one group.*Nothing was trained"
    ):
        Folds(lumped, ("level",))
