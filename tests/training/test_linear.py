from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_examples import LEVEL, OUTCOME, SMALL, labelled, made_up

from lpf.combine.robust import RobustParameters, combine_robust
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.errors import TrainingError
from lpf.factors.convert import shift_under_noise
from lpf.factors.distributions import apply_channel, label_channel, softmax
from lpf.model.artefact import load_model
from lpf.model.config import AggregatorConfig
from lpf.model.runtime import Runtime
from lpf.reading import ReadRequest
from lpf.reading.stance import relevance
from lpf.schema import Schema
from lpf.training import Examples, Trained, Trainer, make_examples, train_head, train_small
from lpf.training.fitting import item_factors, refuse_unstable
from lpf.training.linear import (
    BY_OCCURRENCE,
    BY_RELEVANCE,
    WHOLE,
    LinearSearch,
    LinearSettings,
    LinearTrainer,
)
from lpf.training.material import channel_between
from lpf.training.model_choice import ModelChoice
from lpf.training.softmax_regression import (
    RegressionRows,
    Scaling,
    SoftmaxRegression,
    fit_path,
    fit_regression,
)
from workspaces import reader

SEEDS = (1, 2, 3)
CHOSEN = replace(SMALL, model="best", aggregator=None)


def train(examples: Examples, **changes: object) -> Trained:
    predicates = tuple(predicate.name for predicate in examples.dataset.schema)
    return Trainer(examples, "hash", predicates, replace(CHOSEN, **changes), SEEDS).run()


def hard_to_learn() -> Examples:
    """Hundreds of weak features per item: networks memorise them."""
    examples = made_up(150, 4)
    labels = examples.dataset.item_labels("level")
    drawn = np.random.default_rng(2)
    centres = 0.1 * drawn.standard_normal((3, 400))
    features = centres[labels] + drawn.standard_normal((len(labels), 400))
    return replace(examples, features=features.astype(np.float32))


def with_a_corner() -> Examples:
    """low and high lie on both sides of medium, twice, so that no line parts them."""
    examples = made_up(300, 3, noise=0.2)
    labels = examples.dataset.item_labels("level")
    drawn = np.random.default_rng(0)
    plane = drawn.choice([-1.0, 1.0], (len(labels), 2))
    plane[labels == 0, 1] = plane[labels == 0, 0]
    plane[labels == 2, 1] = -plane[labels == 2, 0]
    plane[labels == 1] = 0.0
    features = 0.1 * drawn.standard_normal(examples.features.shape)
    features[:, :2] += plane
    return replace(examples, features=features.astype(np.float32))


def mostly_silent(entities: int = 160, items: int = 5) -> Examples:
    """One item per entity is informative and has its label; the others say nothing and are labelled
    medium, which is also a value of entities."""
    plain = made_up(entities, items, noise=0.3)
    of_entities = np.repeat(plain.dataset.labels("level"), items)
    own = np.where(np.arange(len(of_entities)) % items == 0, of_entities, 1)
    generator = np.random.default_rng(9)
    centres = generator.standard_normal((3, plain.features.shape[1]))
    features = centres[own] + generator.standard_normal((len(own), centres.shape[1]))
    return replace(
        plain, dataset=labelled(plain.dataset, own), features=features.astype(np.float32)
    )


@pytest.fixture(scope="module")
def linear() -> Trained:
    return train(hard_to_learn())


@pytest.fixture(scope="module")
def silent() -> Examples:
    return mostly_silent()


def parts(examples: Examples) -> tuple[Examples, Examples]:
    train, validation = examples.split("train"), examples.split("validation")
    assert train is not None
    assert validation is not None
    return train, validation


@pytest.mark.parametrize("penalty", [1.0, 0.03])
def test_a_fit_is_that_of_scikit_learn(penalty: float) -> None:
    from sklearn.linear_model import LogisticRegression

    examples = made_up(noise=2.0)
    scaled = Scaling.of(examples.features).apply(examples.features)
    labels = examples.dataset.item_labels("level")
    weights = np.random.default_rng(1).exponential(size=len(labels))
    found = fit_regression(
        RegressionRows(scaled, labels, weights),
        penalty,
        SoftmaxRegression.empty(scaled.shape[1], 3),
    )
    theirs = LogisticRegression(C=1.0 / (penalty * weights.sum()), tol=1e-8, max_iter=2000)
    theirs.fit(scaled, labels, sample_weight=weights)
    np.testing.assert_allclose(
        softmax(found.logits(scaled)), theirs.predict_proba(scaled), atol=2e-3
    )


