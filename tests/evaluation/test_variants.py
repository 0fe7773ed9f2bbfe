"""Variants of LPF: unchanged, changed, and with inapplicable settings."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from lpf.baselines import METHODS, FittedMethod, Shared
from lpf.errors import ConfigError
from lpf.evaluation.specs import EvalSpec, Setting
from lpf.evaluation.variants import OPTIONS, LpfVariant, best_members
from lpf.model.layout import SHARED
from lpf.types import FloatArray
from small_specs import TRAIN_SPEC, bench

# That of the paper's training has a model of its own.
NAMES = [name for name in OPTIONS if name != "lpf_learned_published"]


def fitted(method: object) -> FittedMethod:
    found: FittedMethod = method.fit(  # type: ignore[attr-defined]
        bench().train, bench().validation, bench().predicate, TRAIN_SPEC.seed
    )
    return found


def asked(method: object) -> FloatArray:
    return fitted(method).predict_proba(bench().test_examples(EvalSpec()))


def variant(name: str, **settings: Setting) -> FloatArray:
    return asked(LpfVariant(name, bench().model.runtime, settings))


@cache
def unchanged(name: str) -> FloatArray:
    return variant(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name in METHODS])
def test_an_unchanged_variant_equals_the_method(name: str) -> None:
    method = METHODS[name].build(name, Shared(model=bench().model.runtime))
    np.testing.assert_allclose(unchanged(name), asked(method), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lpf_robust", {"member": 1}),
        ("lpf_robust", {"ensemble": 2}),
        ("lpf_robust", {"rho": 0.9}),
        ("lpf_robust", {"epsilon": 0.4}),
        ("lpf_robust", {"epsilon": 0.0}),
        ("lpf_robust", {"temperature": 3.0}),
        ("lpf_robust", {"fitted": False}),
        ("lpf_robust", {"divide_prior": False}),
        ("lpf_robust", {"sampler": "plain", "n_samples": 4}),
        ("lpf_paper", {"member": 1}),
        ("lpf_paper", {"n_samples": 4}),
        ("lpf_paper", {"temperature": 2.0}),
        ("lpf_paper", {"alpha": 0.5}),
        ("lpf_learned", {"ensemble": 1}),
    ],
)
def test_a_changed_variant_answers_differently(name: str, settings: dict[str, Setting]) -> None:
    found = variant(name, **settings)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.abs(found - unchanged(name)).max() > 1e-4


def test_the_best_member_alone_is_the_single_network() -> None:
    first, one = variant("lpf_robust", member=0), variant("lpf_robust", ensemble=1)
    np.testing.assert_allclose(first, unchanged("lpf_robust_single"), atol=1e-12)
    np.testing.assert_allclose(one, unchanged("lpf_robust_single"), atol=1e-12)


def test_given_parameters_replace_the_fitted_ones() -> None:
    default, changed = (
        fitted(LpfVariant("lpf_robust", bench().model.runtime, settings)).engine.runtime  # type: ignore[attr-defined]
        for settings in ({}, {"rho": 0.25})
    )
    before = dict(default.config.calibration[bench().predicate])
    after = dict(changed.config.calibration[bench().predicate])
    assert after.pop("rho") == 0.25
    before.pop("rho")
    assert after == before


def test_unfitted_with_a_parameter_sets_only_that_parameter() -> None:
    settings = {"fitted": False, "rho": 0.25}
    engine = fitted(LpfVariant("lpf_robust", bench().model.runtime, settings)).engine  # type: ignore[attr-defined]
    assert dict(engine.runtime.config.calibration) == {bench().predicate: {"rho": 0.25}}


def test_not_dividing_counts_the_prior_once_per_item() -> None:
    """One network in robust mode without floor, ρ or temperature: three items, three times π."""
    shares = bench().model.runtime.config.predicates[0].training_shares
    bare: dict[str, Setting] = {"rho": 0.0, "epsilon": 0.0, "slope": 0.0, "temperature": 1.0}
    plain = variant("lpf_robust_single", **bare)
    counted = variant("lpf_robust_single", **bare, divide_prior=False)
    ratio, expected = np.log(counted / plain), 3 * np.log(shares)
    relative = ratio - ratio[:, :1]
    np.testing.assert_allclose(
        relative, np.tile(expected - expected[0], (len(relative), 1)), atol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("lpf_robust", {"colour": 1}, "unknown settings ['colour']"),
        ("lpf_robust", {"top_k": 3}, "unknown settings ['top_k']"),
        ("logistic_mean", {"rho": 0.5}, "unknown settings ['rho']"),
        ("lpf_robust", {"fitted": 0}, "['fitted'] must be True or False"),
        ("lpf_robust", {"member": 3}, "member must be 0 to 2"),
        ("lpf_robust", {"member": -1}, "member must be 0 to 2"),
        ("lpf_robust", {"ensemble": 0}, "ensemble must be 1 to 3"),
        ("lpf_robust", {"ensemble": 4}, "ensemble must be 1 to 3"),
        ("lpf_robust", {"alpha": 1.0}, "applies in paper mode only"),
    ],
)
def test_inapplicable_changes_are_refused(
    name: str, settings: dict[str, Setting], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        variant(name, **settings)
    assert message in str(error.value)


def test_the_best_members_are_the_first() -> None:
    runtime = bench().model.runtime
    two = best_members(runtime, 2)
    assert (two.members, two.config.seeds) == (2, runtime.config.seeds[:2])
    for name, array in runtime.tensors.items():
        expected = array if name.startswith(SHARED) else array[:2]
        np.testing.assert_array_equal(two.tensors[name], expected)
    assert best_members(runtime, 9).members == 3
