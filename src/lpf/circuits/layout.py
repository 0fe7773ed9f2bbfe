"""The compiled form of a circuit: layers of nodes that are evaluated together.

Work arrays have one row per node and one column per query, [N, B]. The linear passes also accept
[N], which is faster for a single query. The first S rows are the inputs, one per value of each
variable, so that a leaf is a weighted sum of inputs.

Each layer has an upward and a downward pass in two number systems. In *linear* space a layer is one
small matrix product. In *log* space nothing underflows; the evaluator falls back on it. The
downward pass computes the same quantity in both: the *flow* of a node, the posterior probability
that it is active given the evidence. A flow lies in [0, 1] and needs no logarithms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lpf.circuits.circuit import (
    Circuit,
    Leaf,
    Node,
    Product,
    Variable,
    children_of,
    topological_order,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Columns = slice | IntArray

# Makes 0/0 equal 0: a node with value 0 has no flow, and the maximum changes only zeros.
_SMALLEST = np.array(np.nextafter(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class SumLayer:
    """Sums and leaves. ``matrix`` is [n, C], dense if small and sparse if large.

    ``exclusive``: no other layer has these children, so their flow is assigned, not accumulated.
    The ``edge_*`` arrays hold the same weights, one entry per edge, grouped by parent.
    """

    nodes: tuple[int, ...]
    rows: slice
    columns: Columns
    exclusive: bool
    matrix: Any
    matrix_transposed: Any
    edge_parent: IntArray
    edge_child: IntArray
    edge_starts: IntArray
    edge_weight: FloatArray
    edge_log_weight: FloatArray

    def upward(self, values: FloatArray) -> None:
        values[self.rows] = self.matrix.dot(values[self.columns])

    def downward(self, values: FloatArray, flow: FloatArray) -> None:
        arriving = self.matrix_transposed.dot(self._share(values, flow))
        if self.exclusive and isinstance(self.columns, slice):
            np.multiply(arriving, values[self.columns], out=flow[self.columns])
        else:
            flow[self.columns] += arriving * values[self.columns]

    def upward_log(self, values: FloatArray) -> None:
        terms = self.log_terms(values)
        anchor = _finite(np.maximum.reduceat(terms, self.edge_starts, axis=0))
        shares = np.exp(terms - anchor[self.edge_parent])
        total = np.add.reduceat(shares, self.edge_starts, axis=0)
        with np.errstate(divide="ignore"):  # log 0 = -inf is intended
            values[self.rows] = np.log(total) + anchor

    def downward_log(self, values: FloatArray, flow: FloatArray) -> None:
        np.add.at(flow, self.edge_child, self.edge_flow_log(values, flow))

    def edge_flow(self, values: FloatArray, flow: FloatArray) -> FloatArray:
        """Flow along each edge, [E, B], from the arrays of the linear passes."""
        share = self._share(values, flow)[self.edge_parent]
        return share * values[self.edge_child] * self.edge_weight[:, None]

    def edge_flow_log(self, values: FloatArray, flow: FloatArray) -> FloatArray:
        """Flow along each edge, [E, B], from the values of the log pass."""
        parent = _finite(values[self.rows])[self.edge_parent]
        return np.exp(self.log_terms(values) - parent) * flow[self.rows][self.edge_parent]

    def log_terms(self, values: FloatArray) -> FloatArray:
        """log(weight x child) of each edge, [E, B]."""
        return values[self.edge_child] + self.edge_log_weight[:, None]

    def possible_children(self, position: int) -> list[int]:
        """Rows of the children of one node with a weight above zero."""
        edges = self.edges_of(position)
        rows: list[int] = self.edge_child[edges][self.edge_weight[edges] > 0.0].tolist()
        return rows

    def edges_of(self, position: int) -> slice:
        """Return the slice of the ``edge_*`` arrays that belongs to one node of the layer."""
        ends = [*self.edge_starts[position + 1 : position + 2], len(self.edge_parent)]
        return slice(int(self.edge_starts[position]), int(ends[0]))

    def _share(self, values: FloatArray, flow: FloatArray) -> FloatArray:
        """flow / value of each node, [n, B]; 0 if the value is 0."""
        share: FloatArray = np.maximum(values[self.rows], _SMALLEST)
        return np.divide(flow[self.rows], share, out=share)


@dataclass(frozen=True, slots=True)
class ProductLayer:
    """Products with the same number of children (``arity``).

    ``children`` is [n * arity], or a slice if the rows are adjacent.
    """

    rows: slice
    arity: int
    children: Columns
    exclusive: bool
    spread_rows: Columns
    spread: Any

    def upward(self, values: FloatArray) -> None:
        np.multiply.reduce(self._gather(values), axis=1, out=values[self.rows])

    def upward_log(self, values: FloatArray) -> None:
        np.add.reduce(self._gather(values), axis=1, out=values[self.rows])

    def downward(self, values: FloatArray, flow: FloatArray) -> None:
        if isinstance(self.children, slice):
            children, parents = self._gather(flow), flow[self.rows][:, None]
            if self.exclusive:
                children[...] = parents
            else:
                children += parents
        else:
            flow[self.spread_rows] += self.spread.dot(flow[self.rows])

    # The flow through a product does not depend on its value, so both spaces are the same.
    def downward_log(self, values: FloatArray, flow: FloatArray) -> None:
        self.downward(values, flow)

    def possible_children(self, position: int) -> list[int]:
        """Rows of the children of one product of the layer."""
        first, last = position * self.arity, (position + 1) * self.arity
        if isinstance(self.children, slice):
            return list(range(self.children.start + first, self.children.start + last))
        rows: list[int] = self.children[first:last].tolist()
        return rows

    def _gather(self, array: FloatArray) -> FloatArray:
        """[n, arity, B]; a view when the children are adjacent."""
        nodes = self.rows.stop - self.rows.start
        return array[self.children].reshape(nodes, self.arity, *array.shape[1:])


Layer = SumLayer | ProductLayer


def _finite(log_values: FloatArray) -> FloatArray:
    """Replace -inf by 0, for use as a shift only: -inf - (-inf) would be NaN."""
    return np.where(np.isneginf(log_values), 0.0, log_values)


# Up to this many entries a dense product is faster than a sparse one.
_DENSE_LIMIT = 1 << 11
# OpenBLAS uses several threads from 2**18 multiplications on. On a busy machine these wait for each
# other (measured: up to 17 times slower), so chunks of queries stay below that size.
_MULTIPLICATIONS_LIMIT = (1 << 18) - 1
# Work arrays stay small enough for the allocator to reuse the same memory; new pages from the
# operating system would cost several times the arithmetic.
_CHUNK_NUMBERS = 1 << 14
# With fewer queries per chunk, the overhead of the calls dominates.
_SMALLEST_CHUNK = 128


@dataclass(frozen=True)
class Layout:
    """Layers in order of evaluation, children first.

    ``slots`` gives the input rows of each variable, ``slot_table`` [largest V, X] the same as an
    array, and ``slot_variable`` [S] the variable of each input. There are ``n_slots`` = S inputs
    and ``n_rows`` = N rows in total. ``chunk`` is the number of queries per pass; ``root`` is the
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
    """Assign a row to every node and build the layers."""
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
    """Return the input rows of each variable."""
    slots, start = {}, 0
    for variable in variables:
        slots[variable.name] = slice(start, start + len(variable.values))
        start += len(variable.values)
    return slots


def _slot_table(sizes: IntArray) -> IntArray:
    # Shorter columns repeat their last input, which does not change the maximum of the column.
    depth = np.minimum(np.arange(sizes.max())[:, None], sizes - 1)
    table: IntArray = depth + (np.cumsum(sizes) - sizes)
    return table


def _groups(circuit: Circuit) -> list[list[int]]:
    """Nodes that are evaluated together: same height, same kind, products of the same arity.

    Nodes of a group are in breadth-first order from the root, so that the children of one node tend
    to be adjacent and can be read without a copy.
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
    # dict.fromkeys removes duplicates and keeps the order of the first visit.
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
    """Return, for each group, True if its children belong to no other group."""
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
    """Build a matrix from its entries (duplicates add up), dense if small."""
    if shape[0] * shape[1] <= _DENSE_LIMIT:
        dense = np.zeros(shape)
        np.add.at(dense, (row, column), weights)
        return dense
    from scipy.sparse import csr_array  # slow to import; small circuits do not need it

    return csr_array((weights, (row, column)), shape=shape)


def _columns(rows: IntArray) -> Columns:
    first, last = int(rows[0]), int(rows[-1]) + 1
    if np.array_equal(rows, np.arange(first, last)):
        return slice(first, last)
    return rows
