"""Entities of few groups: what holds within the known ones may not hold in the next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from training_examples import SMALL, VALUES, made_up

from lpf.datasets import assign_splits
from lpf.training import Examples, Trained, Trainer

BEST = replace(SMALL, model="best", aggregator=None)
GROUPS = 10


def grouped(misled: int = 0) -> Examples:
    """Entities in ten groups; in some of them labels are one value higher than texts say."""
    examples = made_up(160, noise=0.4, splits=False)
    entities = []
    for place, entity in enumerate(examples.dataset):
        value = VALUES.index(entity.labels["level"])
        shown = (value + 1) % len(VALUES) if place % GROUPS < misled else value
        name = f"site {place % GROUPS}"
        entities.append(replace(entity, group_id=name, labels={"level": VALUES[shown]}))
    dataset = replace(examples.dataset, entities=tuple(entities))
    return replace(examples, dataset=assign_splits(dataset, "level", seed=1))


def train(examples: Examples) -> Trained:
    return Trainer(examples, "hash", ("level",), BEST, (1, 2)).run()


@pytest.fixture(scope="module")
def same() -> Trained:
    return train(grouped())


@pytest.fixture(scope="module")
def different() -> Trained:
    return train(grouped(misled=4))


def test_what_holds_in_every_group_is_trusted(same: Trained) -> None:
    assert same.fitted["level"].robust.parameters.trust >= 0.9
    assert same.held_out.by_predicate["level"].accuracy > 0.9


def test_what_differs_between_groups_is_trusted_less(different: Trained) -> None:
    robust = different.fitted["level"].robust
    assert robust.parameters.trust < 0.7
    assert robust.groups is not None
    assert robust.groups < GROUPS  # a test group is not among them
    # Worse than the prior by chance at most.
    scores = different.held_out.by_predicate["level"]
    assert scores.nll < scores.prior_nll + 0.1


def test_few_validation_groups_do_not_choose_networks(same: Trained) -> None:
    assert same.choice is not None
    assert same.is_linear
    assert same.choice.networks_nll is None


def test_a_warning_and_the_card_say_it(same: Trained, different: Trained) -> None:
    for trained in (same, different):
        groups = trained.fitted["level"].robust.groups
        assert any(f"{groups} groups" in warning for warning in trained.warnings)
    assert any("trust" in note for note in different.card.notes)


def test_without_groups_nothing_changes() -> None:
    trained = train(made_up(160, noise=0.4))
    robust = trained.fitted["level"].robust
    assert robust.groups is None
    assert robust.parameters.trust == 1.0
    assert not any("group" in warning for warning in trained.warnings)


def test_a_large_group_does_not_decide_the_regression() -> None:
    """100 entities of one value in one group, against 60 in ten groups."""
    examples = grouped()
    large = made_up(100, seed=3, noise=0.4, shares=(1.0, 0.0, 0.0), splits=False)
    entities = [
        replace(one, entity_id=f"L{place}", group_id="large")
        for place, one in enumerate(large.dataset)
    ]
    entities = [
        replace(
            one,
            labels={"level": "high"},
            evidence=tuple(
                replace(item, evidence_id=f"L{item.evidence_id}") for item in one.evidence
            ),
        )
        for one in entities
    ]
    dataset = replace(examples.dataset, entities=(*examples.dataset.entities, *entities))
    joined = Examples(
        assign_splits(dataset.in_splits([None] * len(dataset)), "level", seed=1),
        np.concatenate([examples.features, large.features]),
        np.concatenate([examples.credibility, large.credibility]),
        np.concatenate([examples.groups, large.groups]),
    )
    trained = train(joined)
    shares = np.array(trained.config.head("level").training_shares)
    assert shares.max() < 0.6
