from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_examples import LEVEL, OUTCOME, SMALL, labelled, made_up

from lpf.errors import DatasetError, NonFiniteError
from lpf.model.artefact import load_model
from lpf.training import Examples, make_examples, train_small
from lpf.training.fitting import answers, evaluate
from lpf.training.training_warnings import wilson
from lpf.types import QueryOptions

SEEDS = (1, 2, 3)
LONG = replace(SMALL, max_epochs=40)


def many_sided(entities: int, seed: int = 1, signal: float = 0.12) -> Examples:
    """Hundreds of numbers an item, each with a little to say."""
    examples = made_up(entities, 4, seed=seed, splits=False)
    labels, drawn = examples.dataset.item_labels("level"), np.random.default_rng(seed)
    centres = signal * np.random.default_rng(0).standard_normal((3, 400))
    features = centres[labels] + drawn.standard_normal((len(labels), 400))
    return replace(examples, features=features.astype(np.float32))


def test_a_model_of_a_few_entities_warns_how_far_to_trust_it() -> None:
    few = made_up(9, noise=0.4, splits=False)
    model = train_small(few, "hash", ("level",), LONG, SEEDS)
    scores = model.scores_on("out of fold")["level"]
    assert scores.entities == 9
    warnings = " ".join(model.warnings)
    assert "unseen entities were answered correctly" in warnings
    assert "9 entities only" in warnings
    assert model.config.seeds == (1, 2)
    assert model.config.calibrated_on == {"level": 9}
    more = made_up(60, seed=3, noise=0.4, splits=False)
    found = answers(model.runtime(), few.dataset.schema, "level", more, QueryOptions())
    right = found.argmax(axis=1) == more.dataset.labels("level")
    assert right.mean() > 0.6


@pytest.mark.parametrize("model", ["networks", "best"])
def test_scores_out_of_fold_count_unfamiliar_texts_less(model: str) -> None:
    """As the model that answers does: of an entity whose texts are unlike all others, the prior is
    left."""
    few = made_up(30, noise=0.3, splits=False)
    features = np.pad(few.features, ((0, 0), (0, few.features.shape[1])))
    features[:3] = np.roll(features[:3], few.features.shape[1], axis=1)  # the first entity's
    few = replace(few, features=features)
    config = replace(LONG, model=model)
    less, full = (
        train_small(few, "hash", ("level",), replace(config, unfamiliar=one), SEEDS)
        for one in ("less", "full")
    )
    answered, sure = (one.fitted["level"].robust.held_out for one in (less, full))
    assert answered is not None
    assert sure is not None
    np.testing.assert_allclose(answered[0], 1 / 3, atol=1e-6)
    assert sure[0].max() > 0.34
    assert answered[1:].max(axis=1).mean() > 0.6
    assert less.scores_on("out of fold")["level"] != full.scores_on("out of fold")["level"]


@pytest.mark.parametrize("model", ["networks", "best"])
@pytest.mark.parametrize("unfamiliar", ["less", "full"])
def test_scores_out_of_fold_leave_out_texts_without_a_word(model: str, unfamiliar: str) -> None:
    """Their features are those of any other text here, so no distance could tell."""
    few = made_up(30, noise=0.3, splits=False)
    first, *others = few.dataset.entities
    blank = replace(first, evidence=tuple(replace(item, text="...") for item in first.evidence))
    dataset = replace(few.dataset, entities=(blank, *others))
    few = make_examples(dataset, few.features, None)
    config = replace(LONG, model=model, unfamiliar=unfamiliar)
    trained = train_small(few, "hash", ("level",), config, SEEDS)
    answered = trained.fitted["level"].robust.held_out
    assert answered is not None
    np.testing.assert_allclose(answered[0], 1 / 3, atol=1e-9)
    assert answered[1:].max(axis=1).mean() > 0.6
    found = answers(trained.runtime(), dataset.schema, "level", few, QueryOptions())
    np.testing.assert_allclose(found[0], 1 / 3, atol=1e-9)


def test_the_linear_model_is_chosen_for_few_entities_and_wide_features(tmp_path: Path) -> None:
    few = many_sided(45)
    ours = train_small(few, "hash", ("level",), replace(LONG, model="best"), SEEDS)
    plain = train_small(few, "hash", ("level",), LONG, SEEDS)
    assert ours.choice is not None
    assert ours.choice.is_linear
    assert plain.choice is None
    assert ours.config.encoder.hidden == ()
    assert ours.config.seeds == plain.config.seeds
    assert ours.network_seeds == frozenset()
    assert any("the model is linear (held-out NLL" in one for one in ours.warnings)
    more = many_sided(200, seed=3)
    losses = [
        evaluate(model.runtime(), few.dataset.schema, "level", more).nll for model in (ours, plain)
    ]
    assert losses[0] < losses[1]
    kept = load_model(tmp_path / ours.save(tmp_path)).runtime()
    assert evaluate(kept, few.dataset.schema, "level", more).nll == losses[0]


