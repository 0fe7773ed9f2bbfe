"""Probabilities of assignments, joint tables, entropy and mutual information (in nats).

Tables enumerate all assignments of the named variables, so every result is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, prod

import numpy as np

from lpf.circuits.evaluator import CompiledCircuit
from lpf.circuits.evidence import NO_HARD, NO_SOFT, Hard, Soft, impossible_evidence
from lpf.circuits.layout import FloatArray
from lpf.errors import ConfigError

ENUMERATION_LIMIT = 100_000
PAIR_LIMIT = 1_000_000  # two variables of 1,000 values


def joint_probability(compiled: CompiledCircuit, assignment: Hard) -> float:
    """Return P(assignment). Other variables are summed out."""
    return exp(compiled.log_likelihood(assignment))


def conditional_probability(
    compiled: CompiledCircuit,
    target: Hard,
    hard: Hard = NO_HARD,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
) -> float:
    """Return P(target | evidence). Raises ImpossibleEvidenceError."""
    evidence = compiled.log_likelihood(hard, soft, log_soft)
    if evidence == -inf:
        raise impossible_evidence(hard, soft, log_soft)
    both = compiled.log_likelihood({**hard, **target}, soft, log_soft)
    contradicts = any(name in hard and hard[name] != value for name, value in target.items())
    return 0.0 if contradicts else exp(both - evidence)


def joint_table(
    compiled: CompiledCircuit,
    names: Sequence[str],
    hard: Hard = NO_HARD,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
    limit: int = ENUMERATION_LIMIT,
) -> FloatArray:
    """Return the joint distribution of the named variables given the evidence, one axis per name.

    Raises ConfigError for more than ``limit`` cells or a repeated name, and
    ImpossibleEvidenceError.
    """
    slots = [compiled.encoder.slot(name) for name in names]
    shape = tuple(slot.stop - slot.start for slot in slots)
    _check_table(names, prod(shape), limit)
    base = np.array(compiled.encoder.log_inputs(hard, soft, log_soft))
    # One query per assignment of all variables but the last gives a row of the table.
    rows = prod(shape[:-1])
    inputs = np.tile(base, (rows, 1))
    for slot, positions in zip(slots, np.indices(shape[:-1]).reshape(-1, rows), strict=False):
        inputs[:, slot] = np.where(
            positions[:, None] == np.arange(slot.stop - slot.start), 0.0, -inf
        )
        inputs[:, slot] += base[slot]
    logs = compiled.log_joint_batch(names[-1], inputs)
    if logs.max() == -inf:
        raise impossible_evidence(hard, soft, log_soft)
    table = np.exp(logs - logs.max())
    result: FloatArray = (table / table.sum()).reshape(shape)
    return result


def _check_table(names: Sequence[str], cells: int, limit: int) -> None:
    if not names or len(set(names)) != len(names):
        raise ConfigError(
            f"must be one or more different variables, got {list(names)}.", field="names"
        )
    if cells > limit:
        raise ConfigError(
            f"the table of {list(names)} has {cells} cells, more than limit={limit}.",
            field="names",
            hint="Use fewer variables or raise the limit.",
        )


def entropy(
    compiled: CompiledCircuit,
    names: Sequence[str] | None = None,
    hard: Hard = NO_HARD,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
    limit: int = ENUMERATION_LIMIT,
) -> float:
    """Return the joint entropy of the named variables (default: all) given the evidence.

    Raises as `joint_table` does.
    """
    chosen = list(compiled.layout.slots) if names is None else names
    return _entropy(joint_table(compiled, chosen, hard, soft, log_soft, limit))


def mutual_information(
    compiled: CompiledCircuit,
    first: str,
    second: str,
    hard: Hard = NO_HARD,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
) -> float:
    """Return the mutual information of two variables given the evidence."""
    table = joint_table(compiled, [first, second], hard, soft, log_soft, PAIR_LIMIT)
    return table_information(table)


def table_information(table: FloatArray) -> float:
    """Return the mutual information of the two axes of a table of probabilities [V, W]."""
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    used = table > 0.0
    # Summing p log(p/q) avoids the cancellation of a difference of entropies.
    return float((table[used] * np.log(table[used] / independent[used])).sum())


def _entropy(table: FloatArray) -> float:
    used = table[table > 0.0]
    return float(-(used * np.log(used)).sum())
