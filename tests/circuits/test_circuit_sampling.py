"""Samples follow the posterior and are reproducible."""

from math import inf

import numpy as np
import pytest
from circuit_strategies import mixture, random_case, with_evidence
from scipy.special import logsumexp
from scipy.stats import chi2

from lpf.circuits import CircuitBuilder, Variable, compile_circuit, sample
from lpf.errors import ConfigError, ImpossibleEvidenceError


def possible(seed):
    case = random_case(seed, zeros=0.1, most=4)
    return with_evidence(case.circuit, case.log_inputs).max() > -inf


@pytest.mark.parametrize("seed", [seed for seed in range(15) if possible(seed)])
def test_frequencies_follow_the_posterior(seed):
    case = random_case(seed, zeros=0.1, most=4)
    worlds = with_evidence(case.circuit, case.log_inputs)
    draws = sample(
        compile_circuit(case.circuit),
        20_000,
        case.hard,
        log_soft=case.soft,
        generator=np.random.default_rng(seed),
    )
    observed = np.zeros(worlds.shape)
    np.add.at(observed, tuple(draws.T), 1.0)
    expected = np.exp(worlds - logsumexp(worlds)) * len(draws)
    assert not observed[expected == 0.0].any()
    common = expected > 5.0
    statistic = ((observed - expected)[common] ** 2 / expected[common]).sum()
    assert chi2.sf(statistic, common.sum()) > 1e-4


def test_same_seed_gives_same_samples():
    compiled = compile_circuit(mixture())
    first, again, other = (
        sample(compiled, 50, generator=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first.shape == (50, 8)
    assert (first == again).all()
    assert (first != other).any()


def test_negative_size_is_refused():
    compiled = compile_circuit(mixture())
    assert sample(compiled, 0, generator=np.random.default_rng(0)).shape == (0, 8)
    with pytest.raises(ConfigError, match="size"):
        sample(compiled, -1, generator=np.random.default_rng(0))


def test_sampling_refuses_impossible_evidence():
    builder = CircuitBuilder([Variable("a", ("x", "y"))])
    compiled = compile_circuit(builder.build(builder.indicator("a", 0, 2)))
    with pytest.raises(ImpossibleEvidenceError):
        sample(compiled, 5, {"a": "y"}, generator=np.random.default_rng(0))
