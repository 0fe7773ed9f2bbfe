"""The building blocks of methods, compared with results worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from baseline_examples import SEED, fitted, made, model, parts, predicate, small_items

from builders import features, model_config, sharp_tensors
from lpf.baselines.dawid_skene import Votes, fit_confusions
from lpf.baselines.item_models import ItemModel, natural_shares
from lpf.baselines.linear import Labelled, fit_regression, summaries
from lpf.baselines.networks import Bags, fresh
from lpf.baselines.set_networks import EvidentialNetwork
from lpf.combine import Segments
from lpf.errors import ConfigError, DatasetError, TrainingError
from lpf.model.config import PredicateHead
from lpf.model.networks import keep_all
from lpf.model.runtime import Runtime
from lpf.training.fitting import answers
from lpf.types import QueryOptions

RAGGED = Bags.of(np.arange(12, dtype=np.float32).reshape(6, 2), np.array([1, 3, 2]))


def test_bags_are_taken_with_all_their_items() -> None:
    taken = RAGGED.take(torch.tensor([2, 0]))
    assert taken.counts.tolist() == [2, 1]
    assert taken.features[0].tolist() == [[8, 9], [10, 11], [0, 1]]


def test_sums_and_means_are_over_the_items_of_a_bag() -> None:
    assert RAGGED.sum(RAGGED.features)[0].tolist() == [[0, 1], [12, 15], [18, 20]]
    assert RAGGED.mean(RAGGED.features)[0].tolist() == [[0, 1], [4, 5], [9, 10]]


def test_the_softmax_of_a_bag_survives_scores_far_below_another_bags() -> None:
    scores = torch.tensor([900.0, -900.0, -900.0, -900.0 - np.log(2), 0.0, np.log(3)])
    found = RAGGED.softmax(scores[None, :, None])[0, :, 0].numpy()
    np.testing.assert_allclose(found, [1, 0.4, 0.4, 0.2, 0.25, 0.75], atol=1e-4)


def test_the_evidential_loss_by_hand() -> None:
    """α = (2, 1): p = (2/3, 1/3), squares 2/9, variances 2·(2/9)/4 = 1/9; α̃ is (1, 1) when the
    evidence is for the right value, and (2, 1) when not, whose KL is log 2 - 1/2."""
    network = EvidentialNetwork(individual=False)
    outputs = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]], dtype=torch.float64)
    early, late = (network.losses(outputs, torch.tensor([0, 1]), epoch) for epoch in (0, 50))
    wrong = 2 * (2 / 3) ** 2 + 1 / 9
    np.testing.assert_allclose(early, [1 / 3, wrong])
    np.testing.assert_allclose(late, [1 / 3, wrong + np.log(2) - 0.5])
    np.testing.assert_allclose(network.probabilities(outputs)[0], [[2 / 3, 1 / 3]] * 2)


def test_individual_evidence_adds_up_over_items() -> None:
    network = EvidentialNetwork(individual=True)
    weights = {name: torch.tensor(one) for name, one in fresh(network.shapes(4, 3), 0).items()}
    rows = features(5, width=4)
    alone, together = (
        network.outputs(weights, Bags.of(rows, np.array(counts)), keep_all)[0]
        for counts in ([1, 1, 1, 1, 1], [2, 3])
    )
    expected = torch.stack([alone[:2].sum(dim=0), alone[2:].sum(dim=0)])
    np.testing.assert_allclose(together, expected, rtol=1e-5)


def test_the_correct_evidential_network_learns_and_the_broken_one_does_not() -> None:
    _, _, test = parts()
    labels = test.dataset.labels(predicate())
    sound, faulty = (
        fitted(1)[name].predict_proba(test) for name in ("edl_individual", "edl_individual_broken")
    )
    assert (sound.argmax(axis=1) == labels).mean() > 0.8
    assert np.ptp(faulty, axis=0).max() < 0.01


def test_item_answers_are_brought_back_to_the_natural_shares() -> None:
    """A model trained on balanced batches: Φ·natural/π, normalised."""
    head = PredicateHead("level", ("low", "medium", "high"), (1 / 3, 1 / 3, 1 / 3))
    config = model_config(predicates=(head,), aggregator=None)
    natural = np.array([0.7, 0.2, 0.1])
    items = ItemModel(Runtime(config, sharp_tensors(config)), "level", natural)
    _, _, test = parts()
    few = test.select(np.arange(3))
    few = replace(few, features=features(len(few.features)))
    expected = items.factors(few) * natural
    np.testing.assert_allclose(
        items.probabilities(few), expected / expected.sum(axis=1, keepdims=True)
    )


def test_a_model_trained_without_balancing_needs_no_correction() -> None:
    train, _, test = parts()
    items = ItemModel(model(), predicate(), natural_shares(train, predicate()))
    np.testing.assert_allclose(items.shares, items.natural)
    np.testing.assert_allclose(items.probabilities(test), items.factors(test))


def test_the_item_classifier_is_trained_once_for_all_methods() -> None:
    train, validation, _ = parts()
    items = small_items()
    first = items.model(train, validation, predicate(), 1)
    assert items.model(train, validation, predicate(), 1) is first
    changed = replace(train, features=train.features + np.float32(0.01))
    for other in ((train, validation, 2), (changed, validation, 1)):
        assert items.model(*other[:2], predicate(), other[2]) is not first


def test_outputs_out_of_fold_do_not_know_the_items_own_labels() -> None:
    """Where one entity's items are relabelled, its own outputs stay, bit for bit; others' move."""
    train, validation, _ = parts()
    values = train.dataset.schema[predicate()].values
    first, *rest = train.dataset.entities
    wrong = {predicate(): values[(values.index(first.labels[predicate()]) + 1) % len(values)]}
    relabelled = replace(
        first, evidence=tuple(replace(item, labels=wrong) for item in first.evidence)
    )
    changed = replace(train, dataset=replace(train.dataset, entities=(relabelled, *rest)))
    before, after = (
        small_items().out_of_fold(each, validation, predicate(), 1) for each in (train, changed)
    )
    own = len(first.evidence)
    # The shares behind the outputs count all labels, so they differ in the last digits.
    np.testing.assert_allclose(before[:own], after[:own], rtol=1e-12)
    assert np.abs(before[own:] - after[own:]).max() > 1e-4


def test_summaries_for_stacking_by_hand() -> None:
    rows = np.array([[0.5, 0.5], [0.8, 0.2], [0.4, 0.6]])
    found = summaries(rows, Segments.of_counts([1, 2]))
    logs = np.log(rows)
    np.testing.assert_allclose(found[0], [*logs[0], 0.5, 0.5, 0.5, 0.5, 0.0], atol=1e-9)
    mean = (logs[1] + logs[2]) / 2
    np.testing.assert_allclose(found[1], [*mean, 0.8, 0.6, 0.4, 0.2, np.log(2)], atol=1e-9)


@pytest.mark.parametrize("values", [2, 3])
def test_the_regression_finds_the_logits_that_made_the_labels(values: int) -> None:
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((6000, 2))
    logits = inputs @ generator.standard_normal((2, values)) * 2
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array([generator.choice(values, p=row) for row in chances], dtype=np.intp)
    train, held = (
        Labelled(inputs[part], labels[part]) for part in (slice(4000), slice(4000, None))
    )
    found = fit_regression(train, held, values).probabilities(inputs)
    np.testing.assert_allclose(found, chances, atol=0.05)


def test_a_regression_without_examples_of_a_value_is_refused() -> None:
    data = Labelled(np.zeros((4, 1)), np.array([0, 0, 2, 2]))
    with pytest.raises(TrainingError, match="position 1"):
        fit_regression(data, data, 3)


def crowd(seed: int = 0) -> tuple[Votes, np.ndarray]:
    """2,000 entities, two good workers, one that is wrong in a way of its own, one that guesses."""
    generator = np.random.default_rng(seed)
    truth = generator.choice(3, p=[0.5, 0.3, 0.2], size=2000)
    good = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    swapped = good[[1, 0, 2]]
    tables = [good, good, swapped, np.full((3, 3), 1 / 3)]
    votes = [[generator.choice(3, p=table[value]) for table in tables] for value in truth.tolist()]
    workers = np.tile(np.arange(4), 2000)
    return Votes(np.array(votes).reshape(-1), workers, Segments.of_counts([4] * 2000)), truth


def test_dawid_skene_finds_reliable_sources() -> None:
    votes, truth = crowd()
    found = fit_confusions(votes, 4, 3)
    chances = np.exp(found.log_chances)
    assert np.diag(chances[0]).min() > 0.8
    assert chances[2][1, 0] > 0.8  # the third says the second value where the first is true
    np.testing.assert_allclose(chances[3], 1 / 3, atol=0.08)
    np.testing.assert_allclose(np.exp(found.log_shares), [0.5, 0.3, 0.2], atol=0.05)
    majority = votes.segments.sum(np.eye(3)[votes.values]).argmax(axis=1)
    right = (found.posterior(votes).argmax(axis=1) == truth).mean()
    assert right > (majority == truth).mean() + 0.05


def test_an_unknown_source_counts_as_an_average_one() -> None:
    votes, _ = crowd()
    found = fit_confusions(votes, 4, 3)
    stranger = Votes(np.array([0]), np.array([4]), Segments.of_counts([1]))
    guesser = Votes(np.array([0]), np.array([3]), Segments.of_counts([1]))
    good = Votes(np.array([0]), np.array([0]), Segments.of_counts([1]))
    one, two, three = (found.posterior(each)[0, 0] for each in (guesser, stranger, good))
    assert one < two < three


def test_plain_product_by_hand() -> None:
    """P ∝ P₀·Π Φᵢ/π."""
    train, validation, test = parts()
    method = made("spn_only")
    product = method.fit(train, validation, predicate(), SEED)
    few = test.select(np.arange(4))
    items = product.items  # type: ignore[attr-defined]
    ratios = np.log(items.factors(few)) - np.log(items.shares)
    prior = np.log(np.array(few.dataset.schema[predicate()].prior))
    scores = prior + few.segments.sum(ratios)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(product.predict_proba(few), expected)


def test_robust_answers_use_the_models_fitted_parameters() -> None:
    """Fitted again on the same validation entities, the numbers come out the same."""
    _, _, test = parts()
    shipped = answers(model(), test.dataset.schema, predicate(), test, QueryOptions())
    np.testing.assert_allclose(fitted(1)["lpf_robust"].predict_proba(test), shipped, atol=1e-9)


def test_a_single_member_gets_numbers_of_its_own() -> None:
    train, validation, _ = parts()
    found = [
        made(name).fit(train, validation, predicate(), SEED)
        for name in ("lpf_robust", "lpf_robust_single")
    ]
    ensemble, single = (one.engine.robust_parameters(predicate()) for one in found)
    assert ensemble.fitted
    assert single.fitted
    assert ensemble != single


def test_paper_mode_uses_the_best_member_and_the_seed() -> None:
    train, validation, test = parts()
    schema = test.dataset.schema
    for name, options in (
        ("lpf_paper", QueryOptions.paper()),
        ("lpf_paper_best", QueryOptions.paper_best()),
    ):
        expected = answers(model(), schema, predicate(), test, replace(options, seed=SEED))
        found = made(name).fit(train, validation, predicate(), SEED).predict_proba(test)
        np.testing.assert_array_equal(found, expected)


def test_the_perfect_reader_refuses_what_it_cannot_know() -> None:
    train, validation, _ = parts()
    other = [each.name for each in train.dataset.schema][1]
    with pytest.raises(ConfigError, match=other):
        made("perfect_reader").fit(train, validation, other, 1)
    entities = tuple(replace(entity, truth=None) for entity in validation.dataset)
    bare = replace(validation, dataset=replace(validation.dataset, entities=entities))
    with pytest.raises(DatasetError, match="perfect"):
        made("perfect_reader").fit(train, bare, predicate(), 1)
