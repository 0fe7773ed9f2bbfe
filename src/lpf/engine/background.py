"""What is known about a predicate before any evidence: the circuit, and an entity's known facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from lpf.circuits import Circuit, CompiledCircuit, Sum, Variable, compile_circuit, prior_circuit
from lpf.circuits.evidence import impossible_evidence
from lpf.errors import SchemaError
from lpf.schema import Schema
from lpf.types import FloatArray


@dataclass(frozen=True)
class Facts:
    """Known facts of one entity about other predicates: certain ones as values, others as
    likelihood vectors over the predicate's values. ``log_soft`` are likelihoods in log space: what
    evidence about related predicates says. Vectors about one predicate multiply."""

    hard: Mapping[str, str] = field(default_factory=dict)
    soft: Mapping[str, FloatArray] = field(default_factory=dict)
    log_soft: Mapping[str, FloatArray] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.hard or self.soft or self.log_soft)


class Background:
    """A schema and a circuit over its predicates (by default their priors alone)."""

    def __init__(self, schema: Schema, circuit: CompiledCircuit | None = None) -> None:
        self.schema = schema
        self.circuit = circuit or compile_circuit(_prior_only(schema))
        variables = {variable.name: variable.values for variable in self.circuit.circuit.variables}
        check_values_agree(schema, variables, "circuit")
        # Without a sum the predicates are independent: nothing known of one changes another.
        self.joins_predicates = any(isinstance(node, Sum) for node in self.circuit.circuit.nodes)
        self._covered = frozenset(one.name for one in schema if self.circuit.covers(one.name))
        self._log_prior = lru_cache(maxsize=64)(self._make_log_prior)

    def covers(self, predicate: str) -> bool:
        """Return True if the circuit has the predicate."""
        return predicate in self._covered

    def log_prior(self, predicate: str, facts: Sequence[Facts] = ()) -> FloatArray:
        """log P_circuit(y, F): [V] if no entity has facts, else [E, V]."""
        if not any(facts):
            return self._log_prior(predicate)
        return self.log_joints(predicate, facts)

    def log_joints(self, predicate: str, facts: Sequence[Facts]) -> FloatArray:
        """log P_circuit(y, F) of each entity, [E, V], in one pass of the circuit.
        ImpossibleEvidenceError if the facts of an entity rule out every value."""
        result = np.tile(self._log_prior(predicate), (len(facts), 1))
        places = [place for place, known in enumerate(facts) if known]
        if len(places) == 1:  # an upward pass is enough for one
            known = facts[places[0]]
            joint = self.circuit.log_joint(predicate, known.hard, known.soft, known.log_soft)
            result[places[0]] = joint
        elif places:
            encode = self.circuit.encoder.log_inputs
            given = [
                (facts[place].hard, facts[place].soft, facts[place].log_soft) for place in places
            ]
            joints = self.circuit.log_joint_batch(
                predicate, np.array([encode(*evidence) for evidence in given])
            )
            for row in np.flatnonzero(joints.max(axis=1) == -np.inf):
                raise impossible_evidence(*given[row])
            result[places] = joints
        return result

    def _make_log_prior(self, predicate: str) -> FloatArray:
        if not self.covers(predicate):
            return read_only(np.log(np.array(self.schema[predicate].prior)))
        return read_only(self.circuit.log_joint(predicate))


def check_values_agree(schema: Schema, lists: dict[str, tuple[str, ...]], whose: str) -> None:
    """SchemaError unless model, schema and circuit list values in the same order: arrays are
    matched by position."""
    for predicate in schema:
        values = lists.get(predicate.name, predicate.values)
        if tuple(values) != predicate.values:
            raise SchemaError(
                f"predicate {predicate.name!r}: the schema lists {list(predicate.values)}, the "
                f"{whose} {list(values)}. Values must be the same, in the same order."
            )


def read_only(array: FloatArray) -> FloatArray:
    """The array, made read-only because several answers share it."""
    array.flags.writeable = False
    return array


def _prior_only(schema: Schema) -> Circuit:
    variables = [Variable(predicate.name, predicate.values) for predicate in schema]
    return prior_circuit(variables, {predicate.name: predicate.prior for predicate in schema})
