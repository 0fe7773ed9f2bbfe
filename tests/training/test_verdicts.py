"""A few labels, where verdicts can be given without any: they must not make answers worse."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from training_examples import SMALL

from lpf.datasets import Dataset, DatasetEntity, DatasetItem, assign_splits
from lpf.engine import Engine
from lpf.model.runtime import Runtime
from lpf.model.zero_label import ZeroLabelNumbers
from lpf.reading.stance import HIDDEN_WIDTH, STANCE_WIDTH
from lpf.schema import Predicate, Schema
from lpf.training import Examples, Trainer, make_examples, train_small
from lpf.training.fitting import answers
from lpf.training.linear import VERDICTS, LinearSearch, LinearSettings, LinearTrainer
from lpf.training.small_data import FoldResult, is_better, unfitted_result
from lpf.types import QueryOptions

READER = "pair(hash@4)+stance(cue)"
START = 4 * 4 + HIDDEN_WIDTH
WIDTH = 4 * 4 + STANCE_WIDTH
VALUES = ("REFUTES", "SUPPORTS", "NEI")
NUMBERS = ZeroLabelNumbers(
    ("supported", "refuted", "not_enough"),
    ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    (0.1, 0.0, -0.2),
    (0.1, 0.15, 0.75),
    1000,
    {},
)
QUICK = replace(SMALL, model="best", aggregator=None)


@pytest.fixture(autouse=True)
def _numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lpf.training.linear.installed_head", NUMBERS.head)


def claims(
    entities: int, *, seed: int = 0, means: tuple[int, ...] = (1, 0, 2), splits: bool = False
) -> Examples:
    """Labels drawn from the verdicts without labels; ``means`` says which stance each value goes
    with. Everything but the stances is noise."""
    drawn = np.random.default_rng(seed)
    counts = drawn.integers(1, 4, entities)
    features = drawn.standard_normal((int(counts.sum()), WIDTH)).astype(np.float32)
    features[:, START:] = 2.0 * drawn.standard_normal((len(features), 3))
    schema = Schema((Predicate("label", VALUES),))
    made = [
        DatasetEntity(
            f"C{place}",
            {"label": VALUES[0]},
            tuple(DatasetItem(f"C{place}_{n}", f"text {place} {n}") for n in range(count)),
            claim=f"claim {place}",
        )
        for place, count in enumerate(counts.tolist())
    ]
    examples = make_examples(Dataset("claims", schema, tuple(made)), features, None)
    said = without_labels(examples)[
        :, [VALUES.index(one) for one in ("SUPPORTS", "REFUTES", "NEI")]
    ]
    chosen = [int(drawn.choice(3, p=row)) for row in said[:, list(means)]]
    entities_ = [
        replace(one, labels={"label": VALUES[value]})
        for one, value in zip(made, chosen, strict=True)
    ]
    dataset = Dataset("claims", schema, tuple(entities_))
    if splits:
        dataset = assign_splits(dataset, "label", seed=1)
    return replace(examples, dataset=dataset)


def without_labels(examples: Examples) -> np.ndarray:
    """What a workspace for claims answers; its prior is not that of the data."""
    prior = tuple(NUMBERS.head(VALUES).silent.tolist())
    runtime = Runtime(*NUMBERS.model("label", VALUES, READER, WIDTH))
    engine = Engine(runtime, Schema((Predicate("label", VALUES, prior),)))
    return engine.answer(examples.items, "label").distribution


def asked(runtime: Runtime, examples: Examples) -> np.ndarray:
    return answers(runtime, examples.dataset.schema, "label", examples, QueryOptions())


def test_verdicts_are_kept_if_labels_add_nothing() -> None:
    """To the last digit, though the prior of the data is another one."""
    model = train_small(claims(24, seed=2), READER, ("label",), QUICK, (1, 2))
    assert model.choice is not None
    assert model.choice.keeps_verdicts
    assert model.choice.linear["label"].is_without_labels
    assert model.is_linear
    assert any("verdicts without labels are kept" in one for one in model.warnings)
    others = claims(50, seed=9)
    np.testing.assert_allclose(asked(model.runtime(), others), without_labels(others), rtol=1e-4)


def test_labels_that_say_otherwise_are_believed() -> None:
    """Refuted and supported are swapped."""
    model = train_small(claims(50, seed=3, means=(0, 1, 2)), READER, ("label",), QUICK, (1, 2))
    assert model.choice is not None
    assert not model.choice.keeps_verdicts
    others = claims(200, seed=9, means=(0, 1, 2))
    labels = others.dataset.labels("label")
    losses = [
        -np.log(one[np.arange(200), labels]).mean()
        for one in (asked(model.runtime(), others), without_labels(others))
    ]
    assert losses[0] < losses[1] - 0.1


def test_a_fit_lies_between_the_verdicts_and_the_labels() -> None:
    examples = claims(60, seed=4, means=(0, 1, 2))
    trainer = LinearTrainer(examples, START)
    assert VERDICTS in trainer.sources("label")
    labels = examples.dataset.labels("label")
    losses = {}
    for penalty in (inf, 1.0, 0.01):
        model = trainer.runtime({"label": LinearSettings(VERDICTS, penalty)}, (1,), READER)
        assert model.config.head_familiarity == {"label": None}
        weight = model.tensors["encoder.mu.weight"][0]
        assert not weight[:START].any()
        found = asked(model, examples)
        losses[penalty] = -np.log(found[np.arange(60), labels]).mean()
        if penalty == inf:
            np.testing.assert_allclose(weight[START:], NUMBERS.head(VALUES).weight, rtol=1e-6)
    assert losses[inf] > losses[1.0] > losses[0.01]


def test_folds_choose_how_far_labels_are_followed() -> None:
    penalties = []
    for means in ((1, 0, 2), (0, 1, 2)):
        examples = claims(100, seed=5, means=means)
        halves = [np.arange(50), np.arange(50, 100)]
        trainers = [LinearTrainer(examples.select(one), START) for one in reversed(halves)]
        found = LinearSearch(examples, trainers, halves).best_settings("label", [VERDICTS])
        penalties.append(found.settings.penalty)
    assert penalties[0] >= 10 * penalties[1]


def test_larger_data_can_start_from_the_verdicts_too() -> None:
    """Everything but the stances is noise, so nothing else is worth fitting to."""
    examples = claims(150, seed=7, splits=True)
    model = Trainer(examples, READER, ("label",), QUICK, (1, 2)).run()
    assert model.choice is not None
    assert model.choice.linear["label"].source == VERDICTS
    others = claims(300, seed=9)
    labels = others.dataset.labels("label")
    ours, without = (
        -np.log(one[np.arange(300), labels]).mean()
        for one in (asked(model.runtime(), others), without_labels(others))
    )
    assert ours < without + 0.05


def test_without_stances_or_verdicts_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert VERDICTS not in LinearTrainer(claims(30)).sources("label")
    monkeypatch.setattr("lpf.training.linear.installed_head", lambda values: None)
    assert VERDICTS not in LinearTrainer(claims(30), START).sources("label")
    model = train_small(claims(24, seed=1), READER, ("label",), QUICK, (1, 2))
    assert model.choice is not None
    assert not model.choice.keeps_verdicts


def test_a_model_replaces_the_verdicts_if_it_is_better_by_two_standard_errors() -> None:
    def result(*losses: float) -> dict[str, FoldResult]:
        by_entity = {f"C{place}": loss for place, loss in enumerate(losses)}
        fitted = train_result()
        return {"label": replace(fitted, scores=replace(fitted.scores, losses=by_entity))}

    verdicts = result(1.0, 1.0, 1.0, 1.0)
    # The mean gain is 0.2 and 0.4; in both cases its standard error is 0.15.
    assert not is_better(result(1.1, 0.5, 1.1, 0.5), verdicts)
    assert is_better(result(0.9, 0.3, 0.9, 0.3), verdicts)


def train_result() -> FoldResult:
    examples = claims(10)
    runtime = LinearTrainer(examples, START).runtime(
        {"label": LinearSettings(VERDICTS, inf)}, (1,), READER
    )
    return unfitted_result(runtime, examples, "label")
