"""The most probable explanation, exact, by best-first branch and bound.

In a circuit whose sums are real mixtures, replacing sums by maxima does not give the most probable
assignment. We search instead: a partial assignment is bounded by evaluating the circuit with every
leaf of a free variable at its maximum. That never underestimates (the maximum of a sum is at most
the sum of the maxima) and is the exact probability once all variables are assigned.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from math import inf

import numpy as np

from lpf.errors import ConfigError, ImpossibleEvidenceError
from lpf.spn.evaluator import CompiledCircuit
from lpf.spn.evidence import NO_SOFT, NOTHING, Hard, Soft
from lpf.spn.layers import FloatArray, SumLayer
from lpf.spn.layout import Layout

DEFAULT_EXPANSIONS = 20_000


@dataclass(frozen=True)
class MostProbable:
    """The best full assignment found.

    ``log_joint`` is its log P(assignment, evidence). When ``exact``, no assignment is better;
    otherwise the search ran out of expansions and none exceeds ``log_upper_bound``.
    """

    assignment: dict[str, str]
    log_joint: float
    log_upper_bound: float
    exact: bool


def most_probable_explanation(
    compiled: CompiledCircuit,
    hard: Hard = NOTHING,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
    max_expansions: int = DEFAULT_EXPANSIONS,
) -> MostProbable:
    """argmax over all variables of P(assignment, evidence).

    Exact unless ``max_expansions`` is used up, which the result says. Worst case exponential in
    the number of variables. Raises ImpossibleEvidenceError.
    """
    if max_expansions < 1:
        raise ConfigError(f"max_expansions: must be >= 1, is {max_expansions}.")
    search = _Search(compiled, hard, soft, log_soft)
    if search.top_bound == -inf:
        raise ImpossibleEvidenceError(
            f"The evidence about {sorted({*hard, *soft, *log_soft})} has probability zero in "
            "every world of the circuit."
        )
    for _ in range(max_expansions):
        if search.complete:
            return search.result(exact=True)
        search.expand()
    return search.result(exact=search.complete)


class _Search:
    """A heap of partial assignments, the most promising on top.

    An assignment is a tuple of places, one for each variable in ``order``.
    """

    def __init__(self, compiled: CompiledCircuit, hard: Hard, soft: Soft, log_soft: Soft) -> None:
        self._compiled = compiled
        self._layout = compiled.layout
        self._base = np.array(compiled.encoder.log_inputs(hard, soft, log_soft))
        bound = float(_bounds(self._layout, self._base[None, :])[0])
        self._ticket = count()  # breaks ties in a fixed way
        self._heap: list[tuple[float, int, tuple[int, ...]]] = [(-bound, next(self._ticket), ())]
        self._order = self._variable_order(hard, soft, log_soft) if bound > -inf else []

    @property
    def top_bound(self) -> float:
        return -self._heap[0][0]

    @property
    def complete(self) -> bool:
        return len(self._heap[0][2]) == len(self._order)

    def expand(self) -> None:
        """Replace the best partial assignment by its extensions with the next variable."""
        _, _, places = heapq.heappop(self._heap)
        for entry in self._extensions(places):
            heapq.heappush(self._heap, entry)

    def result(self, *, exact: bool) -> MostProbable:
        upper = self.top_bound
        score, _, places = self._heap[0]
        while len(places) < len(self._order):  # out of expansions: finish greedily
            score, _, places = min(self._extensions(places))
        chosen = dict(zip(self._order, places, strict=True))
        assignment = {
            variable.name: variable.values[chosen[variable.name]]
            for variable in self._compiled.circuit.variables
        }
        return MostProbable(assignment, -score, upper, exact)

    def _extensions(self, places: tuple[int, ...]) -> list[tuple[float, int, tuple[int, ...]]]:
        inputs = self._base.copy()
        for name, place in zip(self._order, places, strict=False):
            _keep_only(inputs[self._layout.slots[name]][None, :], [place])
        slot = self._layout.slots[self._order[len(places)]]
        size = slot.stop - slot.start
        rows = np.tile(inputs, (size, 1))
        _keep_only(rows[:, slot], range(size))
        bounds = _bounds(self._layout, rows).tolist()
        return [
            (-bound, next(self._ticket), (*places, place))
            for place, bound in enumerate(bounds)
            if bound > -inf
        ]

    def _variable_order(self, hard: Hard, soft: Soft, log_soft: Soft) -> list[str]:
        # The surest variables first: a wrong value of theirs is ruled out early.
        marginals = self._compiled.marginals(hard, soft, log_soft)
        return sorted(marginals, key=lambda name: (-float(marginals[name].max()), name))


def _keep_only(block: FloatArray, places: range | list[int]) -> None:
    """Set every entry of each row to -inf but the one at its place, in place."""
    block[np.arange(block.shape[1]) != np.array(places)[:, None]] = -inf


def _bounds(layout: Layout, log_inputs: FloatArray) -> FloatArray:
    """Upper bounds [B] of log P(best completion, evidence), from inputs [B, S]."""
    values = np.empty((layout.n_rows, len(log_inputs)))
    values[: layout.n_slots] = log_inputs.T
    leaves = layout.layers[0]
    assert isinstance(leaves, SumLayer)  # leaves have height 0, hence come first
    terms = leaves.log_terms(values)
    values[leaves.rows] = np.maximum.reduceat(terms, leaves.edge_starts, axis=0)
    for layer in layout.layers[1:]:
        layer.upward_log(values)
    bounds: FloatArray = values[layout.root]
    return bounds
