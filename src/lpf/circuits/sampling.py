"""Independent samples from a circuit, optionally given evidence."""

from __future__ import annotations

from math import inf

import numpy as np

from lpf.circuits.evaluator import CompiledCircuit, upward_log
from lpf.circuits.evidence import NO_HARD, NO_SOFT, Hard, Soft, impossible_evidence
from lpf.circuits.layout import FloatArray, IntArray, Layer, SumLayer
from lpf.errors import ConfigError


def sample(
    compiled: CompiledCircuit,
    size: int,
    hard: Hard = NO_HARD,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
    *,
    generator: np.random.Generator,
) -> IntArray:
    """Draw from P(all variables | evidence); returns positions of values, [size, X].

    One upward pass, then one walk from the root to the inputs for all draws together. Raises
    ConfigError for a negative size, and ImpossibleEvidenceError.
    """
    if size < 0:
        raise ConfigError(f"must be >= 0, got {size}.", field="size")
    layout = compiled.layout
    log_inputs = np.array(compiled.encoder.log_inputs(hard, soft, log_soft))
    values = upward_log(layout, log_inputs[:, None])
    if values[layout.root, 0] == -inf:
        raise impossible_evidence(hard, soft, log_soft)
    visitors: dict[int, list[IntArray]] = {layout.root: [np.arange(size)]}
    for layer in reversed(layout.layers):
        _descend(layer, values, visitors, generator)
    return _draws(compiled, visitors, size)


def _descend(
    layer: Layer, values: FloatArray, visitors: dict[int, list[IntArray]], rng: np.random.Generator
) -> None:
    """Pass the draws that reached each node of the layer on to its children."""
    for position, row in enumerate(range(layer.rows.start, layer.rows.stop)):
        draws = np.concatenate(visitors.pop(row, [np.empty(0, dtype=np.int64)]))
        if not draws.size:
            continue
        if isinstance(layer, SumLayer):
            for child, chosen in _choose(layer, position, row, values, draws, rng):
                visitors.setdefault(child, []).append(chosen)
        else:
            for child in layer.possible_children(position):
                visitors.setdefault(child, []).append(draws)


def _choose(
    layer: SumLayer,
    position: int,
    row: int,
    values: FloatArray,
    draws: IntArray,
    rng: np.random.Generator,
) -> list[tuple[int, IntArray]]:
    edges = layer.edges_of(position)
    children = layer.edge_child[edges]
    shares = np.exp(layer.edge_log_weight[edges] + values[children, 0] - values[row, 0])
    picks = rng.choice(len(children), size=draws.size, p=shares / shares.sum())
    return [(int(child), draws[picks == pick]) for pick, child in enumerate(children)]


def _draws(compiled: CompiledCircuit, visitors: dict[int, list[IntArray]], size: int) -> IntArray:
    # Only inputs are left: one per value, visited by the draws that have this value.
    result = np.empty((size, len(compiled.layout.slots)), dtype=np.int64)
    for column, slot in enumerate(compiled.layout.slots.values()):
        for position, row in enumerate(range(slot.start, slot.stop)):
            for draws in visitors.get(row, []):
                result[draws, column] = position
    return result
