"""Texts unlike the training texts are recognised; ordinary unseen texts keep their weight.

The texts are read by the real reader: what is tested is a property of its features.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from builders import features, model_config, runtime, schema, sharp_tensors
from lpf import domains
from lpf.engine import Engine, Items
from lpf.errors import ArtefactTensorError, ConfigError
from lpf.model.artefact import ModelCard, load_model, save_model
from lpf.model.config import FamiliarityConfig
from lpf.model.familiarity import FEWEST_TEXTS, Familiarity, fit_familiarity
from lpf.model.runtime import Runtime
from lpf.types import Float32Array, QueryOptions
from workspaces import reader

SUPPLIERS = Path(__file__).parents[2] / "docs" / "examples" / "suppliers.csv"
JUNK = (
    *(".", "?!", "...", "-----", "***", "#"),
    *("0 0 0", "1234567890", "3.14159 2.71828 1.41421", "12:00 12:00 12:00"),
    *("\U0001f600", "\U0001f44d\U0001f44d\U0001f44d", "\U0001f680\U0001f525\U0001f4af"),
    "SGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0",
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt.",
    "これは日本語の文章です。",
    "Это предложение на русском языке.",
    "هذه جملة باللغة العربية",
    "זהו משפט בעברית",
    "这是一个中文句子。",
    *("the the the the the the the the", "test test test test", "a" * 24, "asdf qwer zxcv"),
    *("<div><p></p></div>", "<html><head></head><body></body></html>", '{"a": [1, 2, {}]}'),
    *("\u2800\u2800", "x", "NULL"),
)
TEXT = slice(0, 384)
HALF = 0.5


@cache
def compliance() -> tuple[Float32Array, np.ndarray, Float32Array]:
    """Features and entities of training items, and features of test items."""
    domain = domains.load_domain("compliance")
    dataset = domains.generate(domain, domains.preset("paper"), seed=604)
    train, test = dataset.positions("train")[:100], dataset.positions("test")[:60]
    counts = [len(dataset.entities[place].evidence) for place in train]
    read = [
        reader().read_many([one.text for place in part for one in dataset.entities[place].evidence])
        for part in (train, test)
    ]
    return read[0], np.repeat(np.arange(len(train)), counts), read[1]


@cache
def fitted() -> Familiarity:
    train, entities, _ = compliance()
    found = fit_familiarity(train, entities, TEXT)
    assert found is not None
    return found


@cache
def junk() -> Float32Array:
    return reader().read_many(list(JUNK))


def test_junk_has_no_weight() -> None:
    weights = dict(zip(JUNK, fitted()(junk()).tolist(), strict=True))
    assert len(weights) >= 30
    assert {text: weight for text, weight in weights.items() if weight > 0.05} == {}


def test_unseen_items_of_the_same_kind_keep_their_weight() -> None:
    weights = fitted()(compliance()[2])
    assert len(weights) >= 300
    assert (weights < HALF).mean() <= 0.02  # the aim is 0.01, of items that vary by chance
    assert weights.mean() >= 0.98


def test_texts_about_something_else_have_less_weight() -> None:
    texts = [
        "The galaxy's rotation curve suggests a massive halo of dark matter.",
        "Whisk the eggs with the sugar until the mixture is pale and thick.",
        "He scored twice in the second half and was named player of the match.",
        "The symphony's slow movement is built on a theme of eight bars.",
    ]
    assert fitted()(reader().read_many(texts)).max() < HALF


def test_eight_labelled_suppliers_are_enough() -> None:
    with SUPPLIERS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    read = reader().read_many([row["text"] for row in rows])
    labelled = np.array([bool(row["supports_value"]) for row in rows])
    entities = np.array([int(row["entity_id"][1:]) for row in rows])
    found = fit_familiarity(read[labelled], entities[labelled], TEXT)
    assert found is not None
    assert found(read[~labelled]).tolist() == [1.0] * 4
    assert found(junk()).mean() < 0.05


def test_training_texts_that_are_worded_alike_leave_room_for_other_words() -> None:
    alike = [f"{what} {number}." for number in range(20) for what in (
        "Every delivery came on time for order", "Weeks late and broken was order",
    )]  # fmt: skip
    found = fit_familiarity(reader().read_many(alike), np.arange(40) // 2, TEXT)
    assert found is not None
    others = ["All orders came on time.", "The goods were broken and came late."]
    assert found(reader().read_many(others)).min() > 0.9
    assert found(junk()).mean() < 0.1


def test_with_a_claim_the_text_part_is_tested() -> None:
    train, entities, test = compliance()
    part = slice(384, 768)

    def paired(texts: Float32Array, seed: int) -> Float32Array:
        claims = features(len(texts), seed)
        return np.concatenate([claims, texts, np.abs(claims - texts), claims * texts], axis=1)

    found = fit_familiarity(paired(train, 1), entities, part)
    assert found is not None
    np.testing.assert_allclose(found(paired(test, 2)), fitted()(test), atol=1e-9)
    assert found(paired(junk(), 3)).max() < 0.05


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        (features(FEWEST_TEXTS - 1), np.arange(FEWEST_TEXTS - 1)),
        (features(40), np.zeros(40, np.intp)),
        (np.repeat(features(FEWEST_TEXTS - 1), 40, axis=0), np.arange(40 * (FEWEST_TEXTS - 1))),
        (features(40, width=1), np.arange(40)),
    ],
    ids=["few items", "one entity", "the same few texts", "one feature"],
)
def test_without_enough_to_go_by_nothing_is_fitted(rows, groups) -> None:
    assert fit_familiarity(rows, groups, slice(0, rows.shape[1])) is None


def test_the_weight_falls_smoothly_from_one_to_zero() -> None:
    config = fitted().config
    distances = np.linspace(config.full_until - 0.1, config.none_from + 0.1, 500)
    weights = fitted().weight(distances)
    assert (np.diff(weights) <= 0).all()
    assert (weights[distances <= config.full_until] == 1.0).all()
    assert (weights[distances >= config.none_from] == 0.0).all()
    assert np.abs(np.diff(weights)).max() < 0.1


def known_model(members: int = 2) -> Runtime:
    """Random networks that know the compliance texts."""
    config = model_config(members, familiarity=fitted().config)
    return Runtime(config, {**sharp_tensors(config), **fitted().tensors()}, "known")


def test_it_is_saved_with_the_model_and_is_small(tmp_path: Path) -> None:
    model = known_model()
    version = save_model(tmp_path, model.config, model.tensors, ModelCard("a", "b", "c", "d"))
    loaded = load_model(tmp_path / version).runtime()
    assert loaded.familiarity is not None
    np.testing.assert_array_equal(loaded.familiarity(junk()), fitted()(junk()))
    assert sum(array.nbytes for array in fitted().tensors().values()) < 300_000
    assert loaded.member(1).familiarity is not None


def test_a_model_without_it_has_the_version_it_always_had() -> None:
    assert "familiarity" not in model_config().to_dict()


def test_a_damaged_part_is_refused() -> None:
    config = model_config(familiarity=fitted().config)
    with pytest.raises(ArtefactTensorError, match=r"familiarity\.mean"):
        Runtime(config, {**sharp_tensors(config), "familiarity.directions": np.zeros((384, 64))})


@pytest.mark.parametrize(
    ("numbers", "field"),
    [
        ((10, 10, 1, 0.1, 0.2), "familiarity.start"),
        ((0, 10, 0, 0.1, 0.2), "familiarity.rank"),
        ((0, 10, 1, 0.2, 0.2), "familiarity.full_until"),
        ((0, 10, 1, 0.2, float("inf")), "familiarity.full_until"),
    ],
)
def test_a_config_out_of_range_is_refused(numbers: tuple, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        FamiliarityConfig(*numbers)
    with pytest.raises(ConfigError, match=r"familiarity\.stop"):
        model_config(familiarity=FamiliarityConfig(0, 500, 1, 0.1, 0.2))


def test_in_robust_mode_junk_leaves_the_prior() -> None:
    engine = Engine(known_model(), schema())
    answer = engine.answer(Items(junk()), "level")
    np.testing.assert_allclose(answer.distribution[0], 1 / 3, atol=1e-6)
    assert answer.familiarity is not None
    assert answer.familiarity.max() < 0.05


def test_junk_next_to_ordinary_items_changes_nothing() -> None:
    """Not even how strongly the others count: it is no additional item."""
    engine = Engine(known_model(), schema())
    ordinary = compliance()[2][:4]
    with_junk = np.concatenate([ordinary, junk()[:3]])
    np.testing.assert_allclose(
        engine.answer(Items(with_junk), "level").distribution,
        engine.answer(Items(ordinary), "level").distribution,
        atol=1e-9,
    )


@pytest.mark.parametrize("options", [QueryOptions.paper(), QueryOptions(variant="learned")])
def test_paper_mode_and_learned_answer_as_before_and_say_so(options: QueryOptions) -> None:
    known, items = known_model(), Items(np.concatenate([compliance()[2][:2], junk()[:2]]))
    before = Runtime(model_config(2), sharp_tensors(model_config(2)), "known")
    answer = Engine(known, schema()).answer(items, "level", options)
    np.testing.assert_array_equal(
        answer.distribution, Engine(before, schema()).answer(items, "level", options).distribution
    )
    assert answer.familiarity is not None
    assert answer.familiarity[2:].tolist() == [0.0, 0.0]


def test_models_from_before_cannot_tell() -> None:
    answer = Engine(runtime(), schema()).answer(Items(junk()), "level")
    assert answer.familiarity is None


def test_an_item_without_weight_cannot_rule_a_value_out() -> None:
    from lpf.combine.robust import RobustParameters, combine_robust
    from lpf.items import Segments

    certain = RobustParameters(epsilon=0.0, fitted=True)
    potential = np.array([[1.0, 0.0], [0.2, 0.8]])
    unknown, half = np.full(2, np.nan), np.full(2, 0.5)
    found = combine_robust(
        potential, unknown, half, np.log(half), Segments.one(2), certain,
        familiarity=np.array([0.0, 1.0]),
    )  # fmt: skip
    np.testing.assert_allclose(found.distribution[0], [0.2, 0.8])
