"""Invalid circuits raise specific errors that name the node."""

import pytest
from circuit_strategies import random_circuit

from lpf.circuits import Circuit, CircuitBuilder, Leaf, Product, Sum, Variable, prior_circuit
from lpf.errors import (
    CircuitError,
    IncompleteSumError,
    MalformedCircuitError,
    NotDecomposableError,
    NotNormalisedError,
    UnknownPredicateError,
)

A = Variable("a", ("x", "y"))
B = Variable("b", ("x", "y"))
HALF = (0.5, 0.5)
LEAF_A, LEAF_B = Leaf("a", HALF), Leaf("b", HALF)

INVALID = [
    (
        "incomplete sum",
        [LEAF_A, LEAF_B, Sum((0, 1), HALF)],
        IncompleteSumError,
        r"Node 2.*'a', 'b'",
    ),
    ("shared variable", [LEAF_A, LEAF_A, Product((0, 1))], NotDecomposableError, r"Node 2.*'a'"),
    ("child twice", [LEAF_A, Product((0, 0))], NotDecomposableError, "Node 1"),
    ("weights", [LEAF_A, LEAF_A, Sum((0, 1), (0.5, 0.6))], NotNormalisedError, r"Node 2.*1\.1"),
    ("negative", [LEAF_A, LEAF_A, Sum((0, 1), (1.5, -0.5))], NotNormalisedError, "Node 2"),
    ("nan", [Leaf("a", (float("nan"), 1.0))], NotNormalisedError, "Node 0"),
    ("leaf", [Leaf("a", (0.2, 0.2))], NotNormalisedError, r"Node 0 \(leaf of 'a'\)"),
    ("leaf size", [Leaf("a", (0.2, 0.2, 0.6))], MalformedCircuitError, "Node 0.*3.*2"),
    ("unknown variable", [Leaf("c", HALF)], MalformedCircuitError, "'c'"),
    ("dangling", [LEAF_A, Product((0, 7))], MalformedCircuitError, "Node 1.*7"),
    ("negative child", [LEAF_A, Product((0, -1))], MalformedCircuitError, "Node 1.*-1"),
    ("no children", [Product(())], MalformedCircuitError, "Node 0"),
    ("weight count", [LEAF_A, Sum((0,), HALF)], MalformedCircuitError, "Node 1"),
    ("self cycle", [Product((0,))], MalformedCircuitError, "cycle"),
    (
        "long cycle",
        [Product((1,)), Sum((2,), (1.0,)), Product((0,))],
        MalformedCircuitError,
        "cycle",
    ),
    (
        "not reachable",
        [LEAF_A, LEAF_B, Sum((1,), (1.0,))],
        MalformedCircuitError,
        "Node 0.*reachable",
    ),
    ("not covered", [LEAF_A], MalformedCircuitError, r"cover.*'b'"),
]


@pytest.mark.parametrize(
    ("nodes", "error", "message"),
    [pytest.param(*rest, id=name) for name, *rest in INVALID],
)
def test_invalid_circuits_are_refused(nodes, error, message):
    with pytest.raises(error, match=message) as caught:
        Circuit((A, B), tuple(nodes), len(nodes) - 1)
    assert isinstance(caught.value, CircuitError)


@pytest.mark.parametrize("root", [-1, 5, True, 0.0])
def test_invalid_root_is_refused(root):
    with pytest.raises(MalformedCircuitError, match="root"):
        Circuit((A,), (LEAF_A,), root)


@pytest.mark.parametrize("variables", [(), (A, A)])
def test_missing_or_duplicate_variables_are_refused(variables):
    with pytest.raises(MalformedCircuitError):
        Circuit(variables, (LEAF_A,), 0)


@pytest.mark.parametrize(("name", "values"), [("", ("x",)), ("a", ()), ("a", ("x", "x"))])
def test_invalid_variable_is_refused(name, values):
    with pytest.raises(MalformedCircuitError):
        Variable(name, values)


def test_deep_circuit_is_valid():
    nodes = [LEAF_A, *(Sum((index,), (1.0,)) for index in range(5000))]
    assert Circuit((A,), tuple(nodes), 5000).root == 5000


def test_shared_children_are_not_a_cycle():
    nodes = (LEAF_A, Sum((0,), (1.0,)), Sum((0, 1), HALF))
    assert Circuit((A,), nodes, 2).root == 2


def test_random_circuits_are_valid():
    assert all(random_circuit(seed).nodes for seed in range(50))


def test_builder_returns_the_only_child_of_a_product():
    builder = CircuitBuilder([A])
    leaf = builder.leaf("a", HALF)
    assert builder.product([leaf]) == leaf


def test_prior_circuit_checks_its_priors():
    circuit = prior_circuit([A, B], {"a": [0.9, 0.1]})
    assert circuit.nodes == (Leaf("a", (0.9, 0.1)), LEAF_B, Product((0, 1)))
    with pytest.raises(UnknownPredicateError, match="'c'"):
        prior_circuit([A], {"c": HALF})
    with pytest.raises(MalformedCircuitError, match="'a'"):
        prior_circuit([A], {"a": [1.0]})
    with pytest.raises(NotNormalisedError, match="'a'"):
        prior_circuit([A], {"a": [1.0, 1.0]})
