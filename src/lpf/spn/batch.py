"""Many queries at once: chunks of rows through the linear passes, doubtful rows through logs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lpf.errors import ImpossibleEvidenceError
from lpf.spn import passes
from lpf.spn.layers import FloatArray, IntArray, SumLayer
from lpf.spn.layout import Layout
from lpf.spn.passes import SAFE_ROOT

_ROWS_SHOWN = 10


def log_likelihoods(layout: Layout, log_inputs: FloatArray) -> FloatArray:
    """log of each row's evidence, [B], from log-likelihoods [B, S]; -inf where impossible."""
    result = np.empty(len(log_inputs))
    for part, values, _ in _chunks(layout, log_inputs):
        shift = _upward(layout, log_inputs[part], values)
        root = values[layout.root]
        unsafe = root < SAFE_ROOT
        result[part] = np.log(np.where(unsafe, 1.0, root)) + shift
        if unsafe.any():
            rows = part.start + np.nonzero(unsafe)[0]
            result[rows] = passes.upward_log(layout, log_inputs[rows].T)[layout.root]
    return result


def posteriors(layout: Layout, log_inputs: FloatArray) -> FloatArray:
    """Posterior marginals [B, S] from log-likelihoods [B, S].

    Raises ImpossibleEvidenceError naming the rows.
    """
    result = np.empty(log_inputs.shape)
    for part, values, flow in _chunks(layout, log_inputs):
        _upward(layout, log_inputs[part], values)
        unsafe = values[layout.root] < SAFE_ROOT
        if any_unsafe := bool(unsafe.any()):
            # Their flows would divide by rounded values; any number does, they are redone below.
            values[:, unsafe] = 1.0
        passes.downward(layout, values, flow)
        result[part] = flow[: layout.n_slots].T
        if any_unsafe:
            rows = part.start + np.nonzero(unsafe)[0]
            logs = upward_log_rows(layout, log_inputs, rows)
            result[rows] = passes.downward_log(layout, logs)[: layout.n_slots].T
    return result


def expected_flows(layout: Layout, log_inputs: FloatArray) -> tuple[list[FloatArray], float]:
    """Flow of each edge of each sum layer, [E], added up over all rows, and the log-likelihood.

    The flow of an edge is how often it was used, in expectation given the evidence. Raises
    ImpossibleEvidenceError naming the rows.
    """
    layers = sum_layers(layout)
    totals = [np.zeros(len(layer.edge_weight)) for layer in layers]
    log_likelihood = 0.0
    for part, chunk, _ in _chunks(layout, log_inputs):
        shift = _upward(layout, log_inputs[part], chunk)
        safe = chunk[layout.root] >= SAFE_ROOT
        values = chunk if safe.all() else chunk[:, safe]
        flow = np.empty_like(values)
        passes.downward(layout, values, flow)
        for total, layer in zip(totals, layers, strict=True):
            total += layer.edge_flow(values, flow).sum(axis=1)
        log_likelihood += float((np.log(values[layout.root]) + shift[safe]).sum())
        if not safe.all():
            rows = part.start + np.nonzero(~safe)[0]
            log_likelihood += _add_flows_in_logs(layout, log_inputs, rows, totals)
    return totals, log_likelihood


def sum_layers(layout: Layout) -> list[SumLayer]:
    return [layer for layer in layout.layers if isinstance(layer, SumLayer)]


def _add_flows_in_logs(
    layout: Layout, log_inputs: FloatArray, rows: IntArray, totals: list[FloatArray]
) -> float:
    values = upward_log_rows(layout, log_inputs, rows)
    flow = passes.downward_log(layout, values)
    for total, layer in zip(totals, sum_layers(layout), strict=True):
        total += layer.edge_flow_log(values, flow).sum(axis=1)
    return float(values[layout.root].sum())


def upward_log_rows(layout: Layout, log_inputs: FloatArray, rows: IntArray) -> FloatArray:
    """Log values [N, R] of some rows. Raises ImpossibleEvidenceError naming rows and variables."""
    values = passes.upward_log(layout, log_inputs[rows].T)
    impossible = rows[np.isneginf(values[layout.root])]
    if impossible.size:
        given = (log_inputs[impossible] != 0.0).any(axis=0)
        observed = [name for name, slot in layout.slots.items() if given[slot].any()]
        more = " and more" if impossible.size > _ROWS_SHOWN else ""
        raise ImpossibleEvidenceError(
            f"The evidence about {observed} has probability zero in every world of the circuit, "
            f"in rows {impossible[:_ROWS_SHOWN].tolist()}{more}."
        )
    return values


def _chunks(
    layout: Layout, log_inputs: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Slices of rows, each with work arrays for values and flow, [N, rows], used again."""
    size = min(layout.chunk, max(1, len(log_inputs)))
    values = np.empty((layout.n_rows, size))
    flow = np.empty_like(values)
    for start in range(0, len(log_inputs), size):
        stop = min(start + size, len(log_inputs))
        yield slice(start, stop), values[:, : stop - start], flow[:, : stop - start]


def _upward(layout: Layout, log_inputs: FloatArray, values: FloatArray) -> FloatArray:
    """Linear upward pass into ``values``; returns the log of what scaling took out, [B]."""
    inputs = values[: layout.n_slots]
    inputs[...] = log_inputs.T
    shift = passes.scale_inputs(layout, inputs)
    passes.upward(layout, values)
    return shift
