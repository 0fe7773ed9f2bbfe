"""The compiled evaluator: likelihoods and marginals, for one query or for many."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log

import numpy as np
import numpy.typing as npt

from lpf.errors import ImpossibleEvidenceError
from lpf.spn import batch, passes
from lpf.spn.circuit import Circuit
from lpf.spn.evidence import NO_SOFT, NOTHING, EvidenceEncoder, Hard, Soft
from lpf.spn.layers import FloatArray
from lpf.spn.layout import build_layout
from lpf.spn.passes import SAFE_ROOT

BatchEvidence = npt.ArrayLike | Mapping[str, npt.ArrayLike]


def compile_circuit(circuit: Circuit) -> CompiledCircuit:
    """Arrange the circuit for evaluation. Done once; the result is immutable and thread-safe."""
    return CompiledCircuit(circuit)


class CompiledCircuit:
    """Exact inference on one circuit.

    Evidence about one query: ``hard`` gives values, ``soft`` likelihood vectors [V] (>= 0, any
    scale), ``log_soft`` the same in logarithms. A variable may be in several; they multiply. A
    variable in none is summed out. Unknown names raise UnknownPredicateError, unknown values
    UnknownValueError, unusable vectors EvidenceError or NonFiniteError.

    Evidence about B queries: log-likelihoods as one array [B, S], where S counts the values of all
    variables in order, or as arrays [B, V] for some of the variables.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.layout = build_layout(circuit)
        self.encoder = EvidenceEncoder(circuit.variables)

    def covers(self, variable: str) -> bool:
        return variable in self.layout.slots

    def log_likelihood(
        self, hard: Hard = NOTHING, soft: Soft = NO_SOFT, log_soft: Soft = NO_SOFT
    ) -> float:
        """log of the evidence's probability; -inf when the evidence is impossible."""
        log_inputs = self.encoder.log_inputs(hard, soft, log_soft)
        scaled, shift = self.encoder.scale(log_inputs, {**hard, **soft, **log_soft})
        values = self._upward(scaled)
        root = float(values[self.layout.root])
        if root >= SAFE_ROOT:
            return log(root) + shift
        return float(self._upward_log(log_inputs)[self.layout.root, 0])

    def log_joint(
        self, variable: str, hard: Hard = NOTHING, soft: Soft = NO_SOFT, log_soft: Soft = NO_SOFT
    ) -> FloatArray:
        """log P(variable = y, evidence) for every value y, [V], not normalised.

        Evidence about the variable itself counts. -inf marks an impossible value; raises
        ImpossibleEvidenceError when all are.
        """
        slot = self.encoder.slot(variable)
        log_inputs = self.encoder.log_inputs(hard, soft, log_soft)
        own = np.array(log_inputs[slot])
        others = {**hard, **soft, **log_soft}
        others.pop(variable, None)
        scaled, shift = self.encoder.scale(log_inputs, others)
        # One query per value, each with that value observed: an upward pass is enough.
        values = np.empty((self.layout.n_rows, len(own)))
        values[: self.layout.n_slots] = np.array(scaled)[:, None]
        values[slot] = np.eye(len(own))
        passes.upward(self.layout, values)
        root = values[self.layout.root]
        if root.min() >= SAFE_ROOT:
            result: FloatArray = np.log(root) + (own + shift)
        else:
            result = self._log_joint_in_logs(slot, log_inputs)
        if result.max() == -inf:
            self._refuse(hard, soft, log_soft)
        return result

    def marginals(
        self, hard: Hard = NOTHING, soft: Soft = NO_SOFT, log_soft: Soft = NO_SOFT
    ) -> dict[str, FloatArray]:
        """P(variable = y | evidence) for every variable and value, each [V].

        One upward and one downward pass. Raises ImpossibleEvidenceError.
        """
        log_inputs = self.encoder.log_inputs(hard, soft, log_soft)
        scaled, _ = self.encoder.scale(log_inputs, {**hard, **soft, **log_soft})
        values = self._upward(scaled)
        if values[self.layout.root] >= SAFE_ROOT:
            flow = np.empty(self.layout.n_rows)
            passes.downward(self.layout, values, flow)
        else:
            values = self._upward_log(log_inputs)
            if values[self.layout.root, 0] == -inf:
                self._refuse(hard, soft, log_soft)
            flow = passes.downward_log(self.layout, values)[:, 0]
        return {name: flow[slot] for name, slot in self.layout.slots.items()}

    def log_likelihood_batch(self, evidence: BatchEvidence) -> FloatArray:
        """log of each query's evidence, [B]; -inf where it is impossible."""
        return batch.log_likelihoods(self.layout, self.encoder.batch(evidence))

    def marginals_batch(self, evidence: BatchEvidence) -> dict[str, FloatArray]:
        """Posterior marginals of every variable, each [B, V], for B queries.

        Raises ImpossibleEvidenceError naming the rows.
        """
        posterior = batch.posteriors(self.layout, self.encoder.batch(evidence))
        return {name: posterior[:, slot] for name, slot in self.layout.slots.items()}

    def _upward(self, scaled: list[float]) -> FloatArray:
        values = np.empty(self.layout.n_rows)
        values[: self.layout.n_slots] = scaled
        passes.upward(self.layout, values)
        return values

    def _upward_log(self, log_inputs: list[float]) -> FloatArray:
        return passes.upward_log(self.layout, np.array(log_inputs)[:, None])

    def _log_joint_in_logs(self, slot: slice, log_inputs: list[float]) -> FloatArray:
        own = np.array(log_inputs[slot])
        inputs = np.repeat(np.array(log_inputs)[:, None], len(own), axis=1)
        inputs[slot] = np.where(np.eye(len(own), dtype=bool), own, -inf)
        root: FloatArray = passes.upward_log(self.layout, inputs)[self.layout.root]
        return root

    def _refuse(self, hard: Hard, soft: Soft, log_soft: Soft) -> None:
        observed = sorted({*hard, *soft, *log_soft})
        raise ImpossibleEvidenceError(
            f"The evidence about {observed} has probability zero in every world of the circuit."
        )
