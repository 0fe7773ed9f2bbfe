"""Which methods get a temperature, and which keep their raw answers."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from bench_answers import answered

from lpf.evaluation.specs import Cell, EvalSpec
from small_specs import DATA, TRAIN_SPEC, bench


@pytest.mark.parametrize("name", ["lpf_robust", "lpf_robust_single", "prior", "oracle"])
def test_methods_with_their_own_temperature_get_no_other(name: str) -> None:
    found = answered(name)
    assert found.temperature is None
    np.testing.assert_array_equal(found.answers, found.raw)


@pytest.mark.parametrize("name", ["lpf_paper", "vae_only", "logistic_mean"])
def test_every_other_method_gets_one_and_keeps_its_raw_answers(name: str) -> None:
    found = answered(name)
    assert found.temperature is not None
    assert found.temperature[1] == 0.0  # all have three items
    assert np.abs(found.answers - found.raw).max() > 1e-3
    np.testing.assert_array_equal(found.answers.argmax(1), found.raw.argmax(1))


def test_the_temperature_depends_on_the_number_of_items_if_it_varies() -> None:
    varying = EvalSpec(replace(DATA, seed=1000, changes=("items=3", "items_min=1")), entities=20)
    found = answered("vae_only", varying)
    assert len(set(found.counts.tolist())) > 1
    assert found.temperature is not None
    assert found.temperature[1] != 0.0


class Hardliner:
    """Sure of what it says, and wrong now and then."""

    classes_: tuple[str, ...] = ()

    def fit(self, X: list[dict[str, object]], y: list[str]) -> None:
        self.classes_ = tuple(sorted(set(y)))

    def predict_proba(self, X: list[dict[str, object]]) -> list[list[float]]:
        return [[1.0] + [0.0] * (len(self.classes_) - 1) for _ in X]


def test_a_method_with_zero_probability_of_a_label_is_not_tempered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("hardliners")
    module.Hardliner = Hardliner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hardliners", module)
    answered = bench().predict(Cell(TRAIN_SPEC, EvalSpec(), "hardliners:Hardliner"))
    assert answered.error is None
    assert answered.note is not None
    assert "temperature" in answered.note
    assert set(np.unique(answered.answers)) == {0.0, 1.0}
