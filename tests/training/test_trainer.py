from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_examples import LEVEL, OUTCOME, SMALL, WIDTH, made_up

from lpf.datasets import assign_splits
from lpf.errors import ConfigError, DatasetError, TrainingError
from lpf.model.artefact import load_model
from lpf.model.config import AggregatorConfig
from lpf.model.runtime import Runtime
from lpf.training import Examples, StageTwoConfig, Trained, Trainer, TrainingConfig, train_head
from lpf.training.config import check_seeds
from lpf.training.fitting import answers
from lpf.training.training_warnings import answer_warnings, balancing_may_help
from lpf.types import QueryOptions

SEEDS = (1, 2, 3)


def train(examples: Examples, config: TrainingConfig = SMALL, **more: object) -> Trained:
    predicates = tuple(predicate.name for predicate in examples.dataset.schema)
    trainer = Trainer(examples, "hash", predicates, config, SEEDS)
    return replace(trainer, **more).run()


@pytest.fixture(scope="module")
def examples() -> Examples:
    return made_up()


@pytest.fixture(scope="module")
def model(examples: Examples) -> Trained:
    return train(examples)


def test_a_model_answers_what_it_was_trained_for(model: Trained) -> None:
    for data, variant in (("validation", "spn"), ("test", "spn"), ("test", "learned")):
        scores = model.scores_on(data, variant)["level"]
        assert scores.accuracy > 0.9
        assert scores.nll < scores.prior_nll / 2
    assert model.config.members == 2
    assert model.config.calibrated_on == {"level": len_validation(model)}


def len_validation(model: Trained) -> int:
    return model.scores_on("validation")["level"].entities


def test_the_same_data_and_seeds_are_the_same_version(
    examples: Examples, model: Trained, tmp_path: Path
) -> None:
    assert model.save(tmp_path) == train(examples).save(tmp_path)
    other = train(examples, seeds=(4, 5))
    assert other.save(tmp_path) != model.save(tmp_path)


def test_the_best_seeds_are_the_members_best_first(model: Trained) -> None:
    best = sorted(
        model.histories, key=lambda one: (-one.best.validation_accuracy, one.best.validation_loss)
    )
    assert model.config.seeds == tuple(one.seed for one in best[:2])


def test_the_card_says_what_was_fitted_and_on_what(model: Trained) -> None:
    text = model.card.to_markdown()
    parameters = model.fitted["level"].robust.parameters
    for word in (
        f"temperature {parameters.temperature:.4f}",
        f"rho {parameters.rho:.4f}",
        f"epsilon {parameters.epsilon:.4f}",
        "temperature of LPF-Learned",
        "± ",
        "made up: 120 entities",
        "level/test/spn/nll",
    ):
        assert word in text


def test_a_saved_model_answers_the_same(examples: Examples, model: Trained, tmp_path: Path) -> None:
    artefact = load_model(tmp_path / model.save(tmp_path))
    schema = examples.dataset.schema
    for options in (QueryOptions(), QueryOptions(variant="learned"), QueryOptions.paper()):
        np.testing.assert_allclose(
            answers(artefact.runtime(), schema, "level", examples, options),
            answers(model.runtime(), schema, "level", examples, options),
            # Paper mode's draws go by the model's version, which an unsaved one does not have.
            atol=1e-9 if options.mode == "robust" else 0.2,
        )


def test_the_learned_variant_uses_its_fitted_temperature(
    examples: Examples, model: Trained
) -> None:
    fitted = model.config.learned_temperature["level"]
    given = QueryOptions(variant="learned", temperature=fitted)
    schema = examples.dataset.schema
    np.testing.assert_array_equal(
        answers(model.runtime(), schema, "level", examples, QueryOptions(variant="learned")),
        answers(model.runtime(), schema, "level", examples, given),
    )


