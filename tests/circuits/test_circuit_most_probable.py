"""The most probable explanation, compared with enumeration."""

from math import inf, log

import numpy as np
import pytest
from circuit_strategies import cases, mixture, with_evidence
from hypothesis import given, settings

from lpf.circuits import (
    CircuitBuilder,
    DataTable,
    Variable,
    compile_circuit,
    learn_chow_liu,
    most_probable_explanation,
)
from lpf.errors import ConfigError, ImpossibleEvidenceError

A = Variable("a", ("x", "y"))
B = Variable("b", ("x", "y"))


@settings(max_examples=80, deadline=None)
@given(cases(zeros=0.2, most=6))
def test_mpe_agrees_with_enumeration(case):
    worlds = with_evidence(case.circuit, case.log_inputs)
    compiled = compile_circuit(case.circuit)
    if worlds.max() == -inf:
        with pytest.raises(ImpossibleEvidenceError):
            most_probable_explanation(compiled, case.hard, log_soft=case.soft)
        return
    found = most_probable_explanation(compiled, case.hard, log_soft=case.soft)
    assert found.exact
    assert found.log_joint == pytest.approx(worlds.max(), rel=1e-12, abs=1e-12)
    places = tuple(v.values.index(found.assignment[v.name]) for v in case.circuit.variables)
    assert worlds[places] == pytest.approx(worlds.max(), rel=1e-12, abs=1e-12)


def test_mpe_is_exact_where_max_product_is_wrong():
    # The heaviest component says (x, x) with .4; (y, y) has .3 + .3 from the two others.
    builder = CircuitBuilder([A, B])

    def both(place):
        return builder.product([builder.indicator(n, place, 2) for n in ("a", "b")])

    circuit = builder.build(builder.sum([both(0), both(1), both(1)], [0.4, 0.3, 0.3]))
    found = most_probable_explanation(compile_circuit(circuit))
    assert found.assignment == {"a": "y", "b": "y"}
    assert found.log_joint == pytest.approx(log(0.6))


def test_mpe_of_a_tree_needs_one_expansion_per_variable():
    # All sums of a Chow-Liu circuit are selective, so the first bound is already exact.
    rng = np.random.default_rng(0)
    variables = tuple(Variable(f"v{i}", ("x", "y", "z")) for i in range(30))
    codes = np.cumsum(rng.random((300, 30)) < 0.2, axis=1) % 3
    compiled = compile_circuit(learn_chow_liu(DataTable(variables, codes)))
    found = most_probable_explanation(compiled, {"v7": "y"}, max_expansions=30)
    assert found.exact
    assert found.assignment["v7"] == "y"
    assert found.log_joint == pytest.approx(compiled.log_likelihood(found.assignment), rel=1e-12)


def test_mpe_out_of_expansions_is_not_exact():
    compiled = compile_circuit(mixture(seed=1, variables=8))
    exact = most_probable_explanation(compiled)
    short = most_probable_explanation(compiled, max_expansions=1)
    assert exact.exact
    assert exact.log_joint == exact.log_upper_bound
    assert not short.exact
    assert short.log_joint <= exact.log_joint <= short.log_upper_bound
    assert short.log_joint == pytest.approx(compiled.log_likelihood(short.assignment), rel=1e-12)


def test_mpe_refuses_zero_expansions():
    with pytest.raises(ConfigError, match="max_expansions"):
        most_probable_explanation(compile_circuit(mixture()), max_expansions=0)
