"""Joint and conditional probabilities, tables, entropy and mutual information."""

from math import exp, inf, log

import numpy as np
import pytest
from circuit_strategies import cases, mixture, with_evidence
from hypothesis import given, settings
from scipy.special import logsumexp

from lpf.circuits import (
    CircuitBuilder,
    Variable,
    compile_circuit,
    conditional_probability,
    entropy,
    joint_probability,
    joint_table,
    mutual_information,
    prior_circuit,
)
from lpf.errors import ConfigError, ImpossibleEvidenceError

A = Variable("a", ("x", "y"))
B = Variable("b", ("x", "y"))


@pytest.fixture
def equal():
    """a = b, a fair coin."""
    builder = CircuitBuilder([A, B])
    pairs = [
        builder.product([builder.indicator("a", i, 2), builder.indicator("b", i, 2)])
        for i in range(2)
    ]
    return compile_circuit(builder.build(builder.sum(pairs, [0.5, 0.5])))


def test_queries_of_two_equal_variables(equal):
    assert joint_probability(equal, {"a": "x", "b": "x"}) == pytest.approx(0.5)
    assert joint_probability(equal, {"a": "x", "b": "y"}) == 0.0
    assert joint_probability(equal, {}) == 1.0
    assert conditional_probability(equal, {"a": "x"}, {"b": "x"}) == pytest.approx(1.0)
    assert conditional_probability(equal, {"a": "x"}, {"a": "y"}) == 0.0
    # soft (3, 1) on b: a = x with 3/4
    assert conditional_probability(equal, {"a": "x"}, soft={"b": [3, 1]}) == pytest.approx(0.75)
    assert entropy(equal) == pytest.approx(log(2.0))
    assert entropy(equal, ["a"]) == pytest.approx(log(2.0))
    assert mutual_information(equal, "a", "b") == pytest.approx(log(2.0))
    assert mutual_information(equal, "a", "b", {"a": "x"}) == pytest.approx(0.0, abs=1e-15)


def test_independent_variables_have_no_mutual_information():
    compiled = compile_circuit(prior_circuit([A, B], {"a": [0.2, 0.8]}))
    assert mutual_information(compiled, "a", "b") == pytest.approx(0.0, abs=1e-15)


def test_queries_refuse_impossible_evidence(equal):
    impossible = {"a": "x", "b": "y"}
    with pytest.raises(ImpossibleEvidenceError):
        conditional_probability(equal, {"a": "x"}, impossible)
    with pytest.raises(ImpossibleEvidenceError):
        joint_table(equal, ["a"], impossible)


def test_tables_that_are_too_large_are_refused():
    compiled = compile_circuit(mixture(variables=12))
    with pytest.raises(ConfigError, match="531441 cells"):
        entropy(compiled)
    assert entropy(compiled, ["v0", "v1"]) > 0.0
    with pytest.raises(ConfigError, match="limit"):
        joint_table(compiled, ["v0", "v1"], limit=8)


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_invalid_table_names_are_refused(equal, names):
    with pytest.raises(ConfigError):
        joint_table(equal, names)


@settings(max_examples=60, deadline=None)
@given(cases(zeros=0.2))
def test_queries_agree_with_enumeration(case):
    worlds = with_evidence(case.circuit, case.log_inputs)
    if worlds.max() == -inf:
        return
    probabilities = np.exp(worlds - logsumexp(worlds))
    compiled = compile_circuit(case.circuit)
    names = [variable.name for variable in case.circuit.variables]
    table = joint_table(compiled, names, case.hard, log_soft=case.soft)
    np.testing.assert_allclose(table, probabilities, rtol=0.0, atol=1e-12)
    used = probabilities[probabilities > 0.0]
    expected = -(used * np.log(used)).sum()
    assert entropy(compiled, None, case.hard, log_soft=case.soft) == pytest.approx(
        expected, abs=1e-11
    )
    if len(names) > 1:
        others = tuple(range(2, len(names)))
        compare_information(compiled, case, names, probabilities.sum(axis=others))


def compare_information(compiled, case, names, pair):
    def h(p):
        return -(p[p > 0.0] * np.log(p[p > 0.0])).sum()

    expected = h(pair.sum(axis=0)) + h(pair.sum(axis=1)) - h(pair)
    found = mutual_information(compiled, names[0], names[1], case.hard, log_soft=case.soft)
    assert found == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(cases(zeros=0.1))
def test_joint_probability_of_a_full_assignment(case):
    compiled = compile_circuit(case.circuit)
    worlds = with_evidence(case.circuit, np.zeros_like(case.log_inputs))
    assignment = {variable.name: variable.values[-1] for variable in case.circuit.variables}
    expected = exp(worlds[tuple(-1 for _ in assignment)])
    assert joint_probability(compiled, assignment) == pytest.approx(expected, abs=1e-12)
