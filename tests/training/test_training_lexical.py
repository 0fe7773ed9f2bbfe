"""The regression on words: what it learns, additive logits, and logits of held-out items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lpf import metrics
from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.errors import TrainingError
from lpf.factors.distributions import softmax
from lpf.reading import ReadRequest
from lpf.reading.fitted_words import FittedWords
from lpf.reading.lexical import BUCKETS, part_range
from lpf.schema import Predicate, Schema
from lpf.training import Examples, make_examples
from lpf.training.examples import item_requests
from lpf.training.lexical import (
    VIEWS,
    LexicalFit,
    entity_logits,
    fit_lexical,
    item_weights,
)

VALUES = ("bad", "good")
SIGNS = (("late", "forged", "missing"), ("prompt", "sound", "complete"))
FILLING = ("the", "order", "of", "this", "week", "its", "papers", "were", "seen", "by", "noon")


def written(value: int, generator: np.random.Generator) -> str:
    """Filling words, among them one that mostly fits the value."""
    shown = value if generator.random() < 0.8 else 1 - value
    words = [*generator.choice(FILLING, 7), generator.choice(SIGNS[shown])]
    return " ".join(generator.permutation(words))


def made(entities: int = 80, *, groups: int | None = None, seed: int = 0) -> Examples:
    generator = np.random.default_rng(seed)
    made = [
        DatasetEntity(
            f"C{place}",
            {"state": VALUES[place % 2]},
            tuple(
                DatasetItem(f"C{place}_{item}", written(place % 2, generator))
                for item in range(1 + place % 3)
            ),
            group_id=None if groups is None else f"G{place // 2 % groups}",
        )
        for place in range(entities)
    ]
    return examples_of(Dataset("made up", Schema((Predicate("state", VALUES),)), tuple(made)))


def examples_of(dataset: Dataset) -> Examples:
    """The features are not used."""
    return make_examples(dataset, np.zeros((len(list(dataset.items)), 1), np.float32), None)


@pytest.fixture(scope="module")
def examples() -> Examples:
    return made()


@pytest.fixture(scope="module")
def fit(examples: Examples) -> LexicalFit:
    return fit_lexical(examples, "state", seed=1)


def nll(examples: Examples, logits: np.ndarray) -> float:
    return metrics.nll(softmax(logits), examples.dataset.labels("state"))


def item_logits(fit: LexicalFit, requests: list[ReadRequest]) -> np.ndarray:
    return FittedWords({"state": fit.model}).logits(requests)


def test_it_learns_the_words_that_matter(fit: LexicalFit) -> None:
    fresh = made(seed=9)
    assert nll(fresh, entity_logits(fit.model, fresh)) < 0.55
    bad, good = item_logits(fit, [ReadRequest("it was late"), ReadRequest("it was prompt")])
    assert bad[0] - bad[1] > good[0] - good[1]


def test_arrays_have_the_documented_shapes(fit: LexicalFit, examples: Examples) -> None:
    assert fit.model.idf.shape == (BUCKETS,)
    assert fit.model.weight.shape == (BUCKETS, 2)
    assert fit.model.bias.shape == (2,)
    assert {array.dtype for array in (fit.model.idf, fit.model.weight)} == {np.dtype(np.float32)}
    assert fit.cross_fitted.shape == (len(examples.features), 2)


def test_an_entity_has_the_mean_of_its_items(fit: LexicalFit, examples: Examples) -> None:
    items = item_logits(fit, item_requests(examples.dataset))
    means = [items[examples.segments.rows(place)].mean(axis=0) for place in range(80)]
    np.testing.assert_allclose(entity_logits(fit.model, examples), means, atol=1e-6)


def test_a_copy_changes_nothing(fit: LexicalFit, examples: Examples) -> None:
    first = examples.dataset.entities[1]
    copy = replace(first.evidence[0], evidence_id="copy")
    twice = replace(first, evidence=(*first.evidence, copy))
    alone, copied = (
        entity_logits(fit.model, examples_of(replace(examples.dataset, entities=(one,))))
        for one in (first, twice)
    )
    np.testing.assert_allclose(copied, alone, atol=1e-6)


def test_the_same_seed_gives_the_same_fit(fit: LexicalFit, examples: Examples) -> None:
    again = fit_lexical(examples, "state", seed=1)
    np.testing.assert_array_equal(again.model.weight, fit.model.weight)
    np.testing.assert_array_equal(again.cross_fitted, fit.cross_fitted)
    assert (again.view, again.penalty) == (fit.view, fit.penalty)


def test_cross_fitted_logits_have_the_stated_nll(fit: LexicalFit, examples: Examples) -> None:
    weighted = item_weights(examples)[:, None] * fit.cross_fitted
    assert nll(examples, examples.segments.sum(weighted)) == pytest.approx(fit.nll, abs=1e-4)
    assert nll(examples, entity_logits(fit.model, examples)) < fit.nll  # it has seen these


def test_cross_fitted_logits_do_not_depend_on_the_own_group() -> None:
    """With two groups, each is answered by the fit to the other: labels of one that are changed
    throughout change its own answers in scale only."""
    examples = made(60, groups=2)
    ours = np.array([entity.group_id == "G0" for entity in examples.dataset])
    turned = replace(
        examples.dataset,
        entities=tuple(
            replace(entity, labels={"state": VALUES[place // 4 % 2]}) if mine else entity
            for place, (entity, mine) in enumerate(zip(examples.dataset, ours, strict=True))
        ),
    )
    first, second = (
        fit_lexical(one, "state", seed=1, views=VIEWS[:1], penalties=(1.0,)).cross_fitted
        for one in (examples, replace(examples, dataset=turned))
    )
    rows = np.repeat(ours, examples.segments.counts)
    odds, other = (one[rows, 1] - one[rows, 0] for one in (first, second))
    assert abs(np.corrcoef(odds, other)[0, 1]) == pytest.approx(1.0, abs=1e-6)


def test_entities_without_a_label_are_answered_but_not_fitted_to(examples: Examples) -> None:
    first = replace(examples.dataset.entities[0], labels={})
    unlabelled = replace(examples.dataset, entities=(first, *examples.dataset.entities[1:]))
    found = fit_lexical(replace(examples, dataset=unlabelled), "state", seed=1)
    items = item_logits(found, item_requests(unlabelled))
    np.testing.assert_allclose(found.cross_fitted[:1], items[:1], atol=1e-4)


def test_many_entities_choose_on_some_of_them(
    examples: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("lexical", "ridge"):
        monkeypatch.setattr(f"lpf.training.{module}.MOST_ROWS", 40)
    found = fit_lexical(examples, "state", seed=1)
    fresh = made(seed=9)
    assert nll(fresh, entity_logits(found.model, fresh)) < 0.6


def test_a_claim_decides_what_its_words_mean() -> None:
    """Whether the text repeats a rare word of its claim: no single word gives that away."""
    generator = np.random.default_rng(4)
    names = [f"name{number}" for number in range(400)]
    made = []
    for place in range(200):
        mine, other = generator.choice(names, 2, replace=False)
        text = f"the firm {mine if place % 2 else other} paid its bill for name"
        item = DatasetItem(f"C{place}_0", text)
        label = {"state": VALUES[place % 2]}
        made.append(DatasetEntity(f"C{place}", label, (item,), claim=f"{mine} pays"))
    examples = examples_of(Dataset("claims", Schema((Predicate("state", VALUES),)), tuple(made)))
    plain = replace(
        examples.dataset, entities=tuple(replace(one, claim=None) for one in examples.dataset)
    )
    assert fit_lexical(replace(examples, dataset=plain), "state", seed=1).nll > 0.65
    found = fit_lexical(examples, "state", seed=1)
    assert found.nll < 0.3
    assert found.model.weight[part_range("overlap")].any()


def test_one_group_is_refused() -> None:
    with pytest.raises(TrainingError, match="two groups"):
        fit_lexical(made(20, groups=1), "state", seed=1)
