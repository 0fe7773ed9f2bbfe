"""Upward and downward passes over a layout, and why the quick one may be trusted.

The linear pass works on inputs scaled into [0, 1]. Every node's value is then in [0, 1] too, and
the root is affine in each with a slope of at most 1, so all underflow together moves the root by
less than N x 2**-1022. A root of `SAFE_ROOT` or more is therefore exact to far below the rounding
of float64. Queries with a smaller root are done again in log space.
"""

from __future__ import annotations

import numpy as np

from lpf.spn.layers import FloatArray
from lpf.spn.layout import Layout

SAFE_ROOT = 1e-280
# Replaces a peak of -inf. Any number would do: such a query is impossible or done in log space.
_LOWEST_PEAK = -1e300


def upward(layout: Layout, values: FloatArray) -> None:
    """Fill in the value of every node. ``values`` [N, B] has its inputs, in [0, 1], in place."""
    for layer in layout.layers:
        layer.upward(values)


def downward(layout: Layout, values: FloatArray, flow: FloatArray) -> None:
    """Fill in the flow of every node, [N, B]. The first S rows are the posterior marginals."""
    flow.fill(0.0)
    flow[layout.root] = 1.0
    for layer in reversed(layout.layers):
        layer.downward(values, flow)


def upward_log(layout: Layout, log_inputs: FloatArray) -> FloatArray:
    """Log value of every node, [N, B], from log-likelihoods [S, B]; -inf for zero."""
    values = np.empty((layout.n_rows, log_inputs.shape[1]))
    values[: layout.n_slots] = log_inputs
    for layer in layout.layers:
        layer.upward_log(values)
    return values


def downward_log(layout: Layout, values: FloatArray) -> FloatArray:
    """The same flow as `downward`, [N, B], from the values of `upward_log`."""
    flow = np.zeros_like(values)
    flow[layout.root] = 1.0
    for layer in reversed(layout.layers):
        layer.downward_log(values, flow)
    return flow


def scale_inputs(layout: Layout, inputs: FloatArray) -> FloatArray:
    """Turn log-likelihoods [S, B] into inputs in [0, 1], in place.

    Returns the log of what was taken out, [B].
    """
    peak = inputs[layout.slot_table].max(axis=0)
    np.maximum(peak, _LOWEST_PEAK, out=peak)
    inputs -= peak[layout.slot_variable]
    np.exp(inputs, out=inputs)
    shift: FloatArray = peak.sum(axis=0)
    return shift
