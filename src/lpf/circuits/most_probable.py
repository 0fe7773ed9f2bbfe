"""The most probable explanation, exact, by best-first branch and bound.

In a circuit whose sums are real mixtures, replacing sums by maxima does not give the most probable
assignment. We search instead, with a bound for partial assignments: the circuit evaluated with a
maximum at each *selective* sum (one whose children cannot be possible together, as the values of a
leaf or of a variable in a tree) and with a sum elsewhere. That never underestimates, because the
maximum of a sum is at most the sum of the maxima; it is exact once all variables are assigned, and
at once if all sums are selective.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import reduce
from itertools import count
from math import inf
from operator import or_

import numpy as np
import numpy.typing as npt

from lpf.circuits.evaluator import CompiledCircuit
from lpf.circuits.evidence import NO_SOFT, NOTHING, Hard, Soft
from lpf.circuits.layout import FloatArray, Layout, SumLayer
from lpf.errors import ConfigError, ImpossibleEvidenceError

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
        self._selective = _selective_sums(compiled.layout)
        self._base = np.array(compiled.encoder.log_inputs(hard, soft, log_soft))
        bound = float(_bounds(self._layout, self._selective, self._base[None, :])[0])
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
        bounds = _bounds(self._layout, self._selective, rows).tolist()
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


def _bounds(
    layout: Layout, selective: list[npt.NDArray[np.bool_]], log_inputs: FloatArray
) -> FloatArray:
    """Upper bounds [B] of log P(best completion, evidence), from inputs [B, S]."""
    values = np.empty((layout.n_rows, len(log_inputs)))
    values[: layout.n_slots] = log_inputs.T
    for layer, at_most_one in zip(layout.layers, selective, strict=True):
        layer.upward_log(values)
        if isinstance(layer, SumLayer) and at_most_one.any():
            peak = np.maximum.reduceat(layer.log_terms(values), layer.edge_starts, axis=0)
            values[layer.rows][at_most_one] = peak[at_most_one]
    bounds: FloatArray = values[layout.root]
    return bounds


def _selective_sums(layout: Layout) -> list[npt.NDArray[np.bool_]]:
    """For each layer, which of its sums have children that exclude each other.

    A node's support is an integer with one bit for each input it may depend on with weight above
    zero. Children exclude each other when, for some variable, their supports have no bit in common.
    """
    support = [1 << row for row in range(layout.n_slots)]
    masks = [sum(support[slot]) for slot in layout.slots.values()]
    result = []
    for layer in layout.layers:
        flags = []
        for place in range(layer.rows.stop - layer.rows.start):
            parts = [support[child] for child in layer.possible_children(place)]
            support.append(reduce(or_, parts, 0))
            flags.append(isinstance(layer, SumLayer) and any(_disjoint(parts, m) for m in masks))
        result.append(np.array(flags))
    return result


def _disjoint(parts: list[int], mask: int) -> bool:
    union = reduce(or_, parts, 0) & mask
    # A part without the variable says nothing about it; then the union is empty for all of them.
    return bool(union) and sum((p & mask).bit_count() for p in parts) == union.bit_count()
