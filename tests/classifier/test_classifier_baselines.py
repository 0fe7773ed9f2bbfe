"""Every baseline answers the same through the classifier and in an evaluation."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
from classifier_examples import Entities, dataset_of, in_splits, plain_reader, suppliers

from lpf import BaselineClassifier
from lpf.baselines import (
    METHODS,
    ItemModels,
    Shared,
    TransformerConfig,
    make_methods,
)
from lpf.datasets import Dataset
from lpf.errors import ConfigError
from lpf.reading import Reader, open_reader
from lpf.training import Examples, Trainer, TrainingConfig, make_examples, read_features
from method_runs import MethodRun, run_methods

NAMES = BaselineClassifier.method_names()
# Fitted a second time for the temperature, which is the same step for all.
TEMPERED = ("logistic_mean", "deep_sets", "edl_individual", "majority_vote", "prior")
SEEDS = (1, 2)
BUDGET = TransformerConfig(rates=(1e-3,), epochs=1, max_tokens=32)
COUNT, ASKED = 60, 12


def with_sources(X: Entities) -> Entities:
    """Three sources, and some items without one."""
    names = ("auditor", "press", "customer", None)
    return [
        [{**item, "source": names[(place + n) % 4]} for n, item in enumerate(entity)]
        for place, entity in enumerate(X)
    ]


@cache
def lesson() -> tuple[Entities, list[str]]:
    X, y = suppliers(COUNT)
    return with_sources(X), y


@cache
def asked() -> Entities:
    return with_sources(suppliers(ASKED, seed=1, first=1000)[0])


@cache
def fitted(name: str, tempered: bool = False) -> BaselineClassifier:
    budget = BUDGET if name == "transformer" else None
    classifier = BaselineClassifier(name, temperature=tempered, seeds=SEEDS, transformer=budget)
    return classifier.fit(*lesson())


def read(dataset: Dataset, reader: Reader | None = None) -> Examples:
    return make_examples(dataset, read_features(dataset, reader or plain_reader()))


def outcomes(names: tuple[str, ...], learned: Examples, test: Examples) -> dict[str, MethodRun]:
    """What a comparison makes of them, with the random state that classifiers have."""
    config = TrainingConfig(aggregator=None, model="networks")
    model = None
    if "vae_only" in names:
        model = Trainer(learned, "reader", ("label",), config, SEEDS).run().runtime()
    shared = Shared(model, items=ItemModels(searched=len(SEEDS)), transformer=BUDGET)
    train, validation = learned.split("train"), learned.split("validation")
    assert train is not None
    assert validation is not None
    return run_methods(make_methods(shared, names), train, validation, test, "label", 42)


@cache
def compared() -> dict[str, MethodRun]:
    test = read(dataset_of(asked(), ["bad"] * ASKED))
    return outcomes(NAMES, read(in_splits(dataset_of(*lesson()))), test)


@pytest.mark.parametrize("name", NAMES)
def test_answers_match_an_evaluation(name: str) -> None:
    wanted = compared()[name]
    found = fitted(name).predict_proba(asked())
    np.testing.assert_allclose(found, wanted.raw, rtol=0, atol=1e-9)
    assert fitted(name).temperature_ is None


@pytest.mark.parametrize("name", TEMPERED)
def test_temperatures_match_an_evaluation_and_references_have_none(name: str) -> None:
    wanted = compared()[name]
    found = fitted(name, tempered=True)
    np.testing.assert_allclose(found.predict_proba(asked()), wanted.tempered, rtol=0, atol=1e-9)
    assert found.temperature_ == wanted.temperature
    assert (found.temperature_ is None) == (name == "prior")


@pytest.mark.parametrize("name", NAMES)
def test_an_entity_without_evidence_gets_the_prior_and_changes_no_other(name: str) -> None:
    classifier = fitted(name)
    alone = classifier.predict_proba(asked())
    among = classifier.predict_proba([[], *asked()[:3], [], *asked()[3:]])
    np.testing.assert_allclose(np.delete(among, [0, 4], axis=0), alone, atol=1e-6)
    np.testing.assert_allclose(among[[0, 4]], 0.5)
    np.testing.assert_allclose(classifier.predict_proba(asked()[4:5]), alone[4:5], atol=1e-6)
    assert classifier.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize("name", NAMES)
def test_supports_value_does_not_change_predictions(name: str) -> None:
    hinted = [[{**item, "supports_value": "good"} for item in entity] for entity in asked()]
    found = fitted(name).predict_proba(hinted)
    np.testing.assert_array_equal(found, fitted(name).predict_proba(asked()))


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_pickled_to_another_process(name: str) -> None:
    copy = pickle.loads(pickle.dumps(fitted(name)))
    found = copy.predict_proba(asked()[:3])
    np.testing.assert_array_equal(found, fitted(name).predict_proba(asked()[:3]))


@pytest.mark.parametrize("name", NAMES)
def test_sources_change_answers_of_methods_that_use_them(name: str) -> None:
    nobody = [[{**item, "source": None} for item in entity] for entity in asked()]
    change = fitted(name).predict_proba(nobody) - fitted(name).predict_proba(asked())
    assert (np.abs(change).max() > 1e-4) == (name in ("dawid_skene", "relational_graph"))


@pytest.mark.parametrize("name", [name for name in METHODS if name not in NAMES])
def test_every_other_method_is_refused_by_name(name: str) -> None:
    why = "LPFClassifier" if name.startswith("lpf_") else "needs the true probabilities"
    with pytest.raises(ConfigError, match=f"'{name}'.*{why}.*'dawid_skene'") as caught:
        BaselineClassifier(name).fit(*lesson())
    assert caught.value.field == "method"


def test_validation_groups_and_claims_work_as_in_lpf_classifier() -> None:
    X, y = lesson()
    claim = "The supplier can be trusted."
    groups = [f"owner {place // 6}" for place in range(COUNT)]
    held = dataset_of(X, y).in_splits(["train"] * 40 + ["validation"] * 20)
    grouped = in_splits(dataset_of(X, y, groups=groups))
    claimed = in_splits(dataset_of(X, y, claim=claim))
    against = [{"claim": claim, "evidence": items} for items in X]
    fresh = BaselineClassifier("logistic_mean")
    for dataset, given, asked_about in (
        (held, {"X": X[:40], "y": y[:40], "validation": (X[40:], y[40:])}, X),
        (grouped, {"X": X, "y": y, "groups": groups}, X),
        (claimed, {"X": against, "y": y}, against),
    ):
        examples = read(dataset, open_reader(with_claim=dataset is claimed))
        wanted = outcomes(("logistic_mean",), examples, examples)["logistic_mean"].raw
        found = fresh.fit(**given).predict_proba(asked_about)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
        apart = fitted("logistic_mean").predict_proba(X)
        assert np.abs(found - apart).max() > 1e-6


def test_it_learns_from_texts() -> None:
    classifier = fitted("majority_vote", tempered=True)
    texts = [["All came on time and the customer was happy."], ["Broken, late, invoices forged."]]
    assert classifier.predict(texts).tolist() == ["good", "bad"]
    assert classifier.classes_.tolist() == ["bad", "good"]
    assert classifier.score(*lesson()) > 0.75
    assert any("fitted on 9 entities only" in warning for warning in classifier.warnings_)


def test_another_random_state_draws_other_validation_entities_and_networks() -> None:
    other = BaselineClassifier("deep_sets", random_state=7).fit(*lesson())
    same = BaselineClassifier("deep_sets").fit(*lesson())
    wanted = fitted("deep_sets").predict_proba(asked())
    np.testing.assert_array_equal(same.predict_proba(asked()), wanted)
    assert np.abs(other.predict_proba(asked()) - wanted).max() > 1e-4
