"""The two kinds of compiled layer, each with its upward and downward pass.

Rows of the work array are nodes, columns are queries: shape [N, B]. The linear passes also take
[N], which is quicker for one query. The first S rows are the inputs, one for each value of each
variable, so that a leaf is just a sum over inputs.

Two number systems. In *linear* space a layer is one small matrix product. In *log* space nothing
can underflow; it is the reference, and what the evaluator falls back on. The downward pass is the
same quantity in both: `flow`, the posterior probability that a node takes part, given all the
evidence. It stays in [0, 1], hence needs no logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Columns = slice | IntArray

# Turns 0/0 into 0: a node of value 0 has no flow, and only zeros are changed by the maximum.
_SMALLEST = np.array(np.nextafter(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class SumLayer:
    """Mixtures, and leaves. ``matrix`` is [n, C], dense when small and sparse when large.

    ``exclusive``: no other layer has these children, so their flow is set and not added to.
    The ``edge_*`` arrays hold the same weights one edge a row, grouped by parent.
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
        with np.errstate(divide="ignore"):  # log 0 = -inf is what we mean
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

    def possible_children(self, place: int) -> list[int]:
        """Rows of the children of one node with a weight above zero."""
        edges = self.edges_of(place)
        rows: list[int] = self.edge_child[edges][self.edge_weight[edges] > 0.0].tolist()
        return rows

    def edges_of(self, place: int) -> slice:
        """Where the edges of one node of the layer stand."""
        ends = [*self.edge_starts[place + 1 : place + 2], len(self.edge_parent)]
        return slice(int(self.edge_starts[place]), int(ends[0]))

    def _share(self, values: FloatArray, flow: FloatArray) -> FloatArray:
        """flow / value of each node, [n, B]; 0 where the value is 0."""
        share: FloatArray = np.maximum(values[self.rows], _SMALLEST)
        return np.divide(flow[self.rows], share, out=share)


@dataclass(frozen=True, slots=True)
class ProductLayer:
    """Products of one arity. ``children`` is [n * arity], a slice where the rows are adjacent."""

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

    # The flow through a product does not depend on its value, in whichever space that is.
    def downward_log(self, values: FloatArray, flow: FloatArray) -> None:
        self.downward(values, flow)

    def possible_children(self, place: int) -> list[int]:
        """Rows of the children of one product of the layer."""
        first, last = place * self.arity, (place + 1) * self.arity
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
    """-inf replaced by 0, for use as a shift only: -inf - (-inf) would be NaN."""
    return np.where(np.isneginf(log_values), 0.0, log_values)
