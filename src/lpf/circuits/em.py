"""Expectation maximisation (EM) on the parameters of a circuit with a fixed structure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lpf.circuits.circuit import Circuit, Leaf, Node, Sum
from lpf.circuits.data_table import DataTable, check_at_least
from lpf.circuits.evaluator import expected_flows, sum_layers
from lpf.circuits.layout import FloatArray, build_layout
from lpf.errors import EvidenceError


@dataclass(frozen=True)
class RefineConfig:
    """Settings of `refine`.

    EM stops after ``iterations``, or when the mean log-likelihood per row changes by at most
    ``tolerance``. ``smoothing``: pseudo counts per edge, distributed as in the initial circuit.
    Without smoothing the likelihood never decreases; with it the penalised likelihood never does.
    """

    iterations: int = 100
    tolerance: float = 1e-6
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        check_at_least("iterations", self.iterations, 1)
        check_at_least("tolerance", self.tolerance, 0.0)
        check_at_least("smoothing", self.smoothing, 0.0)


@dataclass(frozen=True)
class Refined:
    """The fitted circuit, and the log-likelihood of the table before each step and at the end."""

    circuit: Circuit
    log_likelihoods: tuple[float, ...]


def refine(circuit: Circuit, table: DataTable, config: RefineConfig | None = None) -> Refined:
    """Fit weights and leaf probabilities to the table; the structure does not change.

    Zero weights stay zero. An empty table changes nothing. Raises EvidenceError if the table has
    other variables, ImpossibleEvidenceError if the circuit gives a row probability zero.
    """
    config = config or RefineConfig()
    if table.variables != circuit.variables:
        raise EvidenceError("The table and the circuit have different variables.")
    start, log_inputs = circuit, table.log_inputs()
    history: list[float] = []
    for _ in range(config.iterations):
        better, log_likelihood = _step(circuit, start, log_inputs, config.smoothing)
        history.append(log_likelihood)
        gain = log_likelihood - history[-2] if len(history) > 1 else np.inf
        if abs(gain) <= config.tolerance * len(log_inputs):
            return Refined(circuit, tuple(history))
        circuit = better
    history.append(expected_flows(build_layout(circuit), log_inputs)[1])
    return Refined(circuit, tuple(history))


def _step(
    circuit: Circuit, start: Circuit, log_inputs: FloatArray, smoothing: float
) -> tuple[Circuit, float]:
    """Return the circuit after one EM step, and the log-likelihood before it."""
    layout = build_layout(circuit)
    totals, log_likelihood = expected_flows(layout, log_inputs)
    nodes = list(circuit.nodes)
    for layer, total in zip(sum_layers(layout), totals, strict=True):
        for index, counts in zip(layer.nodes, np.split(total, layer.edge_starts[1:]), strict=True):
            counts += smoothing * len(counts) * _numbers(start.nodes[index])
            nodes[index] = _updated(nodes[index], counts)
    return replace(circuit, nodes=tuple(nodes)), log_likelihood


def _updated(node: Node, counts: FloatArray) -> Node:
    total = counts.sum()
    if total <= 0.0:  # no row uses this node
        return node
    numbers = tuple((counts / total).tolist())
    if isinstance(node, Leaf):
        return replace(node, probabilities=numbers)
    assert isinstance(node, Sum)
    return replace(node, weights=numbers)


def _numbers(node: Node) -> FloatArray:
    assert isinstance(node, Leaf | Sum)
    return np.array(node.probabilities if isinstance(node, Leaf) else node.weights)