def test_a_stored_search_is_used_for_another_number_of_members(
    examples: Examples, tmp_path: Path
) -> None:
    first = train(examples, folder=tmp_path)
    (kept,) = list(tmp_path.iterdir())
    before = kept.joinpath("search.json").stat().st_mtime_ns
    single = train(examples, replace(SMALL, members=1, aggregator=None), folder=tmp_path)
    assert list(tmp_path.iterdir()) == [kept]
    assert kept.joinpath("search.json").stat().st_mtime_ns == before
    assert single.config.seeds == first.config.seeds[:1]
    assert "test/learned" not in single.scores


def test_published_and_unfrozen_aggregators_train_too(examples: Examples) -> None:
    published = replace(
        SMALL,
        aggregator=AggregatorConfig.section_4(),
        stage_two=StageTwoConfig(epochs=3, patience=None, weight_decay=0.0),
    )
    model = train(examples, published)
    assert [len(one) for one in model.aggregator] == [3, 3]
    unfrozen = train(examples, replace(SMALL, stage_two=StageTwoConfig(epochs=2, unfreeze=True)))
    frozen = train(examples, replace(SMALL, stage_two=StageTwoConfig(epochs=2)))
    name = "encoder.mu.weight"
    assert not np.array_equal(unfrozen.tensors[name], frozen.tensors[name])


def test_the_second_stage_leaves_encoder_and_decoder_alone(examples: Examples) -> None:
    without = train(examples, replace(SMALL, aggregator=None))
    with_it = train(examples)
    for name, tensor in without.tensors.items():
        np.testing.assert_array_equal(tensor, with_it.tensors[name])


def test_two_predicates_and_a_third_added_later(tmp_path: Path) -> None:
    both = made_up(predicates=(LEVEL, OUTCOME))
    joint = train(both)
    assert joint.scores_on("test")["outcome"].accuracy > 0.9
    alone = made_up()
    artefact = load_model(tmp_path / train(alone).save(tmp_path))
    added = train_head(artefact, both, "outcome", SMALL)
    assert added.scores_on("test")["outcome"].accuracy > 0.9
    assert [head.name for head in added.config.predicates] == ["level", "outcome"]
    assert added.config.calibration["level"] == artefact.config.calibration["level"]
    np.testing.assert_array_equal(
        answers(added.runtime(), both.dataset.schema, "level", both, QueryOptions()),
        answers(artefact.runtime(), both.dataset.schema, "level", both, QueryOptions()),
    )
    with pytest.raises(TrainingError, match="answers 'level' already"):
        train_head(artefact, both, "level", SMALL)


def among_others(examples: Examples, before: int, after: int) -> Examples:
    """The same examples, with features that are 0 before and after their own."""
    return replace(examples, features=np.pad(examples.features, ((0, 0), (before, after))))


def test_an_added_head_knows_its_own_texts(tmp_path: Path) -> None:
    first = among_others(made_up(noise=0.3), 0, WIDTH)
    artefact = load_model(tmp_path / train(first).save(tmp_path))
    before = artefact.runtime()
    other = made_up(noise=0.3, shares=(0.5, 0.3, 0.2), predicates=(OUTCOME,), splits=False)
    other = replace(other, dataset=assign_splits(other.dataset, "outcome", seed=1))
    other = among_others(other, WIDTH, 0)
    assert before.familiarity is not None
    assert before.familiarity(other.features).mean() < 0.1
    added = train_head(
        artefact, other, "outcome", replace(SMALL, max_epochs=60, learning_rate=2e-2)
    )
    scores = added.scores_on("test")["outcome"]
    assert scores.accuracy > 0.9
    assert scores.nll < 0.4
    loaded = load_model(tmp_path / added.save(tmp_path)).runtime()
    own = loaded.familiarity_of("outcome")
    assert own is not None
    assert own(other.features).mean() > 0.95
    assert own(first.features).mean() < 0.1
    for texts in (first.features, other.features):  # the earlier head's is the same, bit for bit
        earlier = loaded.member(1).familiarity_of("level")
        assert earlier is not None
        np.testing.assert_array_equal(earlier(texts), before.familiarity(texts))
    full = train_head(artefact, other, "outcome", replace(SMALL, unfamiliar="full", max_epochs=2))
    assert full.runtime().familiarity_of("outcome") is None
    assert full.runtime().familiarity_of("level") is not None