def test_a_seed_has_converged_if_its_loss_stopped_falling() -> None:
    few = made_up(12, noise=0.4, splits=False)
    for patience in (5, 40):
        config = replace(LONG, patience=patience)
        for one in train_small(few, "hash", ("level",), config, SEEDS).histories:
            assert len(one.epochs) == 40  # none stops
            assert one.converged == (40 - one.best_epoch >= patience)
    assert not one.converged


def test_no_better_than_the_class_shares_is_the_first_warning_with_folds_too() -> None:
    lost = many_sided(40, signal=0.0)
    model = train_small(lost, "hash", ("level",), LONG, SEEDS)
    scores = model.scores_on("out of fold")["level"]
    assert not scores.beats_class_shares
    assert model.card.not_better_than_class_shares() == model.warnings[:1]
    assert sum("class shares" in one for one in model.warnings) == 1


def test_networks_are_chosen_if_they_are_better() -> None:
    """low and high lie crosswise around medium, so that no line parts them."""
    few = made_up(50, 6, noise=0.2, splits=False)
    labels, drawn = few.dataset.item_labels("level"), np.random.default_rng(0)
    features = 0.1 * drawn.standard_normal(few.features.shape)
    sides = drawn.choice([-1.0, 1.0], len(labels))
    features[:, 0] += np.where(labels == 1, 0.0, sides)
    features[:, 1] += np.select([labels == 0, labels == 2], [sides, -sides], 0.0)
    crosswise = replace(few, features=features.astype(np.float32))
    config = replace(LONG, model="best", max_epochs=80)
    model = train_small(crosswise, "hash", ("level",), config, SEEDS)
    assert model.choice is not None
    assert not model.choice.is_linear
    assert model.network_seeds == {1, 2}
    assert model.scores_on("out of fold")["level"].accuracy > 0.9


def test_the_linear_model_is_scored_out_of_fold_too() -> None:
    lost = many_sided(40, signal=0.0)
    model = train_small(lost, "hash", ("level",), replace(LONG, model="best"), SEEDS)
    scores = model.scores_on("out of fold")["level"]
    assert scores.accuracy < 0.6
    assert scores.nll > 0.9 * scores.prior_nll


def test_factors_come_from_networks_that_were_not_trained_on_the_item() -> None:
    """Labels without any relation to the features can be memorised, but not out of fold."""
    few = made_up(40, noise=0.4, splits=False)
    shuffled = np.random.default_rng(0).permutation(len(few.features))
    lost = made_up(40, noise=0.4, splits=False)
    lost = type(lost)(lost.dataset, lost.features[shuffled], lost.credibility, lost.groups)
    model = train_small(lost, "hash", ("level",), LONG, SEEDS)
    scores = model.scores_on("out of fold")["level"]
    assert scores.accuracy < 0.7
    assert scores.nll > 0.8 * scores.prior_nll


def test_channels_are_not_estimated_on_the_entities_that_are_scored() -> None:
    """Items' labels are unrelated to their entities': a channel estimated on the scored entities
    would still find a relation."""
    losses = []
    for seed in range(4):
        plain = made_up(24, 2, seed=seed, splits=False)
        drawn = np.random.default_rng(100 + seed)
        own = drawn.integers(0, 3, len(plain.features))
        centres = 4 * np.random.default_rng(4).standard_normal((3, plain.features.shape[1]))
        features = centres[own] + 0.1 * drawn.standard_normal(plain.features.shape)
        lost = replace(
            plain, dataset=labelled(plain.dataset, own), features=features.astype(np.float32)
        )
        config = replace(LONG, model="best", max_epochs=25)
        choice = train_small(lost, "hash", ("level",), config, SEEDS).choice
        assert choice is not None
        losses.append(choice.networks_nll)
    assert np.mean(losses) > np.log(3)  # what knowing nothing costs


def test_two_predicates_of_different_entities_are_both_learned() -> None:
    both = made_up(50, 3, noise=0.3, predicates=(LEVEL, OUTCOME), splits=False)
    apart = tuple(
        replace(entity, labels={name: entity.labels[name]})
        for entity, name in zip(both.dataset, ("level", "outcome") * 25, strict=True)
    )
    few = replace(both, dataset=replace(both.dataset, entities=apart))
    model = train_small(few, "hash", ("level", "outcome"), LONG, SEEDS)
    for name in ("level", "outcome"):
        scores = model.scores_on("out of fold")[name]
        assert scores.entities == 25
        assert scores.accuracy > 0.8


def test_networks_that_overflow_are_refused() -> None:
    few = made_up(20, splits=False)
    huge = replace(few, features=(1e6 * few.features).astype(np.float32))
    with pytest.raises(NonFiniteError, match="the model overflows on"):
        train_small(huge, "hash", ("level",), LONG, SEEDS)


def test_a_value_with_one_entity_is_refused() -> None:
    few = made_up(9, splits=False)
    labels = few.dataset.labels("level")
    value = labels[0]
    kept = np.array([0, *np.flatnonzero(labels != value)])
    with pytest.raises(DatasetError, match="fewer than 2 entities"):
        train_small(few.select(kept), "hash", ("level",), LONG, SEEDS)


def test_wilson_interval_of_a_hand_worked_case() -> None:
    low, high = wilson(8, 10)
    assert (low, high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 5)[0] == pytest.approx(0.0, abs=1e-12)
