"""Chow-Liu: the tree of strongest pairwise dependences, compiled to a circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lpf.circuits.circuit import Circuit, CircuitBuilder, prior_circuit, resolve_priors
from lpf.circuits.layout import FloatArray, variable_slots
from lpf.circuits.learning import ChowLiuConfig, Table, smoothed
from lpf.circuits.queries import table_information

Priors = Mapping[str, Sequence[float]]


def learn_chow_liu(
    table: Table, config: ChowLiuConfig | None = None, priors: Priors | None = None
) -> Circuit:
    """The best tree over the table's variables, rooted at the first.

    Pairs are counted over rows where both are known and smoothed towards independence, so a pair
    that was never seen together stays independent. With fewer than ``min_rows`` rows that know
    something, this is `prior_circuit`.
    """
    config = config or ChowLiuConfig()
    if table.informative_rows < config.min_rows:
        return prior_circuit(table.variables, priors)
    counts = _Counts(table, config.smoothing, resolve_priors(table.variables, priors))
    information = np.array([[counts.information(i, j) for j in counts.all] for i in counts.all])
    return _TreeCircuit(table, counts, maximum_spanning_tree(information)).build()


def maximum_spanning_tree(weights: FloatArray) -> list[list[int]]:
    """Children of each vertex in the heaviest tree rooted at vertex 0 (Prim). ``weights`` [X, X].

    Our own because scipy's takes a weight of zero for a missing edge.
    """
    size = len(weights)
    children: list[list[int]] = [[] for _ in range(size)]
    best, parent = weights[0].copy(), np.zeros(size, dtype=np.int64)
    outside = np.arange(size) > 0
    while outside.any():
        vertex = int(np.argmax(np.where(outside, best, -np.inf)))
        children[int(parent[vertex])].append(vertex)
        outside[vertex] = False
        closer = outside & (weights[vertex] > best)
        best[closer], parent[closer] = weights[vertex][closer], vertex
    return children


class _Counts:
    """Smoothed marginals and joints of pairs."""

    def __init__(
        self, table: Table, smoothing: float, priors: dict[str, tuple[float, ...]]
    ) -> None:
        self.all = range(len(table.variables))
        self._slots = list(variable_slots(table.variables).values())
        self._smoothing = smoothing
        one_hot = table.one_hot()
        self._pairs = one_hot.T @ one_hot
        single = one_hot.sum(axis=0)
        self.marginals = [
            smoothed(single[slot], priors[variable.name], smoothing)
            for slot, variable in zip(self._slots, table.variables, strict=True)
        ]

    def joint(self, first: int, second: int) -> FloatArray:
        """P(first, second), [V, W]."""
        counts = self._pairs[self._slots[first], self._slots[second]]
        independent = np.outer(self.marginals[first], self.marginals[second])
        result = smoothed(counts.ravel(), independent.ravel(), self._smoothing)
        return result.reshape(counts.shape)

    def conditional(self, first: int, second: int) -> FloatArray:
        """P(second | first), [V, W]; the marginal of second where first was never seen."""
        joint = self.joint(first, second)
        total = joint.sum(axis=1, keepdims=True)
        known = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0.0)
        result: FloatArray = np.where(total > 0.0, known, self.marginals[second])
        return result

    def information(self, first: int, second: int) -> float:
        return table_information(self.joint(first, second))


class _TreeCircuit:
    """A tree of conditional tables as a circuit.

    A variable with children becomes, for each value of its parent, a sum over its own values; the
    product below a value is shared by all values of the parent, so the circuit stays linear in
    the size of the tables.
    """

    def __init__(self, table: Table, counts: _Counts, children: list[list[int]]) -> None:
        self._variables = table.variables
        self._counts = counts
        self._children = children
        self._builder = CircuitBuilder(table.variables)

    def build(self) -> Circuit:
        distributions = self._counts.marginals[0][None, :]
        below: dict[int, list[int]] = {}
        for vertex, parent in reversed(self._edges()):
            below[vertex] = self._vertex(vertex, self._counts.conditional(parent, vertex), below)
        (root,) = self._vertex(0, distributions, below)
        return self._builder.build(root)

    def _edges(self) -> list[tuple[int, int]]:
        """(vertex, parent) of all but the root, parents first."""
        edges, queue = [], [0]
        for parent in queue:
            for vertex in self._children[parent]:
                edges.append((vertex, parent))
                queue.append(vertex)
        return edges

    def _vertex(
        self, vertex: int, distributions: FloatArray, below: dict[int, list[int]]
    ) -> list[int]:
        """One node for each distribution over the vertex, i.e. for each value of its parent."""
        name, size = self._variables[vertex].name, distributions.shape[1]
        if not self._children[vertex]:
            return [self._builder.leaf(name, row.tolist()) for row in distributions]
        products = [
            self._builder.product(
                [
                    self._builder.indicator(name, place, size),
                    *(below[child][place] for child in self._children[vertex]),
                ]
            )
            for place in range(size)
        ]
        return [self._builder.sum(products, row.tolist()) for row in distributions]