def test_weaker_penalties_fit_closer() -> None:
    examples = hard_to_learn()
    scaled, labels = examples.features, examples.dataset.item_labels("level")
    fits = [one for _, one in fit_path(RegressionRows(scaled, labels, np.ones(len(labels))), 3)]
    right = [
        -np.log(softmax(one.logits(scaled))[np.arange(len(labels)), labels]).mean() for one in fits
    ]
    assert right == sorted(right, reverse=True)


def test_a_value_that_no_row_has_stays_finite() -> None:
    examples = made_up()
    labels = np.zeros(len(examples.features), np.intp)
    *_, (_, found) = fit_path(RegressionRows(examples.features, labels, np.ones(len(labels))), 3)
    assert np.isfinite(found.bias).all()


def test_the_stored_model_answers_like_the_regression(silent: Examples) -> None:
    """Members are the fits, to float32; the channel is the head's."""
    train, validation = parts(silent)
    learner, recipe = LinearTrainer(train), LinearSettings("items", 0.3)
    runtime = learner.runtime({"level": recipe}, (7,), "hash")
    (drawn,) = learner.reweighted(learner.rows("level", "items"), (7,))
    regression = fit_regression(drawn, 0.3, SoftmaxRegression.empty(train.features.shape[1], 3))
    said = softmax(regression.logits(learner.scaling.apply(validation.features)))
    expected = apply_channel(label_channel(runtime.config.head("level")), said)
    np.testing.assert_allclose(item_factors(runtime, "level", validation), expected, atol=1e-3)


def test_entity_weights_differ_by_member_and_average_to_one(silent: Examples) -> None:
    learner = LinearTrainer(silent)
    one = learner.rows("level", "items")
    drawn = np.stack([rows.weights for rows in learner.reweighted(one, (1, 2, 3))])
    np.testing.assert_allclose(drawn.mean(axis=0), one.rows.weights)
    assert (drawn.std(axis=0) > 0).all()
    assert (np.diff(drawn.reshape(3, -1, 5)) == 0).all()  # items of an entity stay together
    (alone,) = learner.reweighted(one, (4,))
    np.testing.assert_array_equal(alone.weights, one.rows.weights)


def test_two_predicates_find_their_own_logits() -> None:
    train, validation = parts(made_up(predicates=(LEVEL, OUTCOME), noise=1.0))
    recipes = {name: LinearSettings("entities", 0.1) for name in ("level", "outcome")}
    runtime = LinearTrainer(train).runtime(recipes, (1, 2), "hash")
    for name, values in (("level", 3), ("outcome", 2)):
        found = item_factors(runtime, name, validation)
        assert found.shape[1] == values
        assert (found.argmax(axis=1) == validation.dataset.item_labels(name)).mean() > 0.8


def test_factors_from_folds_are_in_the_order_of_the_items() -> None:
    """Folds in any order: every item has the factor of the trainer that was not fitted to it."""
    examples = made_up(60, noise=1.0, splits=False)
    folds = [np.arange(2, 60, 3), np.arange(0, 60, 3), np.arange(1, 60, 3)]
    others = [np.setdiff1d(np.arange(60), fold) for fold in folds]
    learners = [LinearTrainer(examples.select(places)) for places in others]
    trials = LinearSearch(examples, learners, folds)
    recipes = {"level": trials.best_settings("level").settings}
    found = trials.factors(recipes, (1, 2), "hash")["level"]
    for fold, learner in zip(folds, learners, strict=True):
        alone = learner.runtime(recipes, (1, 2), "hash")
        expected = item_factors(alone, "level", examples.select(fold))
        np.testing.assert_allclose(found.factors[examples.rows(fold)], expected, rtol=1e-6)


def test_the_linear_model_is_chosen_if_networks_overfit(linear: Trained) -> None:
    choice = linear.choice
    assert choice is not None
    assert choice.is_linear
    assert choice.linear_nll < choice.networks_nll
    assert linear.config.encoder.hidden == ()
    assert linear.config.members == SMALL.members
    assert any(note.startswith("model: linear, held-out NLL") for note in linear.card.notes)


