"""Chow-Liu trees: the tree of strongest pairwise dependences, as a circuit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lpf.circuits.circuit import Circuit, CircuitBuilder, Priors, prior_circuit, resolve_priors
from lpf.circuits.data_table import DataTable, check_at_least, smoothed
from lpf.circuits.layout import FloatArray
from lpf.circuits.queries import table_information
from lpf.errors import ConfigError, UnknownPredicateError


@dataclass(frozen=True)
class ChowLiuConfig:
    """Settings of `learn_chow_liu`.

    ``min_rows``: with fewer informative rows the result is `prior_circuit`. ``smoothing``: pseudo
    counts per value.
    """

    min_rows: int = 10
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        check_at_least("min_rows", self.min_rows, 1)
        check_at_least("smoothing", self.smoothing, 0.0)


def learn_chow_liu(
    table: DataTable,
    config: ChowLiuConfig | None = None,
    priors: Priors | None = None,
    groups: Sequence[Sequence[str]] | None = None,
) -> Circuit:
    """Learn the maximum-likelihood tree over the table's variables, rooted at the first.

    Pairs are counted over rows where both values are known and smoothed towards independence, so a
    pair that never occurs together stays independent. With ``groups``, each group of variables gets
    a tree of its own; variables of different groups, or in none, are independent, and their tables
    are not computed. Raises UnknownPredicateError or ConfigError for groups that overlap.
    """
    config = config or ChowLiuConfig()
    members = _columns(table, groups)
    if table.informative_rows < config.min_rows:
        return prior_circuit(table.variables, priors)
    counts = _Counts(table, config.smoothing, resolve_priors(table.variables, priors))
    return _TreeCircuit(table, counts, members).build()


def _columns(table: DataTable, groups: Sequence[Sequence[str]] | None) -> list[list[int]]:
    """The columns of each group, those of a variable in no group by themselves, in their order."""
    place = {variable.name: column for column, variable in enumerate(table.variables)}
    if groups is None:
        return [list(place.values())]
    named = [name for group in groups for name in group]
    unknown = sorted(set(named) - set(place))
    if unknown:
        raise UnknownPredicateError(f"groups: {unknown} are not variables; they are {list(place)}.")
    if len(set(named)) != len(named):
        raise ConfigError("a variable can be in one group only.", field="groups")
    alone = [[column] for name, column in place.items() if name not in set(named)]
    return sorted([*(sorted(place[name] for name in group) for group in groups if group), *alone])


def maximum_spanning_tree(weights: FloatArray) -> list[list[int]]:
    """Return the children of each vertex in the maximum spanning tree rooted at 0 (Prim).

    ``weights`` is [X, X]. scipy's function does not fit: it treats a weight of zero as no edge.
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
    """Smoothed marginal and pairwise distributions of a table."""

    def __init__(
        self, table: DataTable, smoothing: float, priors: dict[str, tuple[float, ...]]
    ) -> None:
        self._table = table
        self._smoothing = smoothing
        self.marginals = [
            smoothed(table.counts(index), priors[variable.name], smoothing)
            for index, variable in enumerate(table.variables)
        ]

    def joint(self, first: int, second: int) -> FloatArray:
        """P(first, second), [V, W]."""
        counts = self._table.counts(first, second)
        independent = np.outer(self.marginals[first], self.marginals[second])
        result = smoothed(counts.ravel(), independent.ravel(), self._smoothing)
        return result.reshape(counts.shape)

    def conditional(self, first: int, second: int) -> FloatArray:
        """P(second | first), [V, W]; the marginal of second for values of first without data."""
        joint = self.joint(first, second)
        total = joint.sum(axis=1, keepdims=True)
        known = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0.0)
        result: FloatArray = np.where(total > 0.0, known, self.marginals[second])
        return result

    def information(self, members: Sequence[int]) -> FloatArray:
        """The mutual information of every two of these variables, [M, M]; zero on the diagonal."""
        result = np.zeros((len(members), len(members)))
        for first, second in combinations(range(len(members)), 2):
            nats = table_information(self.joint(members[first], members[second]))
            result[first, second] = result[second, first] = nats
        return result


class _TreeCircuit:
    """Builds the circuit of one tree of conditional distributions per group of variables.

    A variable with children becomes one sum over its values for each value of its parent. The
    products below are shared between these sums, so the circuit is linear in the size of the
    conditional tables.
    """

    def __init__(self, table: DataTable, counts: _Counts, groups: list[list[int]]) -> None:
        self._variables = table.variables
        self._counts = counts
        self._groups = groups
        self._children: dict[int, list[int]] = {}
        for members in groups:
            tree = maximum_spanning_tree(counts.information(members))
            for vertex, children in enumerate(tree):
                self._children[members[vertex]] = [members[child] for child in children]
        self._builder = CircuitBuilder(table.variables)

    def build(self) -> Circuit:
        roots = [self._root(members[0]) for members in self._groups]
        return self._builder.build(self._builder.product(roots))

    def _root(self, first: int) -> int:
        """The node of the tree that is rooted at a variable."""
        below: dict[int, list[int]] = {}
        for vertex, parent in reversed(self._edges(first)):
            below[vertex] = self._vertex(vertex, self._counts.conditional(parent, vertex), below)
        (root,) = self._vertex(first, self._counts.marginals[first][None, :], below)
        return root

    def _edges(self, first: int) -> list[tuple[int, int]]:
        """Return (vertex, parent) for all vertices of a tree but the root, parents first."""
        edges, queue = [], [first]
        for parent in queue:
            for vertex in self._children[parent]:
                edges.append((vertex, parent))
                queue.append(vertex)
        return edges

    def _vertex(
        self, vertex: int, distributions: FloatArray, below: dict[int, list[int]]
    ) -> list[int]:
        """Return one node per distribution over the vertex, i.e. per value of its parent."""
        name, size = self._variables[vertex].name, distributions.shape[1]
        if not self._children[vertex]:
            return [self._builder.leaf(name, row.tolist()) for row in distributions]
        products = [
            self._builder.product(
                [
                    self._builder.indicator(name, position, size),
                    *(below[child][position] for child in self._children[vertex]),
                ]
            )
            for position in range(size)
        ]
        return [self._builder.sum(products, row.tolist()) for row in distributions]
