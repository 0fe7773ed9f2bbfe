"""Accuracy of the surest answers: by hand, against the risk-coverage curve, and its intervals."""

from __future__ import annotations

import numpy as np
import pytest

from lpf.errors import ConfigError, EvidenceError
from lpf.metrics.scores import risk_coverage_of_answers
from lpf.metrics.selective import SureAnswers, selective_difference


def answers(seed: int, entities: int, skill: float = 0.0) -> SureAnswers:
    drawn = np.random.default_rng(seed)
    confidence = np.round(drawn.uniform(0.5, 1.0, entities), 2)  # with ties
    return SureAnswers(confidence, drawn.random(entities) < confidence + skill)


def test_by_hand() -> None:
    found = SureAnswers(np.array([0.9, 0.6, 0.8, 0.7]), np.array([True, False, False, True]))
    assert found.accuracy(0.5) == pytest.approx(0.5)
    assert found.accuracy(0.25) == pytest.approx(1.0)
    assert found.accuracy(1.0) == pytest.approx(0.5)
    assert found.accuracy(0.375) == pytest.approx(1 / 1.5)  # half of the second answer
    tied = SureAnswers(np.full(4, 0.7), np.array([True, False, False, False]))
    assert tied.accuracy(0.5) == pytest.approx(0.25)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_risk_coverage_curve(seed: int) -> None:
    found = answers(seed, 40)
    curve = risk_coverage_of_answers(found.confidence, found.right)
    for coverage, risk in zip(curve.coverage.tolist(), curve.risk.tolist(), strict=True):
        assert found.accuracy(coverage) == pytest.approx(1.0 - risk)


def test_whole_weights_repeat_entities() -> None:
    found = SureAnswers(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]))
    weights = np.array([2.0, 0.0, 1.0])
    repeated = SureAnswers(np.array([0.9, 0.9, 0.7]), np.array([True, True, True]))
    for coverage in (0.5, 1.0):
        (weighted,) = found.accuracies(weights[None], coverage)
        assert weighted == pytest.approx(repeated.accuracy(coverage))


def test_an_interval_covers_no_difference_and_finds_a_large_one() -> None:
    entities = 300
    keys = [list(range(entities))]
    same = answers(0, entities)
    generator = np.random.default_rng(0)
    equal = selective_difference([same], [same], keys, 0.5, generator, draws=200)
    assert equal.low == equal.high == 0.0
    better = SureAnswers(same.confidence, np.ones(entities, bool))
    found = selective_difference([better], [same], keys, 0.5, generator, draws=200)
    assert found.first == 1.0
    assert 0.0 < found.low < found.first - found.second < found.high


def test_entities_of_a_group_are_drawn_together() -> None:
    """In groups of equal entities the interval is wider."""
    right = np.repeat(np.random.default_rng(1).random(10) < 0.7, 30)
    one = SureAnswers(np.linspace(0.5, 1.0, 300), right)
    two = SureAnswers(np.linspace(0.5, 1.0, 300), np.zeros(300, bool))
    widths = []
    for keys in ([list(range(300))], [np.repeat(np.arange(10), 30).tolist()]):
        found = selective_difference([one], [two], keys, 1.0, np.random.default_rng(2), draws=300)
        widths.append(found.high - found.low)
    assert widths[1] > 2 * widths[0]


def test_what_cannot_be_scored_is_refused() -> None:
    found = answers(0, 5)
    with pytest.raises(ConfigError):
        found.accuracy(0.0)
    with pytest.raises(EvidenceError):
        SureAnswers(np.empty(0), np.empty(0, bool)).accuracy(0.5)
    with pytest.raises(EvidenceError):
        selective_difference([found], [], [[1]], 0.5, np.random.default_rng(0))