@pytest.mark.parametrize(
    ("networks", "error", "linear"),
    [(0.30, 0.01, True), (0.22, 0.01, False), (0.22, 0.04, True), (0.25, 0.0, False)],
)
def test_networks_have_to_be_better_by_a_standard_error(
    networks: float, error: float, linear: bool
) -> None:
    choice = ModelChoice(networks, 0.25, {}, networks_error=error)
    assert choice.is_linear == linear
    assert choice.describe().startswith("linear" if linear else "networks")


def test_networks_are_chosen_if_values_are_not_linearly_separable() -> None:
    model = train(with_a_corner(), max_epochs=40)
    assert model.choice is not None
    assert not model.choice.is_linear
    assert model.config.encoder.hidden == SMALL.hidden
    assert any(note.startswith("model: networks") for note in model.card.notes)


def test_no_comparison_with_model_networks() -> None:
    assert train(hard_to_learn(), model="networks").choice is None


def test_a_linear_model_is_saved_and_answers_in_both_variants(tmp_path: Path) -> None:
    model = train(hard_to_learn(), aggregator=AggregatorConfig())
    assert model.config.encoder.hidden == ()
    for variant in ("spn", "learned"):
        assert model.scores_on("test", variant)["level"].entities > 0
    kept = load_model(tmp_path / model.save(tmp_path)).runtime()
    features = hard_to_learn().split("test")
    assert features is not None
    np.testing.assert_array_equal(
        item_factors(kept, "level", features), item_factors(model.runtime(), "level", features)
    )


def test_the_same_data_and_seeds_are_the_same_version(linear: Trained, tmp_path: Path) -> None:
    assert train(hard_to_learn()).save(tmp_path) == linear.save(tmp_path)


def test_no_head_can_be_added_to_a_linear_model(linear: Trained, tmp_path: Path) -> None:
    artefact = load_model(tmp_path / linear.save(tmp_path))
    more = made_up(predicates=(LEVEL, OUTCOME))
    with pytest.raises(TrainingError, match=r"is linear.*train all predicates together"):
        train_head(artefact, more, "outcome", CHOSEN)


def test_labelled_items_of_unlabelled_entities_are_trained_on() -> None:
    whole = made_up(60)
    dataset = whole.dataset
    assert LinearTrainer(whole).sources("level") == ("entities", WHOLE)
    bare = replace(
        dataset,
        entities=tuple(
            replace(
                entity,
                labels=entity.labels if place % 2 else {},
                evidence=tuple(
                    replace(item, labels=dict(entity.labels)) for item in entity.evidence
                ),
            )
            for place, entity in enumerate(dataset)
        ),
    )
    learner = LinearTrainer(replace(whole, dataset=bare))
    assert learner.sources("level") == ("items", "entities", WHOLE)
    assert len(learner.rows("level", "items").owners) == 180
    assert len(learner.rows("level", "entities").owners) == 90
    assert len(learner.rows("level", WHOLE).owners) == 30


def test_the_product_over_items_is_the_regression_on_their_mean() -> None:
    examples = made_up(40, 3)
    learner = LinearTrainer(examples)
    runtime = learner.runtime({"level": LinearSettings(WHOLE, 0.1)}, (1,), "hash")
    head = runtime.config.head("level")
    product = combine_robust(
        item_factors(runtime, "level", examples),
        examples.credibility,
        np.array(head.training_shares),
        np.log(np.array(LEVEL.prior)),
        examples.segments,
        RobustParameters(rho=1.0, epsilon=0.0, fitted=True),
        examples.groups,
    )
    rows = learner.rows("level", WHOLE).rows
    fitted = fit_regression(rows, 0.1, SoftmaxRegression.empty(rows.scaled.shape[1], 3))
    expected = softmax(fitted.logits(rows.scaled))
    np.testing.assert_allclose(product.distribution, expected, atol=2e-4)


