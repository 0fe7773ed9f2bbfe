"""EM on the weights and leaves of a given structure, from rows with gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lpf.errors import EvidenceError
from lpf.spn import batch
from lpf.spn.circuit import Circuit
from lpf.spn.config import RefineConfig
from lpf.spn.layers import FloatArray
from lpf.spn.layout import build_layout
from lpf.spn.nodes import Leaf, Node, Sum
from lpf.spn.table import Table


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
