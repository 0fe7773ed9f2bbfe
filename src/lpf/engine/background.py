"""What is known about a predicate before any evidence: the circuit, and facts put into it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lpf.circuits import Circuit, CompiledCircuit, Variable, compile_circuit, prior_circuit
from lpf.engine.items import Facts
from lpf.errors import SchemaError
from lpf.schema import Schema
from lpf.types import FloatArray


class Background:
    """A schema and a circuit over its predicates (their priors alone where none is given)."""

    def __init__(self, schema: Schema, circuit: CompiledCircuit | None = None) -> None:
        self.schema = schema
        self.circuit = circuit or compile_circuit(_prior_only(schema))
        variables = {variable.name: variable.values for variable in self.circuit.circuit.variables}
        check_values_agree(schema, variables, "circuit")
        self._log_prior = lru_cache(maxsize=64)(self._make_log_prior)

    def covers(self, predicate: str) -> bool:
        """Whether the circuit can be asked about the predicate."""
        return self.circuit.covers(predicate)

    def log_prior(self, predicate: str, facts: Sequence[Facts] = ()) -> FloatArray:
        """log P_circuit(y, F): [V] where no entity has facts, else [E, V]."""
        if not any(facts):
            return self._log_prior(predicate)
        rows = [
            self.circuit.log_joint(predicate, known.hard, known.soft)
            if known
            else self._log_prior(predicate)
            for known in facts
        ]
        return np.stack(rows)

    def _make_log_prior(self, predicate: str) -> FloatArray:
        if not self.covers(predicate):
            return frozen(np.log(np.array(self.schema[predicate].prior)))
        return frozen(self.circuit.log_joint(predicate))


def check_values_agree(schema: Schema, lists: dict[str, tuple[str, ...]], whose: str) -> None:
    """Arrays are matched by position, so model, schema and circuit must list values alike."""
    for predicate in schema:
        values = lists.get(predicate.name, predicate.values)
        if tuple(values) != predicate.values:
            raise SchemaError(
                f"predicate {predicate.name!r}: the schema lists {list(predicate.values)}, the "
                f"{whose} {list(values)}. Values must be the same, in the same order."
            )


def frozen(array: FloatArray) -> FloatArray:
    """Kept between answers, so nobody may write into it."""
    array.flags.writeable = False
    return array


def _prior_only(schema: Schema) -> Circuit:
    variables = [Variable(predicate.name, predicate.values) for predicate in schema]
    return prior_circuit(variables, {predicate.name: predicate.prior for predicate in schema})
