"""Exact inference on a compiled circuit: likelihoods and marginals for one query or many.

Queries are computed in linear space and, where that could underflow, again in log space. The linear
pass works on inputs scaled to [0, 1]. Then every node's value is in [0, 1] too, and the root is
affine in each node with a slope of at most 1, so that all underflows together change the root by
less than N x 2**-1022. A root of at least `SAFE_ROOT` is therefore exact to float64 rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf, log

import numpy as np
import numpy.typing as npt

from lpf.circuits.circuit import Circuit
from lpf.circuits.evidence import NO_HARD, NO_SOFT, EvidenceEncoder, Hard, Soft, impossible_evidence
from lpf.circuits.layout import FloatArray, IntArray, Layout, SumLayer, build_layout
from lpf.errors import ImpossibleEvidenceError

SAFE_ROOT = 1e-280
# Up to this many values, one upward pass per value is faster than an upward and a downward pass.
_MOST_QUERIES = 64
# Terms that a pass in log space holds at once: one per edge and query.
_LOG_NUMBERS = 1 << 22
# Replaces a peak of -inf. Its value does not matter: such queries are redone in log space.
_LOWEST_PEAK = -1e300


def upward(layout: Layout, values: FloatArray) -> None:
    """Compute the value of every node, [N, B], in place. The inputs must already be in [0, 1]."""
    for layer in layout.layers:
        layer.upward(values)


def downward(layout: Layout, values: FloatArray, flow: FloatArray) -> None:
    """Compute the flow of every node, [N, B], in place. Its first S rows are the marginals."""
    flow.fill(0.0)
    flow[layout.root] = 1.0
    for layer in reversed(layout.layers):
        layer.downward(values, flow)


def upward_log(layout: Layout, log_inputs: FloatArray) -> FloatArray:
    """Return the log value of every node, [N, B], from log-likelihoods [S, B]; -inf for zero."""
    values = np.empty((layout.n_rows, log_inputs.shape[1]))
    values[: layout.n_slots] = log_inputs
    for layer in layout.layers:
        layer.upward_log(values)
    return values


def downward_log(layout: Layout, values: FloatArray) -> FloatArray:
    """Return the flow of every node, [N, B], from the values of `upward_log`."""
    flow = np.zeros_like(values)
    flow[layout.root] = 1.0
    for layer in reversed(layout.layers):
        layer.downward_log(values, flow)
    return flow


def scale_inputs(layout: Layout, inputs: FloatArray) -> FloatArray:
    """Convert log-likelihoods [S, B] to inputs in [0, 1], in place.

    Returns the log of the factor that was divided out, [B].
    """
    peak = inputs[layout.slot_table].max(axis=0)
    np.maximum(peak, _LOWEST_PEAK, out=peak)
    inputs -= peak[layout.slot_variable]
    np.exp(inputs, out=inputs)
    shift: FloatArray = peak.sum(axis=0)
    return shift


_ROWS_SHOWN = 10


def log_likelihoods(layout: Layout, log_inputs: FloatArray) -> FloatArray:
    """Return the log probability of each row's evidence, [B]; -inf if it is impossible."""
    result = np.empty(len(log_inputs))
    for part, values, _ in _chunks(layout, log_inputs):
        shift = _upward(layout, log_inputs[part], values)
        root = values[layout.root]
        unsafe = root < SAFE_ROOT
        result[part] = np.log(np.where(unsafe, 1.0, root)) + shift
        if unsafe.any():
            rows = part.start + np.nonzero(unsafe)[0]
            result[rows] = log_roots(layout, log_inputs[rows])
    return result


def posteriors(layout: Layout, log_inputs: FloatArray) -> FloatArray:
    """Return posterior marginals [B, S] from log-likelihoods [B, S].

    Raises ImpossibleEvidenceError, which names the rows.
    """
    result = np.empty(log_inputs.shape)
    for part, values, flow in _chunks(layout, log_inputs):
        _upward(layout, log_inputs[part], values)
        unsafe = values[layout.root] < SAFE_ROOT
        if any_unsafe := bool(unsafe.any()):
            # Avoids division by rounded values; these rows are recomputed below.
            values[:, unsafe] = 1.0
        downward(layout, values, flow)
        result[part] = flow[: layout.n_slots].T
        if any_unsafe:
            rows = part.start + np.nonzero(unsafe)[0]
            logs = upward_log_rows(layout, log_inputs, rows)
            result[rows] = downward_log(layout, logs)[: layout.n_slots].T
    return result