def silent_majority() -> Examples:
    """One item of six tells the level; the others are noise that every entity has."""
    examples = made_up(240, 6, noise=0.1)
    drawn = np.random.default_rng(5)
    features = examples.features.copy()
    rows = np.arange(len(features))
    noise = rows % 6 != (rows // 6) % 6
    features[noise] = drawn.standard_normal((int(noise.sum()), features.shape[1]))
    return replace(examples, features=features)


def test_whole_entities_are_learned_from_where_most_items_say_nothing() -> None:
    trained = train(silent_majority())
    assert trained.choice is not None
    assert trained.choice.linear["level"].source == WHOLE


def test_with_relevance_it_is_the_regression_on_their_weighted_mean() -> None:
    """Also for entities whose items count for less than one item in all."""
    examples = with_stances(60)
    runtime = LinearTrainer(examples, LOGITS).runtime(
        {"level": LinearSettings(BY_RELEVANCE, 0.1)}, (1,), WITH_STANCE
    )
    head = runtime.config.head("level")
    assert (head.relevance_start, head.trained_rho) == (LOGITS, 1.0)
    weights = relevance(examples.features, LOGITS)
    totals = examples.segments.sum(weights)
    assert totals.min() < 0.9
    assert totals.max() > 1.1
    product = combine_robust(
        item_factors(runtime, "level", examples),
        examples.credibility,
        np.array(head.training_shares),
        np.log(np.array(LEVEL.prior)),
        examples.segments,
        RobustParameters(rho=1.0, epsilon=0.0, fitted=True),
        relevance=weights,
    )
    learner = LinearTrainer(examples, LOGITS)
    rows = learner.rows("level", BY_RELEVANCE).rows
    mean = examples.segments.sum(weights[:, None] * learner.scaled)
    mean /= np.maximum(1.0, totals)[:, None]
    np.testing.assert_allclose(rows.scaled, mean, atol=1e-4)
    fitted = fit_regression(rows, 0.1, SoftmaxRegression.empty(rows.scaled.shape[1], 3))
    counted = np.minimum(1.0, totals)[:, None]
    logits = mean @ fitted.weight + counted * fitted.bias + (1 - counted) * np.log(LEVEL.prior)
    np.testing.assert_allclose(product.distribution, softmax(logits), atol=5e-4)


def test_rows_of_less_evidence_are_fitted_exactly() -> None:
    """At the fitted weights the slope of the penalised loss is 0, along the bias as well."""
    drawn = np.random.default_rng(3)
    labels = drawn.integers(0, 3, 80)
    rows = RegressionRows(
        drawn.standard_normal((80, 4)).astype(np.float32),
        labels,
        np.ones(80),
        drawn.random(80),
        drawn.standard_normal((80, 3)),
    )
    found = fit_regression(rows, 0.1, SoftmaxRegression.empty(4, 3))
    logits = rows.scaled @ found.weight + rows.amounts[:, None] * found.bias + rows.offsets
    wrong = (softmax(logits) - np.eye(3)[labels]) / 80
    np.testing.assert_allclose(rows.scaled.T @ wrong + 0.1 * found.weight, 0.0, atol=1e-3)
    np.testing.assert_allclose(rows.amounts @ wrong + 1e-4 * found.bias, 0.0, atol=1e-3)


# A pair reader with 6 features per text and the stance reader's 387, of which the last are logits.
WITH_STANCE = "pair(hash@6)+stance(cue)"
LOGITS = 24 + 384


def with_stances(entities: int = 240, claims: bool = True, splits: bool = True) -> Examples:
    """One item of six is about the claim and tells the level; the others look as if they told one
    too, drawn at random, and are neutral."""
    examples = made_up(entities, 6, noise=0.3, splits=splits)
    drawn, count = np.random.default_rng(8), len(examples.features)
    rows = np.arange(count)
    speaks = rows % 6 == (rows // 6) % 6
    of_entities = np.repeat(examples.dataset.labels("level"), 6)
    said = np.where(speaks, of_entities, drawn.integers(0, 3, count))
    features = np.zeros((count, LOGITS + 3), np.float32)
    centres = np.random.default_rng(5).standard_normal((3, 24))
    features[:, :24] = centres[said] + 0.5 * drawn.standard_normal((count, 24))
    if claims:
        features[:, LOGITS:] = drawn.standard_normal((count, 3))
        features[speaks, LOGITS] += 4.0
        features[~speaks, LOGITS + 2] += 4.0
    return replace(examples, features=features)


def test_items_count_by_relevance_where_most_are_neutral() -> None:
    examples = with_stances()
    trainer = Trainer(examples, WITH_STANCE, ("level",), CHOSEN, SEEDS)
    model = trainer.run()
    assert model.choice is not None
    assert model.choice.linear["level"].source == BY_RELEVANCE
    assert model.is_linear
    assert model.config.head("level").relevance_start == LOGITS
    assert "about the claim" in model.choice.describe()
    plain = train(examples)  # its ID does not say that there are stances
    assert plain.choice is not None
    assert plain.choice.linear["level"].source != BY_RELEVANCE
    assert plain.config.head("level").relevance_start is None
    ours, theirs = (one.scores_on("test")["level"] for one in (model, plain))
    assert ours.nll < 0.8 * theirs.nll


def test_a_small_data_set_is_fitted_by_relevance_in_its_folds_too() -> None:
    few = with_stances(50, splits=False)
    model = train_small(few, WITH_STANCE, ("level",), replace(SMALL, model="best"), SEEDS)
    assert model.choice is not None
    assert model.choice.linear["level"].source == BY_RELEVANCE
    assert model.config.head("level").relevance_start == LOGITS
    assert model.scores_on("out of fold")["level"].accuracy > 0.7


def disputed() -> Examples:
    """Two of six items are about the claim: both support it, both refute it, or one does each. Only
    the stances tell, and no item tells the third value alone."""
    examples = with_stances()
    drawn, features = np.random.default_rng(9), examples.features.copy()
    features[:, :LOGITS] = 0.1 * drawn.standard_normal((len(features), LOGITS))
    features[:, LOGITS:] = (0.0, 0.0, 5.0)
    for entity, label in enumerate(examples.dataset.labels("level")):
        first, second = drawn.choice(6, 2, replace=False) + 6 * entity
        features[first, LOGITS:] = (4.0, 0.0, 0.0) if label < 2 else (0.0, 4.0, 0.0)
        features[second, LOGITS:] = (0.0, 4.0, 0.0) if label > 0 else (4.0, 0.0, 0.0)
    return replace(examples, features=features)


def test_a_value_that_needs_both_stances_is_found_by_which_occur() -> None:
    examples = disputed()
    model = Trainer(examples, WITH_STANCE, ("level",), CHOSEN, SEEDS).run()
    assert model.choice is not None
    assert model.choice.linear["level"].source == BY_OCCURRENCE
    head = model.config.head("level")
    ratios = np.array(head.occurrence_ratios)
    assert ratios.shape == (4, 3)
    assert ratios[1:].argmax(axis=1).tolist() == [0, 2, 1]  # supports, refutes, both
    assert model.scores_on("test")["level"].accuracy > 0.95
    search = LinearSearch(
        examples.split("validation"), [LinearTrainer(examples.split("train"), LOGITS)],
        [np.arange(len(examples.split("validation").dataset))],
    )  # fmt: skip
    with_it = search.best_settings("level", [BY_OCCURRENCE]).nll
    assert with_it < 0.7 * search.best_settings("level", [BY_RELEVANCE]).nll


def test_with_occurrence_the_answer_is_the_regression_with_its_offsets() -> None:
    examples = disputed()
    learner = LinearTrainer(examples, LOGITS)
    runtime = learner.runtime({"level": LinearSettings(BY_OCCURRENCE, 0.1)}, (1,), WITH_STANCE)
    head = runtime.config.head("level")
    product = combine_robust(
        item_factors(runtime, "level", examples),
        examples.credibility,
        np.array(head.training_shares),
        np.log(np.array(LEVEL.prior)),
        examples.segments,
        RobustParameters(rho=1.0, epsilon=0.0, fitted=True),
        relevance=relevance(examples.features, LOGITS),
        stances=runtime.stances("level", examples.features),
        ratios=np.array(head.occurrence_ratios),
    )
    rows = learner.rows("level", BY_OCCURRENCE).rows
    fitted = fit_regression(rows, 0.1, SoftmaxRegression.empty(rows.scaled.shape[1], 3))
    logits = rows.scaled @ fitted.weight + rows.amounts[:, None] * fitted.bias + rows.offsets
    np.testing.assert_allclose(product.distribution, softmax(logits), atol=1e-3)


def test_folds_answer_with_ratios_that_were_fitted_without_their_entities() -> None:
    examples = disputed()
    places = [np.arange(fold, len(examples.dataset), 2) for fold in range(2)]
    trainers = [LinearTrainer(examples.select(places[1 - fold]), LOGITS) for fold in range(2)]
    search = LinearSearch(examples, trainers, places)
    found = search.factors({"level": LinearSettings(BY_OCCURRENCE, 0.1)}, (1,), WITH_STANCE)
    ratios = found["level"].ratios
    assert ratios is not None
    for trainer, held_out in zip(trainers, places, strict=True):
        expected = trainer.rows("level", BY_OCCURRENCE).head.occurrence_ratios
        assert (ratios[held_out] == np.array(expected)).all()


def test_relevance_is_offered_only_with_stances_and_several_items() -> None:
    plain = ("entities", WHOLE)
    assert LinearTrainer(with_stances(), LOGITS).sources("level") == (
        *plain,
        BY_RELEVANCE,
        BY_OCCURRENCE,
    )
    assert LinearTrainer(with_stances()).sources("level") == plain
    assert LinearTrainer(with_stances(claims=False), LOGITS).sources("level") == plain
    single = made_up(60, 1)
    wide = np.pad(single.features, ((0, 0), (0, 387)), constant_values=0.5)
    assert LinearTrainer(replace(single, features=wide), LOGITS).sources("level") == ("entities",)


def test_three_logits_are_scaled_like_a_whole_vector() -> None:
    examples = with_stances(60)
    plain, ours = Scaling.of(examples.features), LinearTrainer(examples, LOGITS).scaling
    np.testing.assert_array_equal(ours.scale[:LOGITS], plain.scale[:LOGITS])
    np.testing.assert_allclose(plain.scale[LOGITS:] / ours.scale[LOGITS:], np.sqrt(384 / 3))
    np.testing.assert_array_equal(ours.centre, plain.centre)


def test_a_channel_of_a_hand_worked_case() -> None:
    own, of_entities = np.array([0, 1, 1, 1, -1]), np.array([0, 0, 1, -1, 1])
    # Entities' values, each counted once more: 3/5 and 2/5; one such item joins every row.
    expected = [[1.6 / 2, 0.4 / 2], [1.6 / 3, 1.4 / 3]]
    np.testing.assert_allclose(channel_between(own, of_entities, 2), expected)
    assert channel_between(of_entities, of_entities, 2) is None


def test_uninformative_items_do_not_outvote_an_informative_one(silent: Examples) -> None:
    """If labels of silent items counted as their entities', they would hide the others."""
    mapped, plain = train(silent), train(silent, model="networks")
    ours, theirs = (one.scores_on("test")["level"] for one in (mapped, plain))
    assert mapped.config.head("level").channel
    assert not plain.config.head("level").channel
    assert ours.nll < 0.8 * theirs.nll
    assert ours.accuracy > theirs.accuracy


def test_a_value_that_no_item_has_can_be_answered() -> None:
    """Of entities that are high some items say low, some medium, none high."""
    silent = mostly_silent()
    own = silent.dataset.item_labels("level")
    of_entities = np.repeat(silent.dataset.labels("level"), 5)
    place = np.arange(len(own)) % 5
    spoken = np.where(of_entities == 2, np.where(place < 4, 0, 1), np.where(own == 0, 0, 1))
    spoken = np.where((of_entities == 0) & (place == 0), 0, spoken)
    centres = np.random.default_rng(4).standard_normal((3, silent.features.shape[1]))
    noise = 0.3 * np.random.default_rng(5).standard_normal(silent.features.shape)
    examples = replace(
        silent,
        dataset=labelled(silent.dataset, spoken),
        features=(centres[spoken] + noise).astype(np.float32),
    )
    mapped, plain = (
        train(examples, model=kind).scores_on("test")["level"] for kind in ("best", "networks")
    )
    assert mapped.accuracy > 0.9
    assert plain.accuracy < 0.8


def with_a_dead_feature(examples: Examples) -> Examples:
    """Like MiniLM's: one feature is rounding noise, and differs between the labels by chance."""
    features = 0.05 * examples.features
    labels = examples.dataset.item_labels("level")
    drawn = np.random.default_rng(5).standard_normal(len(features))
    features[:, 7] = 1e-8 * (1.0 + 0.2 * drawn + 0.3 * labels)
    features[:, 8] = 0.25
    return replace(examples, features=features.astype(np.float32))


def test_a_dead_feature_gets_no_weight() -> None:
    examples = with_a_dead_feature(hard_to_learn())
    scaling = Scaling.of(examples.features)
    others = np.delete(scaling.scale, [7, 8])
    assert scaling.scale[7] == scaling.scale[8] == pytest.approx(np.median(others), rel=1e-3)
    settings = {"level": LinearSettings("items", 0.01)}
    weight = LinearTrainer(examples).runtime(settings, (1,), "hash").tensors["encoder.mu.weight"]
    assert np.abs(weight[0, 7:9]).max() < 1e-3 * np.abs(weight).max()


def test_a_feature_that_varies_little_is_not_stretched_to_the_others() -> None:
    features = np.random.default_rng(0).standard_normal((500, 4)).astype(np.float32)
    features[:, 3] *= 1e-4
    scale = Scaling.of(features).scale
    assert scale[3] == pytest.approx(0.01 * np.median(scale[:3]), rel=0.05)
    assert (Scaling.of(np.full((9, 2), 0.3, np.float32)).scale == 1.0).all()


def test_noise_hardly_moves_the_answers_of_a_linear_model() -> None:
    """Noise of 1e-3 on features of spread 0.05 moves a probability by less than 5 points."""
    examples = with_a_dead_feature(hard_to_learn())
    runtime = LinearTrainer(examples).runtime({"level": LinearSettings(WHOLE, 0.3)}, SEEDS, "hash")
    noise = 1e-3 * np.random.default_rng(1).standard_normal(examples.features.shape)
    moved = replace(examples, features=(examples.features + noise).astype(np.float32))
    before, after = (item_factors(runtime, "level", one) for one in (examples, moved))
    assert np.abs(after - before).max() < 0.05


def test_a_model_that_follows_noise_is_refused() -> None:
    examples = with_a_dead_feature(hard_to_learn())
    sound = LinearTrainer(examples).runtime({"level": LinearSettings("items", 0.01)}, (1,), "hash")
    assert shift_under_noise(sound, "level", examples.features) < 0.01
    refuse_unstable(sound, ("level",), examples)
    tensors = {name: array.copy() for name, array in sound.tensors.items()}
    tensors["encoder.mu.weight"][:, 7] = [-1e7, 0.0, 1e7]
    with pytest.raises(TrainingError, match="not stable"):
        refuse_unstable(Runtime(sound.config, tensors), ("level",), examples)


def test_noise_hardly_moves_a_linear_model_on_minilm() -> None:
    """Feature 319 of MiniLM is about 1e-8 for every text. Noise of 1e-3 moves no probability by
    more than 5 points; noise of 1e-2 is still answered."""
    texts = [
        f"{who} {what}"
        for what in ("paid on the agreed day.", "paid three months late.")
        for who in ("The shop", "The firm", "Our client", "The bakery", "The school", "The port")
    ]
    features = reader().read_many([ReadRequest(text) for text in texts])
    assert np.abs(features[:, 319]).max() < 1e-6
    entities = tuple(
        DatasetEntity(str(n), {"outcome": ("good", "bad")[n // 6]}, (DatasetItem(str(n), text),))
        for n, text in enumerate(texts)
    )
    examples = make_examples(Dataset("payments", Schema((OUTCOME,)), entities), features, None)
    settings = {"outcome": LinearSettings("entities", 0.01)}
    model = LinearTrainer(examples).runtime(settings, (1, 2), "minilm")
    assert np.abs(model.tensors["encoder.mu.weight"][:, 319]).max() < 1e-3
    before = item_factors(model, "outcome", examples)
    assert (before.argmax(axis=1) == examples.dataset.labels("outcome")).all()
    for noise, most in ((1e-3, 0.05), (1e-2, 0.5)):
        drawn = noise * np.random.default_rng(0).standard_normal(features.shape)
        moved = replace(examples, features=(features + drawn).astype(np.float32))
        assert np.abs(item_factors(model, "outcome", moved) - before).max() < most
