"""EM on the weights and leaves of a given structure, from rows with gaps.

Settings of the learners. A value out of range fails when the config is built.

Known facts with gaps: one row for each entity, one column for each variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import numpy.typing as npt

from lpf.circuits import evaluator as batch
from lpf.circuits.circuit import Circuit, Leaf, Node, Sum, Variable
from lpf.circuits.layout import FloatArray, IntArray, build_layout, variable_slots
from lpf.errors import ConfigError, EvidenceError, UnknownPredicateError, UnknownValueError


@dataclass(frozen=True)
class LearnSPNConfig:
    """LearnSPN.

    ``min_rows``: below this a part of the table is taken as independent, and a whole table gives
    the prior circuit. ``significance``: level of the independence test. ``smoothing``: imagined
    rows per value. ``clusters``: rows are split into so many, fitted in ``iterations`` of EM from
    ``restarts`` starts. ``max_depth``: of row splits. ``refinements``: steps of EM on the numbers
    at the end; clusters are hard, which misplaces rows with gaps, and this mends it.
    """

    min_rows: int = 30
    significance: float = 0.01
    smoothing: float = 1.0
    clusters: int = 2
    iterations: int = 100
    restarts: int = 3
    max_depth: int = 16
    refinements: int = 20

    def __post_init__(self) -> None:
        _at_least("min_rows", self.min_rows, 1)
        _inside("significance", self.significance, 0.0, 1.0)
        _at_least("smoothing", self.smoothing, 0.0)
        _at_least("clusters", self.clusters, 2)
        _at_least("iterations", self.iterations, 1)
        _at_least("restarts", self.restarts, 1)
        _at_least("max_depth", self.max_depth, 0)
        _at_least("refinements", self.refinements, 0)


@dataclass(frozen=True)
class ChowLiuConfig:
    """Chow-Liu tree. ``min_rows`` and ``smoothing`` as in LearnSPNConfig."""

    min_rows: int = 10
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        _at_least("min_rows", self.min_rows, 1)
        _at_least("smoothing", self.smoothing, 0.0)


@dataclass(frozen=True)
class RefineConfig:
    """EM on the numbers of a fixed structure.

    Stops after ``iterations`` or when the mean log-likelihood of a row changes by at most
    ``tolerance``. ``smoothing``: imagined uses per edge that follow the circuit given; with 0 the
    likelihood never falls, with more the penalised likelihood never does.
    """

    iterations: int = 100
    tolerance: float = 1e-6
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        _at_least("iterations", self.iterations, 1)
        _at_least("tolerance", self.tolerance, 0.0)
        _at_least("smoothing", self.smoothing, 0.0)


def _at_least(field: str, value: float, lowest: float) -> None:
    if not lowest <= value < inf:
        raise ConfigError(f"{field}: must be a finite number >= {lowest}, is {value!r}.")


def _inside(field: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise ConfigError(f"{field}: must lie between {low} and {high}, is {value!r}.")


MISSING = -1


@dataclass(frozen=True)
class Table:
    """``codes`` [N, X] holds places in the variables' domains, -1 where nothing is known.

    Raises EvidenceError for a wrong shape or type, UnknownValueError for a place out of range.
    """

    variables: tuple[Variable, ...]
    codes: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        codes = np.array(self.codes)
        if codes.size == 0:
            codes = np.empty((0, len(self.variables)), dtype=np.int64)
        if codes.ndim != 2 or codes.shape[1] != len(self.variables) or codes.dtype.kind not in "iu":
            raise EvidenceError(
                f"A table has shape {codes.shape} and type {codes.dtype}; "
                f"need integers [N, {len(self.variables)}]."
            )
        sizes = np.array([len(variable.values) for variable in self.variables])
        wrong = np.argwhere((codes < MISSING) | (codes >= sizes))
        if wrong.size:
            row, column = wrong[0].tolist()
            raise UnknownValueError(
                f"Row {row} of the table holds place {codes[row, column]} for "
                f"{self.variables[column].name!r}, which has {sizes[column]} values."
            )
        object.__setattr__(self, "codes", codes.astype(np.int64))
        self.codes.flags.writeable = False

    @classmethod
    def from_rows(
        cls, variables: Sequence[Variable], rows: Sequence[Mapping[str, str | None]]
    ) -> Table:
        """A table from mappings; a variable that is absent or None is missing.

        Raises UnknownPredicateError or UnknownValueError naming the row.
        """
        places = {v.name: {value: i for i, value in enumerate(v.values)} for v in variables}
        column = {variable.name: index for index, variable in enumerate(variables)}
        codes = np.full((len(rows), len(variables)), MISSING, dtype=np.int64)
        for number, row in enumerate(rows):
            for name, value in row.items():
                if name not in column:
                    raise UnknownPredicateError(f"Row {number}: there is no variable {name!r}.")
                if value is not None and value not in places[name]:
                    raise UnknownValueError(f"Row {number}: {value!r} is not a value of {name!r}.")
                if value is not None:
                    codes[number, column[name]] = places[name][value]
        return cls(tuple(variables), codes)

    @property
    def informative_rows(self) -> int:
        """Rows in which something is known."""
        return int((self.codes != MISSING).any(axis=1).sum())

    def one_hot(self) -> FloatArray:
        """[N, S], 1 at each known value; all zeros where a variable is missing."""
        sizes = [len(variable.values) for variable in self.variables]
        result = np.zeros((len(self.codes), sum(sizes)))
        starts = np.cumsum([0, *sizes[:-1]])
        row, column = np.nonzero(self.codes != MISSING)
        result[row, starts[column] + self.codes[row, column]] = 1.0
        return result

    def log_inputs(self) -> FloatArray:
        """The rows as hard evidence, [N, S] log-likelihoods, for the batched evaluator."""
        hot = self.one_hot()
        result = np.zeros(hot.shape)
        for index, slot in enumerate(variable_slots(self.variables).values()):
            known = self.codes[:, index] != MISSING
            result[np.ix_(known, np.arange(slot.start, slot.stop))] = np.where(
                hot[known, slot] > 0.0, 0.0, -np.inf
            )
        return result


def smoothed(counts: npt.ArrayLike, prior: npt.ArrayLike, smoothing: float) -> FloatArray:
    """Counts [V] to probabilities, with ``smoothing`` x V imagined rows that follow the prior.

    A uniform prior makes this Laplace smoothing. Without any counts the result is the prior.
    """
    counts, prior = np.asarray(counts, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    weighted = counts + smoothing * len(prior) * prior
    total = weighted.sum()
    if total <= 0.0:
        weighted, total = prior, prior.sum()
    result: FloatArray = weighted / total
    return result


@dataclass(frozen=True)
class Refined:
    """The circuit after EM, and the table's log-likelihood before each step and at the end."""

    circuit: Circuit
    log_likelihoods: tuple[float, ...]


