"""Probabilities of assignments, and exact joint tables of a few variables.

Entropy and mutual information given evidence, in nats. Exact: from enumerated tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, prod

import numpy as np

from lpf.circuits.evaluator import CompiledCircuit
from lpf.circuits.evidence import NO_SOFT, NOTHING, Hard, Soft
from lpf.circuits.layout import FloatArray
from lpf.errors import ConfigError, ImpossibleEvidenceError

ENUMERATION_LIMIT = 100_000


def joint_probability(compiled: CompiledCircuit, assignment: Hard) -> float:
    """P(assignment); variables that are not in it are summed out. 0.0 if it is impossible."""
    return exp(compiled.log_likelihood(assignment))


def conditional_probability(
    compiled: CompiledCircuit,
    target: Hard,
    hard: Hard = NOTHING,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
) -> float:
    """P(target | evidence). Raises ImpossibleEvidenceError when the evidence is impossible."""
    evidence = compiled.log_likelihood(hard, soft, log_soft)
    if evidence == -inf:
        raise ImpossibleEvidenceError(
            f"The evidence about {sorted({*hard, *soft, *log_soft})} has probability zero; "
            f"no probability of {dict(target)} given it was computed."
        )
    both = compiled.log_likelihood({**hard, **target}, soft, log_soft)
    contradicts = any(name in hard and hard[name] != value for name, value in target.items())
    return 0.0 if contradicts else exp(both - evidence)


def joint_table(
    compiled: CompiledCircuit,
    names: Sequence[str],
    hard: Hard = NOTHING,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
    limit: int = ENUMERATION_LIMIT,
) -> FloatArray:
    """P(names | evidence) of all their assignments, one axis for each name.

    Exact: each cell is one query. Raises ConfigError above ``limit`` cells or for a repeated name,
    ImpossibleEvidenceError for impossible evidence.
    """
    slots = [compiled.encoder.slot(name) for name in names]
    shape = tuple(slot.stop - slot.start for slot in slots)
    _check_table(names, prod(shape), limit)
    base = np.array(compiled.encoder.log_inputs(hard, soft, log_soft))
    inputs = np.tile(base, (prod(shape), 1))
    for slot, places in zip(slots, np.indices(shape).reshape(len(names), -1), strict=True):
        inputs[:, slot] = np.where(places[:, None] == np.arange(slot.stop - slot.start), 0.0, -inf)
        inputs[:, slot] += base[slot]
    logs = compiled.log_likelihood_batch(inputs)
    if logs.max() == -inf:
        raise ImpossibleEvidenceError(
            f"The evidence about {sorted({*hard, *soft, *log_soft})} has probability zero; "
            f"no table of {list(names)} was computed."
        )
    table = np.exp(logs - logs.max())
    result: FloatArray = (table / table.sum()).reshape(shape)
    return result


def _check_table(names: Sequence[str], cells: int, limit: int) -> None:
    if not names or len(set(names)) != len(names):
        raise ConfigError(f"names: need different variables, one at least; got {list(names)}.")
    if cells > limit:
        raise ConfigError(
            f"names: a table of {list(names)} has {cells} cells, more than limit = {limit}; "
            "it was not enumerated. Ask for fewer variables or raise the limit."
        )


def entropy(
    compiled: CompiledCircuit,
    names: Sequence[str] | None = None,
    hard: Hard = NOTHING,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
    limit: int = ENUMERATION_LIMIT,
) -> float:
    """Joint entropy of the named variables (all of them by default) given the evidence.

    Raises ConfigError when their assignments are more than ``limit``.
    """
    chosen = list(compiled.layout.slots) if names is None else names
    return _entropy(joint_table(compiled, chosen, hard, soft, log_soft, limit))


def mutual_information(
    compiled: CompiledCircuit,
    first: str,
    second: str,
    hard: Hard = NOTHING,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
) -> float:
    """How much one variable tells about another, given the evidence."""
    return table_information(joint_table(compiled, [first, second], hard, soft, log_soft))


def table_information(table: FloatArray) -> float:
    """Mutual information of the two axes of a table of probabilities [V, W]."""
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    used = table > 0.0
    # Terms of p log(p/q) instead of a difference of entropies: no cancellation near zero.
    return float((table[used] * np.log(table[used] / independent[used])).sum())


def _entropy(table: FloatArray) -> float:
    used = table[table > 0.0]
    return float(-(used * np.log(used)).sum())
