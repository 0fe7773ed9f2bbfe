"""The structure of a circuit: variables, nodes, and the checks that make it valid.

A circuit is a DAG of leaves, products and sums. Children are given as indexes into the circuit's
tuple of nodes. `compile_circuit` prepares a circuit for inference.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from lpf.errors import (
    IncompleteSumError,
    MalformedCircuitError,
    NotDecomposableError,
    NotNormalisedError,
    UnknownPredicateError,
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A discrete variable. Every array over it follows the order of ``values``.

    Raises MalformedCircuitError for an empty name, an empty domain or a repeated value.
    """

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.name:
            raise MalformedCircuitError("A variable needs a non-empty name.")
        if not self.values:
            raise MalformedCircuitError(f"Variable {self.name!r} has no values.")
        if len(set(self.values)) != len(self.values):
            raise MalformedCircuitError(
                f"Variable {self.name!r} has duplicate values: {self.values}."
            )


@dataclass(frozen=True, slots=True)
class Leaf:
    """A categorical distribution over one variable: one probability per value."""

    variable: str
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A factorisation: no two children share a variable."""

    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """A mixture: all children are over the same variables; one weight per child."""

    children: tuple[int, ...]
    weights: tuple[float, ...]


Node = Leaf | Product | Sum
Priors = Mapping[str, Sequence[float]]  # a distribution per variable name


def children_of(node: Node) -> tuple[int, ...]:
    return () if isinstance(node, Leaf) else node.children


@dataclass(frozen=True)
class Circuit:
    """A valid circuit. An invalid one raises a CircuitError that names the node."""

    variables: tuple[Variable, ...]
    nodes: tuple[Node, ...]
    root: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "nodes", tuple(self.nodes))
        check_circuit(self.variables, self.nodes, self.root)

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) of the content. Depends on the node order, which also affects rounding."""
        return hash_content(circuit_content(self))


def circuit_content(circuit: Circuit) -> dict[str, object]:
    """Return the circuit as plain JSON values. Floats are written exactly (shortest round trip)."""
    return {
        "variables": [[variable.name, list(variable.values)] for variable in circuit.variables],
        "nodes": [_node_content(node) for node in circuit.nodes],
        "root": circuit.root,
    }


