"""Deferral: the bound and the sequence of tests worked out by hand, and the risk that is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from lpf.errors import ConfigError
from lpf.metrics.deferral import (
    RISK_CONFIDENCE,
    chance_of_few_errors,
    deferral_cutoff,
    fewest_without_error,
    nearest,
    smallest_risk,
)

REPETITIONS = 100


def surprises(count: int) -> np.ndarray:
    """The k-th surest answer has the surprise k."""
    return np.arange(1, count + 1, dtype=np.float32)


def test_fewest_answers_without_an_error() -> None:
    """The "rule of three": about 3 / risk."""
    assert [fewest_without_error(risk) for risk in (0.01, 0.05, 0.5)] == [299, 59, 5]
    for risk in (0.01, 0.05, 0.5):
        needed = fewest_without_error(risk)
        assert (1 - risk) ** needed <= 0.05 < (1 - risk) ** (needed - 1)


@given(st.integers(1, 200), st.data())
def test_the_chance_of_few_errors_is_that_of_the_clopper_pearson_bound(
    answers: int, data: st.DataObject
) -> None:
    errors = data.draw(st.integers(0, answers - 1))
    bound = float(beta.ppf(RISK_CONFIDENCE, errors + 1, answers - errors))
    found = chance_of_few_errors(np.array([errors]), np.array([answers]), bound)
    assert found[0] == pytest.approx(1 - RISK_CONFIDENCE, rel=1e-6)


def test_all_may_be_answered_if_all_were_right() -> None:
    assert deferral_cutoff(surprises(59), np.ones(59, bool), 0.05) == math.inf
    assert deferral_cutoff(surprises(58), np.ones(58, bool), 0.05) is None


def test_the_cutoff_is_the_surprise_of_the_first_answer_that_is_not_given() -> None:
    """80 right, then only wrong ones: 80 answers with k errors more rule out 10 % up to k = 3
    (P(at most 3 of 83) = 0.033, P(at most 4 of 84) = 0.076), so the 84th answer is deferred."""
    right = np.arange(1, 101) <= 80
    assert binom.cdf(3, 83, 0.1) < 0.05 < binom.cdf(4, 84, 0.1)
    assert deferral_cutoff(surprises(100), right, 0.1) == 84.0


def test_equally_sure_answers_are_given_together_or_not_at_all() -> None:
    same = np.array([1.0] * 60 + [2.0] * 30, np.float32)
    right = np.array([True] * 60 + [False] * 30)
    assert deferral_cutoff(same, right, 0.05) == 2.0
    assert deferral_cutoff(np.ones(90, np.float32), right, 0.05) is None


@given(st.integers(60, 150), st.sampled_from([0.05, 0.1, 0.3]), st.integers(0, 10**6))
def test_a_single_sequence_is_that_of_brute_force(count: int, risk: float, seed: int) -> None:
    right = np.random.default_rng(seed).random(count) > np.linspace(0, 0.4, count)
    first, best = fewest_without_error(risk), None
    if count * 0.25 > fewest_without_error(risk, 0.025):
        return  # three sequences
    for k in range(first, count + 1):
        if binom.cdf((~right[:k]).sum(), k, risk) > 0.05:
            break
        best = k
    found = deferral_cutoff(surprises(count), right, risk)
    wanted = None if best is None else math.inf if best == count else best + 1.0
    assert found == wanted


def test_one_error_among_the_surest_does_not_end_everything() -> None:
    """Of 4,000 answers the 2nd is wrong: a sequence that begins with the fewest stops at once, the
    one that begins at a quarter does not."""
    right = np.ones(4000, bool)
    right[1] = False
    assert deferral_cutoff(surprises(4000), right, 0.01) == math.inf


@given(st.integers(0, 10**6), st.integers(1, 120))
def test_the_order_of_rows_does_not_matter(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    found = generator.integers(0, 40, count).astype(np.float32)
    right, order = generator.random(count) < 0.9, generator.permutation(count)
    assert deferral_cutoff(found, right, 0.2) == deferral_cutoff(found[order], right[order], 0.2)


@pytest.mark.parametrize("max_risk", [0.0, 1.0, float("nan")])
def test_a_risk_is_between_0_and_1(max_risk: float) -> None:
    with pytest.raises(ConfigError) as raised:
        deferral_cutoff(surprises(5), np.ones(5, bool), max_risk)
    assert raised.value.field == "max_risk"


def test_without_held_out_answers_no_risk_can_be_kept() -> None:
    nothing, none = np.empty(0, np.float32), np.empty(0, bool)
    assert deferral_cutoff(nothing, none, 0.5) is None
    assert smallest_risk(nothing, none) is None


def test_the_smallest_risk_that_can_be_kept() -> None:
    """59 right answers rule out 5 %, and 4.95 %; of the listed risks 6 % is the next for 58."""
    assert smallest_risk(surprises(59), np.ones(59, bool)) == 0.05
    assert smallest_risk(surprises(58), np.ones(58, bool)) == 0.06
    assert smallest_risk(surprises(59), np.zeros(59, bool)) is None


def test_the_nearest_answers_are_on_both_sides() -> None:
    right = np.array([True, True, False, True, False, False])
    ordered = surprises(6)
    assert nearest(ordered, right, 4.0, 4) == (2, 4)  # the 2nd to the 5th
    assert nearest(ordered, right, 0.5, 2) == (2, 2)  # the surest two
    assert nearest(ordered, right, 99.0, 2) == (0, 2)  # the least sure two
    assert nearest(ordered, right, 3.0, 100) == (3, 6)


@pytest.mark.parametrize("max_risk", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("entities", [400, 2000])
def test_the_risk_is_kept_in_95_of_100_repetitions(entities: int, max_risk: float) -> None:
    """An answer of surprise u in [0, 1] is wrong with the chance u² / 2: those below a cutoff c are
    with c² / 6."""
    kept, answered = 0, []
    for seed in range(REPETITIONS):
        generator = np.random.default_rng(seed)
        found = generator.random(entities).astype(np.float32)
        right = generator.random(entities) >= 0.5 * found**2
        cutoff = deferral_cutoff(found, right, max_risk)
        given_up_to = 0.0 if cutoff is None else min(1.0, cutoff)
        kept += given_up_to**2 / 6 <= max_risk
        answered.append(given_up_to)
    assert kept >= 95
    if entities == 2000:  # and not by deferring everything
        assert np.mean(answered) > 0.4 * min(1.0, math.sqrt(6 * max_risk))


def test_the_risk_is_kept_where_it_hardly_falls() -> None:
    """The hardest case: every answer is wrong a little more often than the risk allows, so no
    answer may be given."""
    kept = 0
    for seed in range(REPETITIONS):
        generator = np.random.default_rng(1000 + seed)
        found = generator.random(1000).astype(np.float32)
        kept += deferral_cutoff(found, generator.random(1000) >= 0.0501, 0.05) is None
    assert kept >= 92  # 95 expected, one and a half standard deviations fewer