def log_joints(layout: Layout, log_inputs: FloatArray, slot: slice) -> FloatArray:
    """Return log P(y, evidence) for every value y of one variable, [B, V], in one upward and one
    downward pass over all rows. The inputs of the variable itself must be zero.

    Impossible values are -inf, for impossible evidence all of them.
    """
    result = np.empty((len(log_inputs), slot.stop - slot.start))
    for part, values, flow in _chunks(layout, log_inputs):
        joints, unsafe = _linear_joints(layout, log_inputs[part], slot, values, flow)
        rows = np.nonzero(unsafe.any(axis=1))[0]
        if rows.size:
            joints[rows] = _careful_joints(layout, log_inputs[part][rows], slot)
        result[part] = joints
    return result


def _linear_joints(
    layout: Layout, log_inputs: FloatArray, slot: slice, values: FloatArray, flow: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return log joints [B, V], and which of them may have underflowed; those are 0."""
    shift = _upward(layout, log_inputs, values)
    root = values[layout.root].copy()
    values[:, root < SAFE_ROOT] = 1.0  # avoids division by rounded values
    downward(layout, values, flow)
    joints = flow[slot] * np.where(root < SAFE_ROOT, 0.0, root)
    # As for the root: a joint probability of at least SAFE_ROOT is exact to rounding.
    unsafe = joints < SAFE_ROOT
    logs = np.log(np.where(unsafe, 1.0, joints)) + np.where(unsafe, 0.0, shift)
    return logs.T, unsafe.T


def _careful_joints(layout: Layout, log_inputs: FloatArray, slot: slice) -> FloatArray:
    """Return log joints [B, V] where the linear pass may underflow.

    Impossible inputs are left out first: what remains often is in range once it is scaled. The rest
    takes one query per value, in log space.
    """
    possible = supported(layout, ~np.isneginf(log_inputs.T)).T
    remaining = np.where(possible, log_inputs, -inf)
    values = np.empty((layout.n_rows, len(log_inputs)))
    joints, unsafe = _linear_joints(layout, remaining, slot, values, np.empty_like(values))
    joints[~possible[:, slot]] = -inf
    for row, places in enumerate(unsafe & possible[:, slot]):
        if places.any():
            wanted = np.nonzero(places)[0]
            queries = np.tile(remaining[row], (len(wanted), 1))
            queries[:, slot] = np.where(wanted[:, None] == np.arange(len(places)), 0.0, -inf)
            joints[row, wanted] = log_roots(layout, queries)
    return joints


def supported(layout: Layout, possible: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which inputs [S, B] have a joint probability above zero with the other variables,
    given which inputs are possible. Every value is 0 or 1, so nothing underflows."""
    values = np.empty((layout.n_rows, possible.shape[1]))
    values[: layout.n_slots] = possible
    for layer in layout.layers:
        layer.upward(values)
        values[layer.rows] = values[layer.rows] > 0.0
    flow = np.zeros_like(values)
    flow[layout.root] = values[layout.root]
    for layer in reversed(layout.layers):
        layer.downward(values, flow)
        np.greater(flow, 0.0, out=flow)
    result: npt.NDArray[np.bool_] = flow[: layout.n_slots] > 0.0
    return result


def log_roots(layout: Layout, log_inputs: FloatArray) -> FloatArray:
    """Return the log value of the root, [B], from log-likelihoods [B, S], all in log space."""
    edges = max((len(layer.edge_weight) for layer in sum_layers(layout)), default=1)
    size = max(1, _LOG_NUMBERS // edges)
    parts = [log_inputs[first : first + size] for first in range(0, len(log_inputs), size)]
    return np.concatenate([upward_log(layout, part.T)[layout.root] for part in parts])


def expected_flows(layout: Layout, log_inputs: FloatArray) -> tuple[list[FloatArray], float]:
    """Return the flow of each edge of each sum layer, [E], summed over rows, and the likelihood.

    The likelihood is the sum of the rows' log-likelihoods.

    The flow of an edge is the expected number of times it was used, given the evidence. Raises
    ImpossibleEvidenceError, which names the rows.
    """
    layers = sum_layers(layout)
    totals = [np.zeros(len(layer.edge_weight)) for layer in layers]
    log_likelihood = 0.0
    for part, chunk, _ in _chunks(layout, log_inputs):
        shift = _upward(layout, log_inputs[part], chunk)
        safe = chunk[layout.root] >= SAFE_ROOT
        values = chunk if safe.all() else chunk[:, safe]
        flow = np.empty_like(values)
        downward(layout, values, flow)
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
    flow = downward_log(layout, values)
    for total, layer in zip(totals, sum_layers(layout), strict=True):
        total += layer.edge_flow_log(values, flow).sum(axis=1)
    return float(values[layout.root].sum())


def upward_log_rows(layout: Layout, log_inputs: FloatArray, rows: IntArray) -> FloatArray:
    """Return log values [N, R] of some rows. ImpossibleEvidenceError names rows and variables."""
    values = upward_log(layout, log_inputs[rows].T)
    impossible = rows[np.isneginf(values[layout.root])]
    if impossible.size:
        given = (log_inputs[impossible] != 0.0).any(axis=0)
        observed = [name for name, slot in layout.slots.items() if given[slot].any()]
        more = " and more" if impossible.size > _ROWS_SHOWN else ""
        raise ImpossibleEvidenceError(
            f"The evidence about {observed} has probability zero in rows "
            f"{impossible[:_ROWS_SHOWN].tolist()}{more}. Nothing was computed."
        )
    return values


def _chunks(
    layout: Layout, log_inputs: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield slices of rows with work arrays for values and flow, [N, rows], which are reused."""
    size = min(layout.chunk, max(1, len(log_inputs)))
    values = np.empty((layout.n_rows, size))
    flow = np.empty_like(values)
    for start in range(0, len(log_inputs), size):
        stop = min(start + size, len(log_inputs))
        yield slice(start, stop), values[:, : stop - start], flow[:, : stop - start]


def _upward(layout: Layout, log_inputs: FloatArray, values: FloatArray) -> FloatArray:
    """Linear upward pass into ``values``; returns the log of the scaling factor, [B]."""
    inputs = values[: layout.n_slots]
    inputs[...] = log_inputs.T
    shift = scale_inputs(layout, inputs)
    upward(layout, values)
    return shift


BatchEvidence = npt.ArrayLike | Mapping[str, npt.ArrayLike]


def compile_circuit(circuit: Circuit) -> CompiledCircuit:
    """Prepare a circuit for inference. The result is immutable and thread-safe."""
    return CompiledCircuit(circuit)


class CompiledCircuit:
    """Exact inference on one circuit.

    Evidence for one query: ``hard`` maps variables to values, ``soft`` to likelihood vectors [V]
    (>= 0, any scale), ``log_soft`` to log-likelihood vectors. A variable may be in several of them;
    they multiply. A variable in none of them is summed out. Unknown names raise
    UnknownPredicateError, unknown values UnknownValueError, invalid vectors EvidenceError or
    NonFiniteError.

    Evidence for B queries: log-likelihoods as one array [B, S], where S is the number of values of
    all variables in order, or as a mapping from some variables to arrays [B, V].
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.layout = build_layout(circuit)
        self.encoder = EvidenceEncoder(circuit.variables)

    def covers(self, variable: str) -> bool:
        """Return True if the circuit has this variable."""
        return variable in self.layout.slots

    def log_likelihood(
        self, hard: Hard = NO_HARD, soft: Soft = NO_SOFT, log_soft: Soft = NO_SOFT
    ) -> float:
        """Return the log probability of the evidence; -inf if it is impossible."""
        log_inputs = self.encoder.log_inputs(hard, soft, log_soft)
        scaled, shift = self.encoder.scale(log_inputs, {**hard, **soft, **log_soft})
        values = self._upward(scaled)
        root = float(values[self.layout.root])
        if root >= SAFE_ROOT:
            return log(root) + shift
        return float(self._upward_log(log_inputs)[self.layout.root, 0])

    def log_joint(
        self, variable: str, hard: Hard = NO_HARD, soft: Soft = NO_SOFT, log_soft: Soft = NO_SOFT
    ) -> FloatArray:
        """Return log P(variable = y, evidence) for every value y, [V], not normalised.

        Evidence about the variable itself is included. Impossible values are -inf; raises
        ImpossibleEvidenceError if all values are impossible.
        """
        slot = self.encoder.slot(variable)
        log_inputs = self.encoder.log_inputs(hard, soft, log_soft)
        own = np.array(log_inputs[slot])
        if len(own) > _MOST_QUERIES:
            result: FloatArray = self.log_joint_batch(variable, np.array([log_inputs]))[0]
        else:
            others = {**hard, **soft, **log_soft}
            others.pop(variable, None)
            result = self._log_joint_by_value(slot, log_inputs, others)
        if result.max() == -inf:
            raise impossible_evidence(hard, soft, log_soft)
        return result

    def _log_joint_by_value(
        self, slot: slice, log_inputs: list[float], others: Iterable[str]
    ) -> FloatArray:
        """One query per value, each with that value observed: an upward pass is enough. ``others``
        are the other variables with evidence."""
        own = np.array(log_inputs[slot])
        scaled, shift = self.encoder.scale(log_inputs, others)
        values = np.empty((self.layout.n_rows, len(own)))
        values[: self.layout.n_slots] = np.array(scaled)[:, None]
        values[slot] = np.eye(len(own))
        upward(self.layout, values)
        root = values[self.layout.root]
        if root.min() >= SAFE_ROOT:
            result: FloatArray = np.log(root) + (own + shift)
            return result
        inputs = np.tile(log_inputs, (len(own), 1))
        inputs[:, slot] = np.where(np.eye(len(own), dtype=bool), own, -inf)
        return log_roots(self.layout, inputs)

    def marginals(
        self, hard: Hard = NO_HARD, soft: Soft = NO_SOFT, log_soft: Soft = NO_SOFT
    ) -> dict[str, FloatArray]:
        """Return P(variable = y | evidence) for every variable, each [V].

        One upward and one downward pass. Raises ImpossibleEvidenceError.
        """
        log_inputs = self.encoder.log_inputs(hard, soft, log_soft)
        scaled, _ = self.encoder.scale(log_inputs, {**hard, **soft, **log_soft})
        values = self._upward(scaled)
        if values[self.layout.root] >= SAFE_ROOT:
            flow = np.empty(self.layout.n_rows)
            downward(self.layout, values, flow)
        else:
            values = self._upward_log(log_inputs)
            if values[self.layout.root, 0] == -inf:
                raise impossible_evidence(hard, soft, log_soft)
            flow = downward_log(self.layout, values)[:, 0]
        return {name: flow[slot] for name, slot in self.layout.slots.items()}

    def log_likelihood_batch(self, evidence: BatchEvidence) -> FloatArray:
        """Return the log probability of each query's evidence, [B]; -inf if it is impossible."""
        return log_likelihoods(self.layout, self.encoder.batch(evidence))

    def log_joint_batch(self, variable: str, evidence: BatchEvidence) -> FloatArray:
        """Return `log_joint` of each query, [B, V]; all -inf for a query with impossible evidence.

        The cost does not depend on the number of values.
        """
        slot = self.encoder.slot(variable)
        inputs = self.encoder.batch(evidence)
        own = inputs[:, slot].copy()
        inputs = inputs.copy()
        inputs[:, slot] = 0.0
        result: FloatArray = log_joints(self.layout, inputs, slot) + own
        return result

    def marginals_batch(self, evidence: BatchEvidence) -> dict[str, FloatArray]:
        """Return the marginals of every variable, each [B, V], for B queries.

        Raises ImpossibleEvidenceError, which names the rows.
        """
        posterior = posteriors(self.layout, self.encoder.batch(evidence))
        return {name: posterior[:, slot] for name, slot in self.layout.slots.items()}

    def _upward(self, scaled: list[float]) -> FloatArray:
        values = np.empty(self.layout.n_rows)
        values[: self.layout.n_slots] = scaled
        upward(self.layout, values)
        return values

    def _upward_log(self, log_inputs: list[float]) -> FloatArray:
        return upward_log(self.layout, np.array(log_inputs)[:, None])
