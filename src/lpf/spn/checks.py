"""What makes a circuit valid. Every failure is a named error that says which node."""

from __future__ import annotations

from collections.abc import Sequence

from lpf.errors import IncompleteSumError, MalformedCircuitError, NotDecomposableError
from lpf.spn.nodes import Leaf, Node, Product, Sum, children_of, describe
from lpf.spn.variables import Variable, check_distribution


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
        raise MalformedCircuitError(f"{describe(lost, nodes[lost])} is not reached from the root.")
    _check_scopes(variables, nodes, order)


def topological_order(nodes: Sequence[Node], root: int) -> list[int]:
    """Nodes reached from the root, children before parents.

    Written without recursion, so that depth is not bounded by the interpreter's stack.
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
        raise MalformedCircuitError("Two variables of the circuit have the same name.")
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
            f"{name} has {len(leaf.probabilities)} probabilities for a variable of "
            f"{domains[leaf.variable]} values."
        )
    check_distribution(leaf.probabilities, name)


def _check_scopes(
    variables: Sequence[Variable], nodes: Sequence[Node], order: Sequence[int]
) -> None:
    # A scope is an integer with one bit for each variable: unions and overlaps stay cheap.
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
