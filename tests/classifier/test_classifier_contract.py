"""The classifier answers the same as trainer and engine on the same data."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from classifier_examples import (
    FAST,
    dataset_of,
    fitted,
    in_splits,
    plain_reader,
    suppliers,
    texts_of,
)

from lpf import LPFClassifier, QueryOptions
from lpf.datasets import Dataset
from lpf.engine import Engine
from lpf.errors import DatasetError
from lpf.model.config import AggregatorConfig
from lpf.reading import Reader, open_reader
from lpf.training import Trained, Trainer, TrainingConfig, make_examples, read_features, train_small
from lpf.training.lexical import with_logits

SEEDS = FAST["seeds"]
CONFIG = TrainingConfig(**{k: v for k, v in FAST.items() if k != "seeds"}, aggregator=None)
COUNT = 60


def trained(
    dataset: Dataset, config: TrainingConfig = CONFIG, reader: Reader | None = None
) -> Trained:
    reader = reader or plain_reader()
    examples = make_examples(dataset, read_features(dataset, reader))
    return Trainer(examples, reader.reader_id, ("label",), config, SEEDS).run()


def answered(
    model: Trained, asked: Dataset, options: QueryOptions, reader: Reader | None = None
) -> np.ndarray:
    examples = make_examples(asked, read_features(asked, reader or plain_reader()))
    engine = Engine(model.runtime(), asked.schema)
    items = with_logits(examples, engine.runtime.words).items
    rows = engine.countable(items, "label", options)
    return engine.answer(
        items if rows is None else items.select(rows), "label", options
    ).distribution


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({}, QueryOptions()),
        ({"variant": "learned"}, QueryOptions(variant="learned")),
        (
            {"mode": "paper", "alpha": 0.1, "n_samples": 4},
            QueryOptions(mode="paper", alpha=0.1, n_samples=4, seed=42),
        ),
    ],
    ids=["robust", "learned", "paper"],
)
def test_answers_equal_those_of_trainer_and_engine(
    parameters: dict[str, object], options: QueryOptions
) -> None:
    X, y = suppliers(COUNT)
    asked, _ = suppliers(12, seed=1, first=1000)
    learned = options.variant == "learned"
    config = replace(CONFIG, aggregator=AggregatorConfig() if learned else None)
    model = trained(in_splits(dataset_of(X, y)), config)
    classifier = LPFClassifier(**FAST, **parameters).fit(X, y)
    wanted = answered(model, dataset_of(asked, ["bad"] * 12), options)
    np.testing.assert_allclose(classifier.predict_proba(asked), wanted, rtol=0, atol=1e-9)
    assert classifier.warnings_ == model.warnings


def test_few_entities_go_through_folds() -> None:
    X, y = suppliers(12)
    asked, _ = suppliers(8, seed=1, first=1000)
    dataset, reader = dataset_of(X, y), plain_reader()
    examples = make_examples(dataset, read_features(dataset, reader))
    model = train_small(examples, reader.reader_id, ("label",), CONFIG, SEEDS)
    classifier = LPFClassifier(**FAST).fit(X, y)
    wanted = answered(model, dataset_of(asked, ["bad"] * 8), QueryOptions())
    np.testing.assert_allclose(classifier.predict_proba(asked), wanted, rtol=0, atol=1e-9)
    assert any("of 12 unseen entities" in warning for warning in classifier.warnings_)


def test_any_number_of_validation_entities_can_be_given() -> None:
    X, y = suppliers(30)
    more, labels = suppliers(10, seed=2, first=500)
    every = dataset_of(X + more, y + labels)
    every = every.in_splits(["train"] * 30 + ["validation"] * 10)
    asked, _ = suppliers(8, seed=1, first=1000)
    wanted = answered(trained(every), dataset_of(asked, ["bad"] * 8), QueryOptions())
    classifier = LPFClassifier(**FAST).fit(X, y, validation=(more, labels))
    np.testing.assert_allclose(classifier.predict_proba(asked), wanted, rtol=0, atol=1e-9)
    assert "30 train, 10 validation" in classifier.card_.data


def test_groups_are_never_split() -> None:
    X, y = suppliers(COUNT)
    groups = [f"owner {place // 6}" for place in range(COUNT)]
    dataset = in_splits(dataset_of(X, y, groups=groups))
    sides = {(entity.group_id, entity.split) for entity in dataset}
    assert len(sides) == len(set(groups))
    wanted = answered(trained(dataset), dataset, QueryOptions())
    classifier = LPFClassifier(**FAST).fit(X, y, groups=groups)
    np.testing.assert_allclose(classifier.predict_proba(X), wanted, rtol=0, atol=1e-9)
    apart = fitted().predict_proba(X)
    assert np.abs(apart - wanted).max() > 1e-6


def test_a_group_on_both_sides_of_validation_is_refused() -> None:
    X, y = suppliers(8)
    with pytest.raises(DatasetError, match="'b' is in both X and validation X"):
        LPFClassifier(**FAST).fit(
            X[:4], y[:4], groups=["a", "b", "c", None], validation=(X[4:], y[4:], list("bdef"))
        )


def test_evidence_is_read_with_its_claim() -> None:
    X, y = suppliers(COUNT)
    claim = "The supplier can be trusted."
    dataset, reader = dataset_of(X, y, claim=claim), open_reader(with_claim=True)
    model = trained(in_splits(dataset), reader=reader)
    claimed = [{"claim": claim, "evidence": items} for items in X]
    classifier = LPFClassifier(**FAST).fit(claimed, y)
    wanted = answered(model, dataset, QueryOptions(), reader)
    np.testing.assert_allclose(classifier.predict_proba(claimed), wanted, rtol=0, atol=1e-9)


def test_the_prior_is_the_shares_of_y_unless_one_is_given() -> None:
    X, y = suppliers(12)
    X, y = X[:8] + X[8::2], y[:8] + y[8::2]
    assert (y.count("bad"), y.count("good")) == (4, 6)
    plain = LPFClassifier(**FAST).fit(X, y)
    np.testing.assert_allclose(plain.predict_proba([[], []]), [[0.4, 0.6]] * 2)
    given = LPFClassifier(**FAST, prior={"good": 0.2, "bad": 0.8}).fit(X, y)
    np.testing.assert_allclose(given.predict_proba([[]]), [[0.8, 0.2]])


@pytest.mark.parametrize("variant", ["spn", "learned"])
def test_an_entity_without_evidence_gets_the_prior_and_changes_no_other(variant: str) -> None:
    X, _ = suppliers(5)
    alone = fitted(variant).predict_proba(X)
    among = fitted(variant).predict_proba([[], *X[:3], [], *X[3:]])
    np.testing.assert_allclose(among[[1, 2, 3, 5, 6]], alone, rtol=0, atol=1e-12)
    np.testing.assert_allclose(among[[0, 4]], 0.5)
    doubt = fitted(variant).uncertainty([X[0], []], samples=4)
    np.testing.assert_allclose(doubt.aleatoric[1], np.log(2))
    np.testing.assert_allclose(doubt.epistemic[1], 0.0)
    assert doubt.epistemic[0] > 0.0


def test_entities_without_evidence_are_left_out_of_training_and_counted() -> None:
    X, y = suppliers(8)
    classifier = LPFClassifier(**FAST).fit([*X[:3], [], *X[3:]], [*y[:3], "good", *y[3:]])
    assert "1 entity has no evidence and was left out (first: X[3])." in classifier.warnings_


def test_it_learns_from_texts() -> None:
    X, y = suppliers(COUNT)
    assert fitted().predict([["All came on time and the customer was happy."]]) == ["good"]
    assert fitted().predict([["The goods were broken, late, the invoices forged."]]) == ["bad"]
    assert fitted().score(texts_of(X), y) > 0.75


def test_a_threshold_of_the_model_applies_to_answers_and_explanations() -> None:
    """Items below it count neither in probabilities nor in explanations."""
    model = fitted()._fitted
    assert model is not None
    config = replace(model.artefact.config, min_credibility={"label": 0.3})
    strict = replace(model, artefact=replace(model.artefact, config=config))
    texts = ("Order 1 arrived in time.", "Audit 2 found forged invoices.")
    good, bad = (
        {"text": text, "credibility": c} for text, c in zip(texts, (0.9, 0.2), strict=True)
    )
    classifier = copy(fitted())
    classifier._fitted = strict
    both, alone, none = classifier.predict_proba([[good, bad], [good], [bad]])
    np.testing.assert_array_equal(both, alone)
    np.testing.assert_allclose(none, model.prior)
    assert not np.allclose(fitted().predict_proba([[good, bad]])[0], both)
    first, second = classifier.explain([[good, bad], [bad]])
    assert [item.name for item in (*first.items, *second.items)] == ["E1"]
    assert [one.evidence_ids for one in (*first.not_used, *second.not_used)] == [("E2",), ("E1",)]
    assert second.method == "prior"
