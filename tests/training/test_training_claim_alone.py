"""Beside every model: what the claim alone says, and whether the model is better."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_examples import LEVEL, OUTCOME, SMALL, VALUES

from lpf.datasets import Dataset, DatasetEntity, DatasetItem, assign_splits
from lpf.model.artefact import load_model
from lpf.schema import Schema
from lpf.training import Examples, Trainer, make_examples, train_head, train_small
from lpf.training.claim_alone import fit_claims_alone

READER = "pair(hash@12)"
QUICK = replace(SMALL, aggregator=None, max_epochs=30)


def claimed(
    entities: int,
    *,
    claims: float,
    evidence: float,
    seed: int = 0,
    splits: bool = True,
    predicates: tuple = (LEVEL,),
    wording: str = "claim {}",
) -> Examples:
    """How much claims and evidence tell of the level, which goes round. Two items per entity."""
    drawn = np.random.default_rng(seed)
    values = drawn.permutation(np.arange(entities) % len(VALUES))
    centres = np.random.default_rng(5).standard_normal((len(VALUES), 12))
    of_claims = claims * centres[values] + drawn.standard_normal((entities, 12))
    of_texts = evidence * centres[np.repeat(values, 2)] + drawn.standard_normal((2 * entities, 12))
    both = np.repeat(of_claims, 2, axis=0), of_texts
    features = np.concatenate([*both, np.abs(both[0] - both[1]), both[0] * both[1]], axis=1)
    schema = Schema(predicates)
    labels = [
        {"level": VALUES[value], "outcome": ("bad", "good", "good")[value]} for value in values
    ]
    made = [
        DatasetEntity(
            f"C{place}",
            {name: label[name] for name in label if name in schema},
            tuple(DatasetItem(f"C{place}_{n}", f"text {place} {n}") for n in range(2)),
            claim=wording.format(place),
        )
        for place, label in enumerate(labels)
    ]
    dataset = Dataset("claims", schema, tuple(made))
    if splits:
        dataset = assign_splits(dataset, "level", seed=1)
    return make_examples(dataset, features.astype(np.float32), None)


def trained(examples: Examples, splits: bool):
    if splits:
        return Trainer(examples, READER, ("level",), QUICK, (1, 2)).run()
    return train_small(examples, READER, ("level",), QUICK, (1, 2))


@pytest.mark.parametrize("splits", [True, False])
def test_a_model_whose_evidence_adds_nothing_says_so_first(splits: bool, tmp_path: Path) -> None:
    model = trained(claimed(210, claims=0.7, evidence=0.0, splits=splits), splits)
    scores = model.held_out.by_predicate["level"]
    assert scores.beats_class_shares
    assert scores.beats_claim is False
    assert scores.claim_accuracy > 0.7
    assert scores.claim_gain_low <= 0.0
    assert scores.claim_gain == pytest.approx(scores.claim_nll - scores.nll)
    assert model.warnings[0] == model.card.not_better_than_claim()[0]
    assert model.card.verdicts() == model.card.not_better_than_claim()
    stored = load_model(tmp_path / model.save(tmp_path))
    assert stored.card.held_out()[0].beats_claim is False
    assert model.warnings[0] in stored.card.to_markdown().split("## ")[0]
    assert stored.config.claim_alone == ("level",)
    assert stored.tensors["claim.level.weight"].shape == (12, 3)


@pytest.mark.parametrize("splits", [True, False])
def test_a_model_that_reads_evidence_is_better_than_the_claim(splits: bool) -> None:
    model = trained(claimed(210, claims=0.0, evidence=0.7, splits=splits), splits)
    scores = model.held_out.by_predicate["level"]
    assert scores.beats_claim
    assert scores.claim_gain_low > 0.0
    assert scores.claim_nll == pytest.approx(np.log(3), abs=0.1)
    assert model.card.verdicts() == ()
    assert model.card.metrics[f"level/{model.held_out.place}/beats_claim"] == 1.0


def test_held_out_answers_come_from_fits_without_the_entity() -> None:
    """With labels at random, a fit that has seen an entity is far too sure of its own label."""
    examples = claimed(90, claims=0.0, evidence=0.0)
    labels = np.random.default_rng(3).permutation(
        [entity.labels["level"] for entity in examples.dataset]
    )
    entities = [
        replace(entity, labels={"level": str(value)})
        for entity, value in zip(examples.dataset, labels, strict=True)
    ]
    examples = replace(examples, dataset=replace(examples.dataset, entities=tuple(entities)))
    fit = fit_claims_alone(examples, READER, ("level",), everything=False)["level"]
    known = examples.dataset.labels("level")
    losses = [
        -np.log(fit.held_out[entity.entity_id][label])
        for entity, label in zip(examples.dataset, known, strict=True)
    ]
    assert len(fit.held_out) == 90
    assert np.mean(losses) > np.log(3) - 0.03


def test_the_test_split_is_not_fitted_to() -> None:
    examples = claimed(150, claims=1.0, evidence=0.0)
    is_test = np.array([entity.split == "test" for entity in examples.dataset])
    features = examples.features.copy()
    features[np.repeat(is_test, 2)] += 5.0
    plain, moved = (
        fit_claims_alone(one, READER, ("level",), everything=False)["level"]
        for one in (examples, replace(examples, features=features))
    )
    np.testing.assert_array_equal(plain.model.weight, moved.model.weight)


@pytest.mark.parametrize(
    ("reader", "wording"), [("hash@48", "claim {}"), (READER, "the same for all")]
)
def test_without_different_claims_there_is_nothing_to_fit(reader: str, wording: str) -> None:
    examples = claimed(90, claims=1.0, evidence=1.0, wording=wording)
    assert fit_claims_alone(examples, reader, ("level",), everything=False) == {}


def test_a_head_that_is_added_has_its_own_and_leaves_the_others_alone(tmp_path: Path) -> None:
    both = claimed(210, claims=1.0, evidence=1.0, predicates=(LEVEL, OUTCOME))
    first = load_model(tmp_path / trained(both, True).save(tmp_path))
    grown = train_head(first, both, "outcome", QUICK)
    assert grown.config.claim_alone == ("level", "outcome")
    assert grown.held_out.by_predicate["outcome"].beats_claim is not None
    for name in ("claim.level.weight", "claim.level.bias"):
        np.testing.assert_array_equal(grown.tensors[name], first.tensors[name])
