"""Which entities tell how sure answers are, and that they are used for nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from training_examples import LEVEL, OUTCOME, SMALL, made_up

from lpf.datasets import Dataset, assign_splits
from lpf.metrics.prediction_sets import sets, surprise
from lpf.training import Examples, TrainingConfig, train_small
from lpf.training.fitting import answers
from lpf.training.held_out import (
    FEWEST_TO_SHARE,
    PARTS,
    apart,
    as_given,
    held_out_answers,
    hold_apart,
    is_learned,
)
from lpf.training.lexical import with_logits
from lpf.training.trainer import Trainer
from lpf.types import QueryOptions

QUICK = replace(SMALL, model="best", aggregator=None, max_epochs=3)


def with_groups(examples: Examples, groups: list[str | None]) -> Examples:
    entities = tuple(
        replace(one, group_id=group) for one, group in zip(examples.dataset, groups, strict=True)
    )
    return replace(examples, dataset=replace(examples.dataset, entities=entities))


def without_splits(dataset: Dataset) -> Dataset:
    return dataset.in_splits([None] * len(dataset))


def test_a_third_of_enough_validation_entities_is_held_apart() -> None:
    given = made_up(2400, items=1)
    before = len(given.dataset.positions("validation"))
    assert before >= FEWEST_TO_SHARE
    held = apart(hold_apart(given, ("level",)))
    assert held is not None
    assert abs(len(held.dataset) - before / PARTS) <= 2
    shares = [
        np.bincount(one.labels("level"), minlength=3) / len(one)
        for one in (held.dataset, given.dataset)
    ]
    np.testing.assert_allclose(*shares, atol=0.02)


def test_few_validation_entities_are_left_alone() -> None:
    given = made_up(600, items=1)
    assert len(given.dataset.positions("validation")) < FEWEST_TO_SHARE
    assert hold_apart(given, ("level",)) is given
    assert apart(given) is None


def test_groups_stay_together() -> None:
    given = made_up(2400, items=1)
    groups: list[str | None] = [None] * 2400
    validation = given.dataset.positions("validation").tolist()
    for place, entity in enumerate(validation):
        groups[entity] = f"G{place // 4}"
    rest = hold_apart(with_groups(given, groups), ("level",)).dataset
    sides = {is_side: {one.group_id for one in rest if (one.split is None) == is_side}
             for is_side in (True, False)}  # fmt: skip
    assert len(sides[True]) > 20
    assert not sides[True] & sides[False]


def test_entities_of_few_groups_are_left_alone() -> None:
    given = made_up(2400, items=1)
    grouped = with_groups(given, [f"G{place % 20}" for place in range(2400)])
    assert hold_apart(grouped, ("level",)) is grouped


def test_the_data_set_as_it_was_given() -> None:
    given = made_up(2400, items=1)
    rest = hold_apart(given, ("level",))
    assert rest.dataset.digest != given.dataset.digest
    assert as_given(rest.dataset).digest == given.dataset.digest
    assert sum(map(is_learned, rest.dataset)) < sum(map(is_learned, given.dataset))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Examples:
    """60 validation entities are enough here, so that 20 are held apart."""
    monkeypatch.setattr("lpf.training.held_out.FEWEST_TO_SHARE", 60)
    return made_up(400, items=1, noise=1.2)


def test_what_is_held_apart_is_used_for_nothing_else(large: Examples) -> None:
    """With other features and labels of these entities, all else of the model is the same."""
    split = hold_apart(large, ("level",))
    places = np.flatnonzero([one.split is None for one in split.dataset])
    features = large.features.copy()
    features[split.rows(places)] = -features[split.rows(places)]
    changed = replace(large, features=features)
    models = [Trainer(one, "made-up", ("level",), QUICK, (1, 2)).run() for one in (large, changed)]
    first, second = (one.tensors for one in models)
    assert first.keys() == second.keys()
    for name in first:
        same = np.array_equal(first[name], second[name])
        assert same != name.startswith("held_out."), name
    configs = [one.config for one in models]
    assert configs[0] == configs[1]
    assert configs[0].held_out["level"].kind == "apart"
    assert models[0].scores[0].by_predicate["level"] == models[1].scores[0].by_predicate["level"]
    assert "held apart" in models[0].card.data
    assert models[0].card.data_digest == large.dataset.digest[:16]


def test_the_answers_held_apart_are_those_of_the_finished_model(large: Examples) -> None:
    trained = Trainer(large, "made-up", ("level",), QUICK, (1, 2)).run()
    runtime = trained.runtime()
    held = runtime.held_out["level"]
    chosen = apart(hold_apart(large, ("level",)))
    assert chosen is not None
    chosen = with_logits(chosen, runtime.words)
    found = answers(runtime, large.dataset.schema, "level", chosen, QueryOptions())
    labels = chosen.dataset.labels("level")
    wanted = np.sort(surprise(found)[np.arange(len(labels)), labels])
    assert np.array_equal(np.sort(held.label_surprise), wanted)
    assert held.right.mean() == (found.argmax(axis=1) == labels).mean()


def test_with_few_labels_held_out_folds_tell_it() -> None:
    given = made_up(45, splits=False)
    trained = train_small(given, "made-up", ("level",), QUICK, (1, 2))
    held = trained.runtime().held_out["level"]
    assert (held.kind, len(held)) == ("shared", 45)
    accuracy = trained.scores_on("out of fold")["level"].accuracy
    assert held.right.mean() == pytest.approx(accuracy)


def test_every_predicate_has_its_own() -> None:
    given = made_up(120, items=1, predicates=(LEVEL, OUTCOME))
    trained = Trainer(given, "made-up", ("level", "outcome"), QUICK, (1, 2)).run()
    runtime = trained.runtime()
    assert {name: one.values for name, one in runtime.held_out.items()} == {
        "level": 3,
        "outcome": 2,
    }


def test_networks_as_published_share_all_validation_entities(large: Examples) -> None:
    config = replace(SMALL, aggregator=None, max_epochs=1)
    trained = Trainer(large, "made-up", ("level",), config, (1, 2)).run()
    held = trained.runtime().held_out["level"]
    assert (held.kind, len(held)) == ("shared", len(large.dataset.positions("validation")))


def test_groups_are_numbered_and_rows_shuffled() -> None:
    given = made_up(90, items=1)
    grouped = with_groups(given, ["A"] * 30 + ["B"] * 30 + [None] * 30)
    labels = grouped.dataset.labels("level")
    distribution = np.full((90, 3), 0.1) + 0.7 * np.eye(3)[labels]
    held = held_out_answers("shared", distribution, grouped.dataset, "level")
    assert sorted(np.bincount(held.groups).tolist()) == [1] * 30 + [30, 30]
    assert held.right.all()
    assert not np.array_equal(held.labels, labels)


@pytest.mark.slow
def test_sets_of_trained_models_cover_new_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data sets with a model each, and 600 entities that it has not seen: the mean coverage is the
    one asked for."""
    monkeypatch.setattr("lpf.training.held_out.FEWEST_TO_SHARE", 200)
    monkeypatch.setattr("lpf.training.held_out.PARTS", 2)
    covered: dict[float, list[float]] = {0.8: [], 0.9: [], 0.95: []}
    by_value = []
    for seed in range(30):
        given = made_up(1200, items=1, noise=2.2, seed=seed)
        learned, asked = given.select(np.arange(600)), given.select(np.arange(600, 1200))
        splits = ["validation" if place % 3 == 0 else "train" for place in range(600)]
        learned = replace(learned, dataset=learned.dataset.in_splits(splits))
        runtime = Trainer(learned, "made-up", ("level",), QUICK, (1,)).run().runtime()
        held = runtime.held_out["level"]
        assert (held.kind, len(held)) == ("apart", 100)
        asked = with_logits(asked, runtime.words)
        schema, labels = asked.dataset.schema, asked.dataset.labels("level")
        found = surprise(answers(runtime, schema, "level", asked, QueryOptions()))
        rows = np.arange(len(labels))
        for coverage, shares in covered.items():
            members = sets(found, held.cutoffs(coverage, False))
            shares.append(members[rows, labels].mean())
        own = sets(found, held.cutoffs(0.9, True))[rows, labels]
        by_value.append([own[labels == value].mean() for value in range(3)])
    for coverage, shares in covered.items():  # the standard deviation of one is at most 0.044
        assert abs(np.mean(shares) - coverage) < 0.025, (coverage, np.mean(shares))
    found_by_value = np.mean(by_value, axis=0)  # k = 28 to 37 of 30 to 40 entities: 0.9 to 0.935
    assert (found_by_value > 0.87).all(), found_by_value
    assert (found_by_value < 0.96).all(), found_by_value