def test_warning_about_texts_in_two_splits(examples: Examples) -> None:
    entities = list(examples.dataset.entities)
    first = next(one for one in entities if one.split == "train")
    place = next(place for place, one in enumerate(entities) if one.split == "test")
    entities[place] = replace(entities[place], evidence=first.evidence)
    leaky = replace(examples, dataset=replace(examples.dataset, entities=tuple(entities)))
    warnings = " ".join(train(leaky, replace(SMALL, aggregator=None, max_epochs=2)).warnings)
    assert "3 texts" in warnings
    assert "'test'" in warnings
    assert "'train'" in warnings


def test_warning_about_a_value_that_is_never_answered() -> None:
    """Two epochs are not enough to learn a rare value."""
    rare = made_up(200, noise=3.0, shares=(0.06, 0.14, 0.8))
    config = replace(SMALL, max_epochs=1, balance="never", aggregator=None)
    warnings = " ".join(train(rare, config).warnings)
    assert "is never answered" in warnings
    assert "prior gives" in warnings


def test_balancing_is_advised_only_if_it_may_help() -> None:
    never_high = np.array([[0.6, 0.3, 0.1]] * 6)
    labels = np.array([0, 0, 1, 1, 2, 2])
    (plain,) = (
        warning
        for warning in answer_warnings(LEVEL, never_high, labels, False)
        if "'high'" in warning
    )
    assert plain.endswith("Add more entities with this value.")
    advised = " ".join(answer_warnings(LEVEL, never_high, labels, True))
    assert "or train with --balance always." in advised
    even, rare, rarer = (np.repeat([0, 1, 2], counts) for counts in ([9] * 3, [9, 9, 5], [9, 9, 2]))
    assert not balancing_may_help(even, "never")
    assert balancing_may_help(rare, "auto")
    assert not balancing_may_help(rare, "always")
    assert not balancing_may_help(rarer, "auto")  # balanced already
    assert balancing_may_help(rarer, "never")


def test_no_better_than_the_class_shares_is_the_first_warning(examples: Examples) -> None:
    """Features of test entities are those of others."""
    dataset = examples.dataset
    rows = examples.rows(dataset.positions("test"))
    wrong = examples.features.copy()
    wrong[rows] = examples.features[rows][::-1]
    lost = replace(examples, features=wrong)
    model = train(lost, replace(SMALL, aggregator=None))
    scores = model.scores_on("test")["level"]
    assert not scores.beats_class_shares
    assert scores.nll_gain == pytest.approx(scores.class_shares_nll - scores.nll)
    assert scores.nll_gain_low < scores.nll_gain < scores.nll_gain_high
    assert model.card.not_better_than_class_shares() == model.warnings[:1]
    assert model.card.metrics["level/test/spn/beats_class_shares"] == 0.0
    title, _, first, *_ = model.card.to_markdown().splitlines()
    assert title == "# made up"
    assert model.warnings[0] in first


def test_a_model_beats_the_class_shares_of_training_entities(
    model: Trained, examples: Examples
) -> None:
    """Of training entities, not of those that are scored, and not the schema's prior."""
    dataset = examples.dataset
    train, test = (dataset.labels("level")[dataset.positions(one)] for one in ("train", "test"))
    counts = np.bincount(train) + 1
    losses = -np.log(counts / counts.sum())[test]
    scores = model.scores_on("test")["level"]
    assert scores.beats_class_shares
    assert scores.class_shares_nll == pytest.approx(losses.mean())
    assert scores.class_shares_accuracy == pytest.approx((test == counts.argmax()).mean())
    assert model.card.not_better_than_class_shares() == ()


