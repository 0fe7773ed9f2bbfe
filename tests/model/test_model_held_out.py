"""What a model stores of held-out answers, and what follows from it."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from builders import model_config, sharp_tensors
from lpf.errors import ArtefactTensorError, ConfigError
from lpf.metrics.prediction_sets import cutoff, surprise
from lpf.model.artefact import ModelCard, load_model, save_model
from lpf.model.config import HeldOutConfig, ModelConfig
from lpf.model.held_out import HeldOutAnswers
from lpf.model.runtime import Runtime

CARD = ModelCard("test", "none", "tests", "anything else")


def answers(
    count: int, seed: int = 0, groups: np.ndarray | None = None, values: int = 3
) -> HeldOutAnswers:
    """Nine of ten are right."""
    generator = np.random.default_rng(seed)
    distribution = generator.dirichlet([0.3] * values, count)
    labels = distribution.argmax(axis=1)
    wrong = generator.random(count) < 0.1
    labels[wrong] = (labels[wrong] + 1) % values
    own = np.arange(count) if groups is None else groups
    return HeldOutAnswers.from_answers("apart", distribution, labels, own)


def test_a_model_with_held_out_answers_is_saved_and_loaded(tmp_path: Path) -> None:
    made = answers(40)
    config = replace(model_config(), held_out={"level": HeldOutConfig(40, "apart")})
    tensors = {**sharp_tensors(config), **made.tensors("level")}
    loaded = load_model(tmp_path / save_model(tmp_path, config, tensors, CARD))
    held = loaded.runtime().held_out["level"]
    assert (held.kind, held.values, len(held)) == ("apart", 3, 40)
    for name in ("labels", "top", "label_surprise", "top_surprise", "groups"):
        assert np.array_equal(getattr(held, name), getattr(made, name)), name
    assert (
        loaded.runtime().member(0).held_out["level"].cutoffs(0.8, False)[0]
        == made.cutoffs(0.8, False)[0]
    )


def test_a_model_from_before_loads_and_keeps_its_version(tmp_path: Path) -> None:
    config = model_config()
    assert "held_out" not in config.to_dict()
    assert ModelConfig.from_dict(config.to_dict()).held_out == {}
    version = save_model(tmp_path, config, sharp_tensors(config), CARD)
    assert load_model(tmp_path / version).runtime().held_out == {}


@pytest.mark.parametrize(
    "wrong", [{"entities": 0, "kind": "apart"}, {"entities": 3, "kind": "other"}, {"count": 3}]
)
def test_a_damaged_config_is_refused(wrong: dict[str, object]) -> None:
    document = model_config().to_dict() | {"held_out": {"level": wrong}}
    with pytest.raises(ConfigError):
        ModelConfig.from_dict(document)


def test_tensors_of_another_size_are_refused() -> None:
    config = replace(model_config(), held_out={"level": HeldOutConfig(41, "apart")})
    with pytest.raises(ArtefactTensorError, match=r"held_out\.level"):
        Runtime(config, {**sharp_tensors(config), **answers(40).tensors("level")})


def test_cutoffs_are_those_of_the_surprises_of_true_values() -> None:
    held = answers(200)
    for coverage in (0.8, 0.95):
        found = held.cutoffs(coverage, False)
        assert found.tolist() == [cutoff(held.label_surprise, coverage)] * 3
        each = held.cutoffs(coverage, True)
        for value in range(3):
            own = held.label_surprise[held.labels == value]
            assert each[value] == cutoff(own, coverage)


def test_few_groups_are_named_and_their_entities_count_one_by_one() -> None:
    groups = np.arange(200) % 5
    few = answers(200, groups=groups)
    assert few.has_few_groups
    assert few.group_count == 5
    assert few.independent == 200
    assert few.cutoffs(0.95, False).tolist() == answers(200).cutoffs(0.95, False).tolist()


def test_of_many_groups_one_entity_each_tells_the_risk() -> None:
    """The first of each; the sets count each group alike."""
    groups = np.repeat(np.arange(100), 2)
    held = answers(200, groups=groups)
    assert not held.has_few_groups
    assert held.independent == 100
    first = answers(200)
    chosen = HeldOutAnswers(
        "apart",
        3,
        *(getattr(first, name)[::2] for name in ("labels", "top", "label_surprise")),
        first.top_surprise[::2],
        np.arange(100),
    )
    assert held.deferral_cutoff(0.2) == chosen.deferral_cutoff(0.2)
    wanted = cutoff(held.label_surprise, 0.9, groups)
    assert held.cutoffs(0.9, False)[0] == wanted


def test_how_many_answers_as_sure_were_right() -> None:
    distribution = np.array([[0.9, 0.1]] * 60 + [[0.6, 0.4]] * 60)
    labels = np.array([0] * 60 + [0, 1, 1] * 20)
    held = HeldOutAnswers.from_answers("apart", distribution, labels, np.arange(120))
    assert held.nearest(float(surprise(np.array([0.95]))[0])) == (24, 24)
    assert held.nearest(float(surprise(np.array([0.55]))[0])) == (8, 24)
    assert held.answered(float(surprise(np.array([0.8]))[0])) == 0.5
    assert held.answered(math.inf) == 1.0
    assert held.seen.tolist() == [True, True]


def test_a_value_that_no_entity_has_is_not_seen() -> None:
    made = answers(50)
    assert HeldOutAnswers.of("apart", 4, made.tensors("level"), "level").seen.tolist() == [
        *(True, True, True),
        False,
    ]


def test_it_can_be_pickled_after_use() -> None:
    held = answers(60)
    wanted = held.cutoffs(0.9, True), held.deferral_cutoff(0.3)
    again = pickle.loads(pickle.dumps(held))
    assert np.array_equal(again.cutoffs(0.9, True), wanted[0])
    assert again.deferral_cutoff(0.3) == wanted[1]
