"""Turns a circuit into layers: which row each node has, and the arrays of each layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpf.spn.checks import topological_order
from lpf.spn.circuit import Circuit
from lpf.spn.layers import Columns, FloatArray, IntArray, Layer, ProductLayer, SumLayer
from lpf.spn.nodes import Leaf, Node, Product, children_of
from lpf.spn.variables import Variable

# Up to this many entries a dense product beats a sparse one.
_DENSE_LIMIT = 1 << 11
# OpenBLAS shares out products of 2**18 multiplications or more. On a busy machine its threads then
# wait for each other (measured: up to 17 times slower), so chunks of queries stay below that.
_MULTIPLICATIONS_LIMIT = (1 << 18) - 1
# Work arrays of a chunk stay small enough for the allocator to hand out the same memory again;
# fresh pages from the system cost several times the arithmetic.
_CHUNK_NUMBERS = 1 << 14
# Below this many queries the overhead of a call outweighs its arithmetic.
_SMALLEST_CHUNK = 128


@dataclass(frozen=True)
class Layout:
    """Layers in the order of evaluation, children first.

    ``slots`` gives the input rows of each variable, ``slot_table`` [largest V, X] the same as a
    table and ``slot_variable`` [S] the variable of each. There are ``n_slots`` = S inputs and
    ``n_rows`` = N rows in all. ``chunk`` is how many queries to work on at once; ``root`` is the
    row of the root.
    """

    slots: dict[str, slice]
    slot_table: IntArray
    slot_variable: IntArray
    n_slots: int
    n_rows: int
    chunk: int
    root: int
    layers: tuple[Layer, ...]


def build_layout(circuit: Circuit) -> Layout:
    slots = variable_slots(circuit.variables)
    sizes = np.array([len(variable.values) for variable in circuit.variables])
    n_slots = int(sizes.sum())
    groups = _groups(circuit)
    row_of = {node: n_slots + row for row, node in enumerate(n for group in groups for n in group)}
    layers = tuple(
        _layer(circuit.nodes, group, row_of, slots, exclusive)
        for group, exclusive in zip(groups, _exclusive(circuit.nodes, groups), strict=True)
    )
    return Layout(
        slots=slots,
        slot_table=_slot_table(sizes),
        slot_variable=np.repeat(np.arange(len(sizes)), sizes),
        n_slots=n_slots,
        n_rows=n_slots + len(row_of),
        chunk=_chunk(n_slots + len(row_of), layers),
        root=row_of[circuit.root],
        layers=layers,
    )


def _chunk(n_rows: int, layers: tuple[Layer, ...]) -> int:
    matrices = [m.matrix if isinstance(m, SumLayer) else m.spread for m in layers]
    largest = max((m.size for m in matrices if isinstance(m, np.ndarray)), default=1)
    return min(max(_SMALLEST_CHUNK, _CHUNK_NUMBERS // n_rows), _MULTIPLICATIONS_LIMIT // largest)


def variable_slots(variables: Iterable[Variable]) -> dict[str, slice]:
    slots, start = {}, 0
    for variable in variables:
        slots[variable.name] = slice(start, start + len(variable.values))
        start += len(variable.values)
    return slots


def _slot_table(sizes: IntArray) -> IntArray:
    # Shorter columns repeat their last input, which leaves a maximum over the column unchanged.
    depth = np.minimum(np.arange(sizes.max())[:, None], sizes - 1)
    table: IntArray = depth + (np.cumsum(sizes) - sizes)
    return table


def _groups(circuit: Circuit) -> list[list[int]]:
    """Nodes that are evaluated together: same height, same kind, products of the same arity.

    Within a group, nodes stand in breadth-first order from the root, so that the children of one
    node tend to be neighbours and are read without a copy.
    """
    nodes = circuit.nodes
    height: dict[int, int] = {}
    for index in topological_order(nodes, circuit.root):
        height[index] = 1 + max((height[child] for child in children_of(nodes[index])), default=-1)
    groups: dict[tuple[int, int], list[int]] = {}
    for index in _breadth_first(nodes, circuit.root):
        node = nodes[index]
        arity = len(node.children) if isinstance(node, Product) else 0
        groups.setdefault((height[index], arity), []).append(index)
    return [groups[key] for key in sorted(groups)]


def _breadth_first(nodes: Sequence[Node], root: int) -> list[int]:
    # dict.fromkeys keeps the first of equal entries, hence the order of first visit.
    order, level = {root: None}, [root]
    while level:
        below = dict.fromkeys(child for index in level for child in children_of(nodes[index]))
        level = [index for index in below if index not in order]
        order.update(dict.fromkeys(level))
    return list(order)


def _layer(
    nodes: Sequence[Node],
    group: list[int],
    row_of: dict[int, int],
    slots: dict[str, slice],
    exclusive: bool,
) -> Layer:
    rows = slice(row_of[group[0]], row_of[group[-1]] + 1)
    first = nodes[group[0]]
    if isinstance(first, Product):
        children = [row_of[child] for index in group for child in children_of(nodes[index])]
        return _product_layer(rows, len(first.children), np.array(children), exclusive)
    edges = [_edges(nodes[index], row_of, slots) for index in group]
    return _sum_layer(tuple(group), rows, edges, exclusive)


def _exclusive(nodes: Sequence[Node], groups: list[list[int]]) -> list[bool]:
    """Whether the children of each group belong to that group only."""
    families = [
        {child for index in group for child in children_of(nodes[index])} for group in groups
    ]
    groups_of = Counter(child for family in families for child in family)
    return [all(groups_of[child] == 1 for child in family) for family in families]


def _edges(
    node: Node, row_of: dict[int, int], slots: dict[str, slice]
) -> tuple[list[int], tuple[float, ...]]:
    if isinstance(node, Leaf):
        slot = slots[node.variable]
        return list(range(slot.start, slot.stop)), node.probabilities
    assert not isinstance(node, Product)
    return [row_of[child] for child in node.children], node.weights


def _sum_layer(
    nodes: tuple[int, ...],
    rows: slice,
    edges: list[tuple[list[int], tuple[float, ...]]],
    exclusive: bool,
) -> SumLayer:
    sizes = np.array([len(children) for children, _ in edges])
    parent = np.repeat(np.arange(len(edges)), sizes)
    child = np.array([row for children, _ in edges for row in children])
    weight = np.array([w for _, weights in edges for w in weights], dtype=np.float64)
    unique, position = np.unique(child, return_inverse=True)
    matrix = _operator(weight, parent, position, (len(edges), len(unique)))
    with np.errstate(divide="ignore"):  # a weight of zero is -inf in log space
        log_weight = np.log(weight)
    return SumLayer(
        nodes=nodes,
        rows=rows,
        columns=_columns(unique),
        exclusive=exclusive,
        matrix=matrix,
        matrix_transposed=_operator(weight, position, parent, (len(unique), len(edges))),
        edge_parent=parent,
        edge_child=child,
        edge_starts=np.concatenate([[0], np.cumsum(sizes)[:-1]]),
        edge_weight=weight,
        edge_log_weight=log_weight,
    )


def _product_layer(rows: slice, arity: int, children: IntArray, exclusive: bool) -> ProductLayer:
    unique, position = np.unique(children, return_inverse=True)
    parent = np.repeat(np.arange(len(children) // arity), arity)
    shape = (len(unique), len(children) // arity)
    spread = _operator(np.ones(len(children)), position, parent, shape)
    return ProductLayer(rows, arity, _columns(children), exclusive, _columns(unique), spread)


def _operator(weights: FloatArray, row: IntArray, column: IntArray, shape: tuple[int, int]) -> Any:
    """The matrix with these entries (equal places add up), dense when small."""
    if shape[0] * shape[1] <= _DENSE_LIMIT:
        dense = np.zeros(shape)
        np.add.at(dense, (row, column), weights)
        return dense
    from scipy.sparse import csr_array  # slow to import, and small circuits do without

    return csr_array((weights, (row, column)), shape=shape)


def _columns(rows: IntArray) -> Columns:
    first, last = int(rows[0]), int(rows[-1]) + 1
    if np.array_equal(rows, np.arange(first, last)):
        return slice(first, last)
    return rows
