"""The evidence model, compared with results worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from lpf.domains.evidence_model import EvidenceModel
from lpf.domains.parameters import PRESETS, GeneratorParameters, preset, with_settings
from lpf.errors import ConfigError

SHARES = (0.3, 0.4, 0.3)


def test_wrong_grades_get_rarer_with_distance() -> None:
    model = EvidenceModel(GeneratorParameters(), (0.25,) * 4)
    weights = np.array([[0, 4, 2, 1], [4, 0, 4, 2], [2, 4, 0, 4], [1, 2, 4, 0]])
    assert model.other_grades == pytest.approx(weights / weights.sum(axis=1, keepdims=True))


def test_symbols_of_a_grade() -> None:
    model = EvidenceModel(GeneratorParameters(ambiguity=0.2), SHARES)
    assert model.symbol_probabilities == pytest.approx(
        np.array([[0.8, 0, 0, 0.2, 0], [0, 0.8, 0, 0.1, 0.1], [0, 0, 0.8, 0, 0.2]])
    )


def test_borderline_probabilities_follow_from_the_band() -> None:
    model = EvidenceModel(GeneratorParameters(borderline=0.24), SHARES)
    assert model.band == pytest.approx(0.06)
    expected = np.array([[0.8, 0.0, 0.2], [0.7, 0.15, 0.15], [0.8, 0.2, 0.0]])
    assert model.borderline_probabilities == pytest.approx(expected)
    assert np.array(SHARES) @ (1 - model.borderline_probabilities[:, 0]) == pytest.approx(0.24)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 3.0])
@pytest.mark.parametrize("contradiction", [0.01, 0.13, 0.6])
def test_mean_noise_equals_contradiction(contradiction: float, correlation: float) -> None:
    parameters = GeneratorParameters(
        contradiction=contradiction, credibility_correlation=correlation
    )
    model = EvidenceModel(parameters, SHARES)
    credible = 0.65 + 0.33 * beta(10, 2).ppf((np.arange(200_000) + 0.5) / 200_000)
    noise = model.noise(credible, np.zeros(len(credible), dtype=np.int64))
    assert noise.mean() == pytest.approx(contradiction, rel=1e-3)
    assert (np.diff(noise) <= 0).all()
    assert (noise[0] > 1.2 * noise[-1]) == (correlation > 0)


def test_noise_increases_with_age() -> None:
    parameters = GeneratorParameters(contradiction=0.2, credibility_correlation=0, drift=0.5)
    ages = np.array([0, 731])
    noise = EvidenceModel(parameters, SHARES).noise(np.full(2, 0.9), ages)
    assert 1 - noise == pytest.approx([0.8, 0.8 * 2 ** (-0.5 * 731 / 365.25)])


def test_zero_contradiction_gives_no_noise() -> None:
    model = EvidenceModel(GeneratorParameters(contradiction=0.0), SHARES)
    assert not model.noise(np.array([0.7, 0.9]), np.zeros(2, dtype=np.int64)).any()


def test_credibility_follows_the_beta_distribution() -> None:
    model = EvidenceModel(GeneratorParameters(), SHARES)
    credible = model.credibility((np.arange(20_000) + 0.5) / 20_000)
    assert credible.min() > 0.65
    assert credible.max() <= 0.98
    assert credible.mean() == pytest.approx(0.65 + 0.33 * 10 / 12, abs=1e-3)


def test_overlapping_bands_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"generator\.borderline: 0\.9 does not fit"):
        EvidenceModel(GeneratorParameters(borderline=0.9), (0.1, 0.4, 0.5))


def test_presets_by_name() -> None:
    assert set(PRESETS) == {"paper", "hard"}
    assert preset("paper") == GeneratorParameters()
    assert preset("hard") == PRESETS["hard"] != preset("paper")
    with pytest.raises(ConfigError, match="preset: must be one of"):
        preset("easy")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("entities", 0),
        ("items", 0),
        ("items_min", 6),
        ("items_min", 0),
        ("contradiction", 1.0),
        ("ambiguity", -0.1),
        ("borderline", 1.0),
        ("pull", 1.1),
        ("credibility_range", (0.9, 0.6)),
        ("credibility_beta", (0.0, 2.0)),
        ("credibility_correlation", -1.0),
        ("copies", 1.0),
        ("missing", float("nan")),
        ("drift", float("inf")),
        ("max_age_years", -1.0),
        ("fact_share", 2.0),
        ("unseen", "letters"),
        ("shares", (0.5, 0.6)),
        ("shares", (0.0, 1.0)),
    ],
)
def test_invalid_parameter_is_named(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"generator\.{field}: must be .* Nothing was generated"):
        replace(GeneratorParameters(), **{field: value})


def test_settings_are_parsed_by_type() -> None:
    settings = [
        *("items=7", "items_min=2", "copies=.2", "shares=.2,.3,.5", "unseen=sentences"),
        "credibility_range=0.5,0.9",
    ]
    changed = with_settings(preset("hard"), settings)
    assert changed == replace(
        preset("hard"),
        items=7,
        items_min=2,
        copies=0.2,
        shares=(0.2, 0.3, 0.5),
        unseen="sentences",
        credibility_range=(0.5, 0.9),
    )
    plain = with_settings(changed, ["items_min=none", "shares=None"])
    assert (plain.items_min, plain.shares) == (None, None)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("copies", "must be NAME=VALUE"),
        ("colour=3", "generator.colour: unknown parameter"),
        ("items=2.5", "generator.items: must be of type int"),
        ("copies=none", "generator.copies: must be of type float"),
        ("credibility_beta=1", "generator.credibility_beta: must be of type"),
        ("pull=7", "generator.pull: must be in"),
    ],
)
def test_invalid_setting_is_named(setting: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        with_settings(GeneratorParameters(), [setting])