def hash_content(content: dict[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _node_content(node: Node) -> list[object]:
    match node:
        case Leaf(variable, probabilities):
            return ["leaf", variable, [float(p) for p in probabilities]]
        case Product(children):
            return ["product", list(children)]
        case Sum(children, weights):
            return ["sum", list(children), [float(w) for w in weights]]


class CircuitBuilder:
    """Builds a circuit node by node. Each method returns the index of the new node."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = tuple(variables)
        self._nodes: list[Node] = []

    def leaf(self, variable: str, probabilities: Sequence[float]) -> int:
        return self._add(Leaf(variable, tuple(float(p) for p in probabilities)))

    def indicator(self, variable: str, position: int, size: int) -> int:
        """Add a leaf with probability 1 for one value."""
        return self.leaf(variable, [float(index == position) for index in range(size)])

    def product(self, children: Sequence[int]) -> int:
        """Add a product. With a single child, return that child instead."""
        return children[0] if len(children) == 1 else self._add(Product(tuple(children)))

    def sum(self, children: Sequence[int], weights: Sequence[float]) -> int:
        return self._add(Sum(tuple(children), tuple(float(w) for w in weights)))

    def build(self, root: int) -> Circuit:
        """Return the circuit. Raises a CircuitError that names the invalid node."""
        return Circuit(self._variables, tuple(self._nodes), root)

    def _add(self, node: Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1


def prior_circuit(variables: Sequence[Variable], priors: Priors | None = None) -> Circuit:
    """Return a circuit of independent variables, each with its prior (default: uniform).

    Raises UnknownPredicateError, MalformedCircuitError (wrong size) or NotNormalisedError.
    """
    builder = CircuitBuilder(variables)
    resolved = resolve_priors(variables, priors)
    leaves = [builder.leaf(name, prior) for name, prior in resolved.items()]
    return builder.build(builder.product(leaves))


def resolve_priors(
    variables: Sequence[Variable], priors: Priors | None
) -> dict[str, tuple[float, ...]]:
    """Return one distribution per variable: the given one, or a uniform one.

    Raises UnknownPredicateError, MalformedCircuitError (wrong size) or NotNormalisedError.
    """
    given = dict(priors or {})
    unknown = sorted(set(given) - {variable.name for variable in variables})
    if unknown:
        raise UnknownPredicateError(
            f"Priors for unknown variables {unknown}; the variables are "
            f"{[variable.name for variable in variables]}."
        )
    resolved = {}
    for variable in variables:
        size = len(variable.values)
        prior = tuple(float(p) for p in given.get(variable.name, [1.0 / size] * size))
        if len(prior) != size:
            raise MalformedCircuitError(
                f"The prior of {variable.name!r} has {len(prior)} probabilities for {size} values."
            )
        check_distribution(prior, f"The prior of {variable.name!r}")
        resolved[variable.name] = prior
    return resolved


def check_circuit(variables: Sequence[Variable], nodes: Sequence[Node], root: int) -> None:
    """Raise a CircuitError unless the nodes form one smooth, decomposable, normalised DAG.

    The root must reach every node and cover every variable.
    """
    domains = _domains(variables)
    _check_index(root, nodes, "The root")
    for index, node in enumerate(nodes):
        _check_node(index, node, nodes, domains)
    order = topological_order(nodes, root)
    if len(order) != len(nodes):
        lost = sorted(set(range(len(nodes))) - set(order))[0]
        raise MalformedCircuitError(
            f"{describe(lost, nodes[lost])} is not reachable from the root."
        )
    _check_scopes(variables, nodes, order)


def topological_order(nodes: Sequence[Node], root: int) -> list[int]:
    """Nodes reached from the root, children before parents.

    Iterative, so that the depth of a circuit is not limited by Python's recursion limit.
    """
    order: list[int] = []
    open_nodes: set[int] = set()
    finished: set[int] = set()
    stack = [(root, False)]
    while stack:
        index, children_done = stack.pop()
        if children_done:
            open_nodes.discard(index)
            finished.add(index)
            order.append(index)
        elif index in open_nodes:
            raise MalformedCircuitError(f"{describe(index, nodes[index])} is part of a cycle.")
        elif index not in finished:
            open_nodes.add(index)
            stack.append((index, True))
            stack.extend(
                (c, False) for c in reversed(children_of(nodes[index])) if c not in finished
            )
    return order


def _domains(variables: Sequence[Variable]) -> dict[str, int]:
    domains = {variable.name: len(variable.values) for variable in variables}
    if not domains:
        raise MalformedCircuitError("A circuit needs at least one variable.")
    if len(domains) != len(variables):
        raise MalformedCircuitError("Two variables have the same name.")
    return domains


def _check_index(index: int, nodes: Sequence[Node], who: str) -> None:
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(nodes):
        raise MalformedCircuitError(
            f"{who} points to node {index!r}, which does not exist; there are {len(nodes)} nodes."
        )


def _check_node(index: int, node: Node, nodes: Sequence[Node], domains: dict[str, int]) -> None:
    name = describe(index, node)
    if isinstance(node, Leaf):
        _check_leaf(name, node, domains)
        return
    if not node.children:
        raise MalformedCircuitError(f"{name} has no children.")
    for child in node.children:
        _check_index(child, nodes, name)
    if isinstance(node, Sum):
        if len(node.weights) != len(node.children):
            raise MalformedCircuitError(
                f"{name} has {len(node.children)} children but {len(node.weights)} weights."
            )
        check_distribution(node.weights, name)


def _check_leaf(name: str, leaf: Leaf, domains: dict[str, int]) -> None:
    if leaf.variable not in domains:
        raise MalformedCircuitError(f"{name}: the circuit has no variable {leaf.variable!r}.")
    if len(leaf.probabilities) != domains[leaf.variable]:
        raise MalformedCircuitError(
            f"{name} has {len(leaf.probabilities)} probabilities for a variable with "
            f"{domains[leaf.variable]} values."
        )
    check_distribution(leaf.probabilities, name)


def _check_scopes(
    variables: Sequence[Variable], nodes: Sequence[Node], order: Sequence[int]
) -> None:
    # A scope is a bit mask with one bit per variable, so that unions and overlaps are cheap.
    bit = {variable.name: 1 << position for position, variable in enumerate(variables)}
    scopes = [0] * len(nodes)
    for index in order:
        node = nodes[index]
        if isinstance(node, Leaf):
            scopes[index] = bit[node.variable]
        elif isinstance(node, Product):
            scopes[index] = _product_scope(index, node, scopes, bit)
        else:
            scopes[index] = _sum_scope(index, node, scopes, bit)
    missing = _names((1 << len(variables)) - 1 & ~scopes[order[-1]], bit)
    if missing:
        raise MalformedCircuitError(f"The root does not cover the variables {missing}.")


def _product_scope(index: int, node: Product, scopes: list[int], bit: dict[str, int]) -> int:
    union = 0
    for child in node.children:
        if shared := union & scopes[child]:
            raise NotDecomposableError(
                f"{describe(index, node)}: child {child} shares {_names(shared, bit)} "
                "with an earlier child."
            )
        union |= scopes[child]
    return union


def _sum_scope(index: int, node: Sum, scopes: list[int], bit: dict[str, int]) -> int:
    first = scopes[node.children[0]]
    for child in node.children[1:]:
        if different := first ^ scopes[child]:
            raise IncompleteSumError(
                f"{describe(index, node)}: children {node.children[0]} and {child} differ in "
                f"{_names(different, bit)}."
            )
    return first


def _names(scope: int, bit: dict[str, int]) -> list[str]:
    return [name for name, flag in bit.items() if scope & flag]


# Weights are not renormalised, so this also bounds the error of every probability.
NORMALISATION_TOLERANCE = 1e-9


def check_distribution(numbers: Sequence[float], where: str) -> None:
    """Raise NotNormalisedError unless the numbers are finite, non-negative and sum to 1."""
    total = sum(numbers)
    # Also true for NaN and infinity, in any number or in the total.
    if not (abs(total - 1.0) <= NORMALISATION_TOLERANCE and min(numbers) >= 0.0):
        for number in numbers:
            if not (isfinite(number) and number >= 0.0):
                raise NotNormalisedError(f"{where} holds {number!r}; need finite numbers >= 0.")
        raise NotNormalisedError(f"{where} sums to {total!r}; it must sum to 1.")


def describe(index: int, node: Node) -> str:
    """Return the name of a node for error messages."""
    if isinstance(node, Leaf):
        return f"Node {index} (leaf of {node.variable!r})"
    return f"Node {index} ({type(node).__name__.lower()})"
