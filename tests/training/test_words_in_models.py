"""Words in a linear model: chosen where they say more than the features, and stored with it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from training_examples import LEVEL, OUTCOME, SMALL

from lpf.baselines.lpf_methods import Lpf
from lpf.datasets import Dataset, DatasetEntity, DatasetItem, assign_splits
from lpf.model.artefact import load_model
from lpf.model.config import AggregatorConfig
from lpf.model.runtime import Runtime
from lpf.reading.fitted_words import without_words, words_width
from lpf.schema import Schema
from lpf.training import Examples, Trained, Trainer, make_examples
from lpf.training.examples import item_requests
from lpf.training.fitting import item_factors
from lpf.training.lexical import WordsFit, fit_words, with_logits
from lpf.training.model_choice import choose_linear
from lpf.types import QueryOptions

WIDTH, ITEMS = 12, 3
SEEDS = (1, 2, 3)
CONFIG = replace(SMALL, model="best", aggregator=None, max_epochs=4)
# Words of low, medium and high.
SIGNS = (("late", "forged"), ("slow", "partial"), ("prompt", "sound"))
FILLING = ("the", "order", "of", "this", "week", "its", "papers", "were", "seen", "by", "noon")


def noise_with_words(
    entities: int = 150,
    *,
    telling: bool = True,
    predicates: tuple = (LEVEL,),
    groups: int | None = None,
    claim: str | None = None,
) -> Examples:
    """The features are noise. If the texts are ``telling``, every other word of them mostly fits
    the level."""
    drawn = np.random.default_rng(7)
    schema = Schema(predicates)
    made = []
    for place in range(entities):
        value = place % 3
        every = {"level": LEVEL.values[value], "outcome": OUTCOME.values[value > 0]}
        texts = [_text(value if telling else int(drawn.integers(3)), drawn) for _ in range(ITEMS)]
        made.append(
            DatasetEntity(
                f"C{place:04d}",
                {name: label for name, label in every.items() if name in schema},
                tuple(DatasetItem(f"C{place:04d}_{n}", text) for n, text in enumerate(texts)),
                group_id=None if groups is None else f"G{place % groups}",
                claim=None if claim is None else claim.format(LEVEL.values[value]),
            )
        )
    dataset = assign_splits(Dataset("words", schema, tuple(made)), "level", seed=1)
    features = drawn.standard_normal((entities * ITEMS, WIDTH)).astype(np.float32)
    return make_examples(dataset, features, None)


def _text(value: int, drawn: np.random.Generator) -> str:
    shown = value if drawn.random() < 0.8 else int(drawn.integers(3))
    return " ".join(drawn.permutation([*drawn.choice(FILLING, 6), drawn.choice(SIGNS[shown])]))


def train(examples: Examples, reader_id: str = "hash", **changes: object) -> Trained:
    predicates = tuple(predicate.name for predicate in examples.dataset.schema)
    return Trainer(examples, reader_id, predicates, replace(CONFIG, **changes), SEEDS).run()


@cache
def telling() -> Examples:
    return noise_with_words()


@cache
def trained() -> Trained:
    return train(telling())


@cache
def words_fit() -> WordsFit:
    fit = fit_words(part(telling(), "train"), ("level",))
    assert fit is not None
    return fit


def part(examples: Examples, split: str) -> Examples:
    found = examples.split(split)  # type: ignore[arg-type]
    assert found is not None
    return found


def extended(runtime: Runtime, examples: Examples) -> Examples:
    return with_logits(examples, runtime.words)


def test_words_are_chosen_where_only_they_say_something() -> None:
    runtime, choice = trained().runtime(), trained().choice
    assert choice is not None
    assert choice.is_linear
    assert choice.has_words
    assert choice.words_gain is not None
    assert choice.words_gain > 0.1
    assert runtime.words is not None
    assert runtime.words.width == 3
    assert runtime.config.words == ("level",)
    assert runtime.config.reader_id == f"hash{runtime.words.suffix}"
    assert without_words(runtime.config.reader_id) == "hash"
    assert runtime.config.encoder.input_width == WIDTH + 3
    scores = trained().scores_on("test")["level"]
    assert scores.accuracy > 0.6
    assert scores.nll < scores.class_shares_nll - 0.1


def test_texts_that_say_nothing_do_no_harm() -> None:
    model = train(noise_with_words(telling=False))
    assert model.choice is not None
    assert model.choice.words_gain is not None
    assert model.choice.words_gain < 0.05
    test = model.scores_on("test")["level"]
    assert test.nll < test.class_shares_nll + 0.05


def test_training_items_have_logits_of_fits_without_them() -> None:
    fit, examples = words_fit(), telling()
    found = fit.extend(examples).features
    np.testing.assert_array_equal(found[:, :WIDTH], examples.features)
    own = fit.words.logits(item_requests(examples.dataset))
    rows = examples.rows(examples.dataset.positions("train"))
    np.testing.assert_allclose(found[rows, WIDTH:], fit.cross_fitted, rtol=1e-6)
    assert np.abs(found[rows, WIDTH:] - own[rows]).max() > 0.05
    others = np.setdiff1d(np.arange(len(found)), rows)
    np.testing.assert_allclose(found[others, WIDTH:], own[others], rtol=1e-5, atol=1e-6)
    assert examples.features.shape[1] == WIDTH  # unchanged


def test_the_model_is_refitted_to_validation_entities_if_these_are_few() -> None:
    known = telling().select(
        np.flatnonzero([entity.split != "test" for entity in telling().dataset])
    )
    words, again = trained().runtime().words, fit_words(known, ("level",))
    assert words is not None
    assert again is not None
    assert words.suffix == again.words.suffix
    assert words.suffix != words_fit().words.suffix


def test_the_model_is_also_refitted_if_validation_entities_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lpf.training.model_choice.ENOUGH_VALIDATION", 10)
    model, chosen = train(telling()), choose_linear("hash", SEEDS, telling(), ("level",))
    assert chosen.in_folds is None
    assert chosen.refit is not None
    refitted, before = chosen.refit.runtime, chosen.runtime
    assert model.runtime().words is not None
    assert refitted.words is not None
    assert before.words is not None
    few = trained().runtime().words
    assert few is not None
    assert model.runtime().words.suffix == refitted.words.suffix == few.suffix
    assert before.words.suffix == words_fit().words.suffix
    # Validation entities are scored with the model that was not fitted to them.
    seen = chosen.held_out_losses(("level",)).mean()
    assert model.scores_on("validation")["level"].nll == pytest.approx(seen, abs=0.01)


def test_a_single_member_has_the_words_too() -> None:
    runtime = trained().runtime()
    test = extended(runtime, part(telling(), "test"))
    alone = runtime.member(0)
    np.testing.assert_array_equal(extended(alone, part(telling(), "test")).features, test.features)
    assert item_factors(alone, "level", test).shape == (len(test.features), 3)


def test_a_model_with_words_is_saved_and_answers_the_same(tmp_path: Path) -> None:
    version = trained().save(tmp_path)
    loaded = load_model(tmp_path / version)
    runtime = trained().runtime()
    assert runtime.words is not None
    assert loaded.words is not None
    assert loaded.words.suffix == runtime.words.suffix
    assert loaded.config == trained().config
    requests = item_requests(telling().dataset)
    np.testing.assert_array_equal(loaded.words.logits(requests), runtime.words.logits(requests))
    test = extended(runtime, part(telling(), "test"))
    np.testing.assert_array_equal(
        item_factors(loaded.runtime(), "level", test), item_factors(runtime, "level", test)
    )
    assert train(telling()).save(tmp_path) == version


def test_a_model_without_words_has_none_in_its_file(tmp_path: Path) -> None:
    model = train(telling(), model="networks")
    assert model.runtime().words is None
    assert "words" not in model.config.to_dict()
    assert load_model(tmp_path / model.save(tmp_path)).words is None


@pytest.mark.parametrize("members", [2, 3])
def test_words_and_a_learned_aggregator_go_together(members: int, tmp_path: Path) -> None:
    """Also if there are more members than values."""
    examples = noise_with_words(predicates=(LEVEL, OUTCOME))
    model = train(examples, aggregator=AggregatorConfig(), members=members)
    assert model.config.words == ("level", "outcome")
    assert words_width(model.config.reader_id) == 5
    for variant in ("spn", "learned"):
        for name in ("level", "outcome"):
            assert np.isfinite(model.scores_on("test", variant)[name].nll)
    kept = load_model(tmp_path / model.save(tmp_path))
    assert set(kept.tensors) == set(model.tensors)


def test_each_predicate_has_a_regression_of_its_own() -> None:
    fit = fit_words(
        part(noise_with_words(predicates=(LEVEL, OUTCOME)), "train"), ("level", "outcome")
    )
    assert fit is not None
    assert {name: len(one.bias) for name, one in fit.words.models.items()} == {
        "level": 3,
        "outcome": 2,
    }
    assert fit.cross_fitted.shape[1] == fit.words.width == 5


def test_entities_of_one_group_get_no_words() -> None:
    examples = noise_with_words(groups=10)
    one = tuple(
        replace(entity, group_id="G" if entity.split == "train" else entity.group_id)
        for entity in examples.dataset
    )
    alone = replace(examples, dataset=replace(examples.dataset, entities=one))
    assert fit_words(part(alone, "train"), ("level",)) is None
    model = train(alone)
    assert model.choice is not None
    assert not model.choice.has_words
    assert model.choice.words_gain is None
    assert model.runtime().words is None


@pytest.mark.parametrize("reader_id", ["hash", "pair(hash@3)"])
def test_words_of_claims_count_only_if_the_reader_reads_claims(reader_id: str) -> None:
    """The claim gives the level away, and the texts help."""
    examples = noise_with_words(claim="The level is {}.")
    runtime = train(examples, reader_id).runtime()
    assert runtime.words is not None
    first = examples.dataset.entities[0]
    bare = replace(examples.dataset, entities=(replace(first, claim=None),))
    claimed = replace(examples.dataset, entities=(first,))
    with_claim, without = (runtime.words.logits(item_requests(one)) for one in (claimed, bare))
    differ = np.abs(with_claim - without).max() > 0.01
    assert differ == reader_id.startswith("pair")


@pytest.mark.parametrize("mode", ["robust", "paper"])
def test_the_method_of_an_evaluation_adds_the_logits(mode: str) -> None:
    examples = telling()
    method = Lpf("LPF", trained().runtime(), QueryOptions(mode=mode))
    fitted = method.fit(part(examples, "train"), part(examples, "validation"), "level", 1)
    test = part(examples, "test")
    answers = fitted.predict_proba(test)
    right = answers.argmax(axis=1) == test.dataset.labels("level")
    assert right.mean() > 0.6