def test_the_majority_value_is_not_better_than_the_class_shares() -> None:
    """Nine of ten entities have one value and the features say nothing: 90 % right is no merit,
    although it is far better than the uniform prior."""
    examples = made_up(200, shares=(0.05, 0.9, 0.05))
    drawn = np.random.default_rng(0).standard_normal(examples.features.shape)
    model = train(replace(examples, features=drawn.astype(np.float32)))
    scores = model.scores_on("test")["level"]
    assert scores.accuracy > 0.8
    assert scores.nll < scores.prior_nll
    assert not scores.beats_class_shares
    assert model.warnings[0].startswith("level: not better than the class shares")


def test_no_warning_about_networks_that_are_not_in_the_model(examples: Examples) -> None:
    config = replace(SMALL, beta=50.0, max_epochs=8, learning_rate=0.01, model="best")
    model = train(examples, replace(config, aggregator=None))
    assert model.choice is not None
    assert model.choice.is_linear
    assert not any("collapsed" in one for one in model.warnings)
    assert "item_validation_accuracy" not in model.card.metrics


def test_warning_about_a_collapsed_posterior(examples: Examples) -> None:
    config = replace(SMALL, beta=50.0, aggregator=None, max_epochs=8, learning_rate=0.01)
    assert any("collapsed to the prior" in one for one in train(examples, config).warnings)


def test_a_split_without_a_value_is_refused(examples: Examples) -> None:
    kept = [
        place
        for place, one in enumerate(examples.dataset.entities)
        if one.split != "validation" or one.labels["level"] != "high"
    ]
    with pytest.raises(DatasetError, match="'high'"):
        train(examples.select(np.array(kept)))


@pytest.mark.parametrize("seeds", [(), (1, 1), (-1,), (1.5,)])
def test_bad_seeds_are_refused(seeds: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="seeds:"):
        check_seeds(seeds)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"patience": 0}, "training.patience"),
        ({"learning_rate": 0.0}, "training.learning_rate"),
        ({"beta": -1.0}, "training.beta"),
        ({"balance": "sometimes"}, "training.balance"),
        ({"members": 0}, "training.members"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        TrainingConfig(**changes)


def test_the_wording_of_a_card_does_not_change_sampled_answers(
    model: Trained, examples: Examples, tmp_path: Path
) -> None:
    """Samples are seeded by the model's seeds, not by the hash of the model."""
    reworded = replace(model, card=replace(model.card, notes=("other words",)))
    versions = [one.save(tmp_path) for one in (model, reworded)]
    assert versions[0] != versions[1]
    loaded = [load_model(tmp_path / version).runtime() for version in versions]
    first, second = (
        answers(one, examples.dataset.schema, "level", examples, QueryOptions.paper())
        for one in loaded
    )
    np.testing.assert_array_equal(first, second)
    old = replace(loaded[0].config, sampling_key="")
    assert "sampling_key" not in old.to_dict()
    assert Runtime(old, loaded[0].tensors, "v").member(0).sampling_key == "v/0"
    key = loaded[0].config.sampling_key
    assert loaded[0].member(1).sampling_key == f"{key}/1"


def test_a_threshold_applies_to_scores_as_to_answers(model: Trained, examples: Examples) -> None:
    """Items below it have no influence, and an entity without others gets the prior."""
    assert model.config.min_credibility == {"level": 0.0}
    credibility = np.full(len(examples.features), 0.9)
    credibility[::3], credibility[:3] = 0.2, 0.2
    rated = replace(examples, credibility=credibility)
    config = replace(model.config, min_credibility={"level": 0.3})
    runtime, schema = Runtime(config, model.tensors), examples.dataset.schema
    before = answers(runtime, schema, "level", rated, QueryOptions())
    np.testing.assert_allclose(before[0], schema["level"].prior)
    features = examples.features.copy()
    features[credibility < 0.3] = features[0]
    changed = answers(runtime, schema, "level", replace(rated, features=features), QueryOptions())
    np.testing.assert_array_equal(changed, before)
    every = Runtime(model.config, model.tensors)
    assert not np.allclose(answers(every, schema, "level", rated, QueryOptions()), before)
    learned = QueryOptions(variant="learned")
    np.testing.assert_array_equal(
        answers(runtime, schema, "level", rated, learned),
        answers(every, schema, "level", rated, learned),
    )
