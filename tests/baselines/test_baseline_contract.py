"""The contract of all methods, tested on each of them."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_examples import fitted, made, parts, predicate, reordered, shared, without_labels

from lpf import metrics
from lpf.baselines import METHODS, Shared, make_methods
from lpf.errors import ConfigError
from method_runs import run_methods

EVERY = list(METHODS)
REFERENCES = [name for name, entry in METHODS.items() if entry.standing == "reference"]
FAULTY = ["edl_individual_broken"]  # reproduces a fault: bound to know nothing
COMPETITORS = [name for name in EVERY if name not in REFERENCES]
SOUND = [name for name in COMPETITORS if name not in FAULTY]


@pytest.mark.parametrize("name", EVERY)
def test_answers_are_one_distribution_per_entity(name: str) -> None:
    _, _, test = parts()
    assert len(np.unique(test.segments.counts)) > 1  # entities with different numbers of items
    found = fitted(1)[name].predict_proba(test)
    assert found.shape == (len(test.dataset), 3)
    assert found.dtype == np.float64
    assert (found >= 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_answers(name: str) -> None:
    _, _, test = parts()
    first, second = (fitted(time)[name].predict_proba(test) for time in (1, 2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", EVERY)
def test_the_order_of_items_makes_no_difference(name: str) -> None:
    _, _, test = parts()
    backwards = reordered(test, [np.arange(count)[::-1] for count in test.segments.counts])
    first, second = (fitted(1)[name].predict_proba(each) for each in (test, backwards))
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_one_entity_alone_is_answered_as_among_others(name: str) -> None:
    _, _, test = parts()
    alone = test.select(np.array([7]))
    found = fitted(1)[name].predict_proba(alone)
    np.testing.assert_allclose(found[0], fitted(1)[name].predict_proba(test)[7], atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_one_item_is_enough(name: str) -> None:
    _, _, test = parts()
    single = reordered(test, [np.arange(1)] * len(test.dataset))
    found = fitted(1)[name].predict_proba(single)
    metrics.confidences(found)  # refuses what is no distribution
    assert found.shape == (len(test.dataset), 3)


@pytest.mark.parametrize("name", [*COMPETITORS, "prior"])
def test_no_method_uses_the_labels_of_test_entities(name: str) -> None:
    _, _, test = parts()
    found = fitted(1)[name].predict_proba(without_labels(test))
    np.testing.assert_array_equal(found, fitted(1)[name].predict_proba(test))


@pytest.mark.parametrize("name", SOUND)
def test_every_competitor_beats_the_prior_and_none_the_perfect_reader(name: str) -> None:
    _, _, test = parts()
    labels = test.dataset.labels(predicate())
    found, prior, perfect = (
        metrics.log_losses(fitted(1)[one].predict_proba(test), labels).mean()
        for one in (name, "prior", "perfect_reader")
    )
    assert perfect < found < prior


def test_the_oracle_is_always_right() -> None:
    _, _, test = parts()
    found = fitted(1)["oracle"].predict_proba(test)
    assert metrics.nll(found, test.dataset.labels(predicate())) == 0.0


@pytest.mark.parametrize(
    "name", ["deep_sets", "deterministic_average", "edl_individual", "relational_graph"]
)
def test_another_seed_trains_another_network(name: str) -> None:
    train, validation, test = parts()
    other = made(name).fit(train, validation, predicate(), 6).predict_proba(test)
    assert np.abs(other - fitted(1)[name].predict_proba(test)).max() > 1e-4


def test_all_run_together_and_only_references_keep_their_answers() -> None:
    outcomes = run_methods(make_methods(shared(), EVERY), *parts(), predicate(), seed=5)
    assert list(outcomes) == EVERY
    for name, outcome in outcomes.items():
        assert (outcome.temperature is None) == (name in REFERENCES)
        if name not in FAULTY:  # answers that are all alike have nothing to temper
            same = bool(np.array_equal(outcome.raw, outcome.tempered))
            assert same == (name in REFERENCES)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="majority_votes"):
        make_methods(Shared(), ["majority_votes"])


@pytest.mark.parametrize(
    ("name", "lacking"), [("vae_only", "model"), ("lpf_learned_published", "published")]
)
def test_a_method_without_its_model_is_refused(name: str, lacking: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: needs.*Shared\({lacking}="):
        make_methods(Shared(), [name])