def refine(circuit: Circuit, table: Table, config: RefineConfig | None = None) -> Refined:
    """Fit the numbers of the circuit to the table; the structure stays.

    Zero weights stay zero. An empty table changes nothing. Raises EvidenceError when the table has
    other variables, ImpossibleEvidenceError when a row is impossible in the circuit.
    """
    config = config or RefineConfig()
    if table.variables != circuit.variables:
        raise EvidenceError("The table and the circuit do not have the same variables.")
    start, log_inputs = circuit, table.log_inputs()
    history: list[float] = []
    for _ in range(config.iterations):
        better, log_likelihood = _step(circuit, start, log_inputs, config.smoothing)
        history.append(log_likelihood)
        gain = log_likelihood - history[-2] if len(history) > 1 else np.inf
        if abs(gain) <= config.tolerance * len(log_inputs):
            return Refined(circuit, tuple(history))
        circuit = better
    history.append(batch.expected_flows(build_layout(circuit), log_inputs)[1])
    return Refined(circuit, tuple(history))


def _step(
    circuit: Circuit, start: Circuit, log_inputs: FloatArray, smoothing: float
) -> tuple[Circuit, float]:
    """The circuit after one step of EM, and the log-likelihood before it."""
    layout = build_layout(circuit)
    totals, log_likelihood = batch.expected_flows(layout, log_inputs)
    nodes = list(circuit.nodes)
    for layer, total in zip(batch.sum_layers(layout), totals, strict=True):
        for index, counts in zip(layer.nodes, np.split(total, layer.edge_starts[1:]), strict=True):
            counts += smoothing * len(counts) * _numbers(start.nodes[index])
            nodes[index] = _updated(nodes[index], counts)
    return replace(circuit, nodes=tuple(nodes)), log_likelihood


def _updated(node: Node, counts: FloatArray) -> Node:
    total = counts.sum()
    if total <= 0.0:  # never used by any row: nothing to learn from
        return node
    numbers = tuple((counts / total).tolist())
    if isinstance(node, Leaf):
        return replace(node, probabilities=numbers)
    assert isinstance(node, Sum)
    return replace(node, weights=numbers)


def _numbers(node: Node) -> FloatArray:
    assert isinstance(node, Leaf | Sum)
    return np.array(node.probabilities if isinstance(node, Leaf) else node.weights)