@pytest.mark.slow
@pytest.mark.parametrize(("entities", "few"), [(45, True), (150, False)])
def test_sets_from_shared_entities_cover_about_as_many(entities: int, few: bool) -> None:
    """From held-out folds: not exact, since folds chose settings and the model is fitted to all."""
    covered: dict[float, list[float]] = {0.8: [], 0.9: []}
    for seed in range(25):
        given = made_up(entities + 500, items=1, noise=2.2, seed=seed, splits=False)
        learned = given.select(np.arange(entities))
        asked = given.select(np.arange(entities, entities + 500))
        if few:
            trained = train_small(learned, "made-up", ("level",), QUICK, (1,))
        else:
            dataset = assign_splits(learned.dataset, "level", seed=seed)
            learned = replace(learned, dataset=dataset)
            trained = Trainer(learned, "made-up", ("level",), QUICK, (1,)).run()
        runtime = trained.runtime()
        assert runtime.held_out["level"].kind == "shared"
        asked = with_logits(asked, runtime.words)
        labels = asked.dataset.labels("level")
        found = surprise(answers(runtime, asked.dataset.schema, "level", asked, QueryOptions()))
        for coverage, shares in covered.items():
            members = sets(found, runtime.held_out["level"].cutoffs(coverage, False))
            shares.append(members[np.arange(500), labels].mean())
    print(entities, {coverage: round(float(np.mean(one)), 3) for coverage, one in covered.items()})
    for coverage, shares in covered.items():
        assert abs(np.mean(shares) - coverage) < 0.04, (coverage, np.mean(shares))


def test_training_needs_no_apart_entities_for_few_epochs() -> None:
    """``TrainingConfig`` of the paper trains networks, so nothing is held apart."""
    assert TrainingConfig.paper().model == "networks"
