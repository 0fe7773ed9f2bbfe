"""The uniform prior of the paper."""

from __future__ import annotations

from lpf.schema import Predicate, Schema
from lpf.spn import CompiledCircuit, Variable, compile_circuit, prior_circuit

# With the uniform P0 of the paper: a temperature after the fact would sharpen any other prior
# along with the rest.
FLAT_PRIOR = ("lpf_paper", "lpf_paper_best", "lpf_learned_published")


def flat(schema: Schema) -> Schema:
    """The same predicates, every value as likely as the next."""
    return Schema(tuple(Predicate(one.name, one.values) for one in schema))


def flat_circuit(schema: Schema) -> CompiledCircuit:
    """The circuit of the flat prior alone."""
    uniform = flat(schema)
    variables = [Variable(one.name, one.values) for one in uniform]
    return compile_circuit(prior_circuit(variables, {one.name: one.prior for one in uniform}))
