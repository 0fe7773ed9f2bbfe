"""Entropy and mutual information given evidence, in nats. Exact: from enumerated tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpf.spn.evaluator import CompiledCircuit
from lpf.spn.evidence import NO_SOFT, NOTHING, Hard, Soft
from lpf.spn.layers import FloatArray
from lpf.spn.queries import ENUMERATION_LIMIT, joint_table


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
