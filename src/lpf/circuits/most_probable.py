"""The most probable explanation (MPE), exact, by best-first branch and bound.

Replacing every sum by a maximum does not give the most probable assignment of a circuit with real
mixtures. The search uses an upper bound for partial assignments: a maximum at each *selective* sum
(whose children exclude each other, such as the values of a leaf) and a sum elsewhere. It never
underestimates, since the maximum of a sum is at most the sum of the maxima. It is exact once all
variables are assigned, and from the start if all sums are selective.
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
from lpf.circuits.evidence import NO_HARD, NO_SOFT, Hard, Soft, impossible_evidence
from lpf.circuits.layout import FloatArray, Layout, SumLayer
from lpf.errors import ConfigError

DEFAULT_EXPANSIONS = 20_000


@dataclass(frozen=True)
class MostProbable:
    """The best complete assignment found, with ``log_joint`` = log P(assignment, evidence).

    If ``exact``, no assignment is better. Otherwise the search stopped after ``max_expansions``,
    and no assignment exceeds ``log_upper_bound``.
    """

    assignment: dict[str, str]
    log_joint: float
    log_upper_bound: float
    exact: bool


def most_probable_explanation(
    compiled: CompiledCircuit,
    hard: Hard = NO_HARD,
    soft: Soft = NO_SOFT,
    log_soft: Soft = NO_SOFT,
    max_expansions: int = DEFAULT_EXPANSIONS,
) -> MostProbable:
    """Return the assignment of all variables that maximises P(assignment, evidence).

    Exact unless the search stops after ``max_expansions`` (``exact`` is False then). The worst case
    is exponential in the number of variables. Raises ImpossibleEvidenceError.
    """
    if max_expansions < 1:
        raise ConfigError(f"must be >= 1, got {max_expansions}.", field="max_expansions")
    search = _Search(compiled, hard, soft, log_soft)
    if search.top_bound == -inf:
        raise impossible_evidence(hard, soft, log_soft)
    for _ in range(max_expansions):
        if search.complete:
            return search.result(exact=True)
        search.expand()
    return search.result(exact=search.complete)


class _Search:
    """A heap of partial assignments, best upper bound first.

    An assignment is a tuple of positions of values, one per variable in ``_order``.
    """

    def __init__(self, compiled: CompiledCircuit, hard: Hard, soft: Soft, log_soft: Soft) -> None:
        self._compiled = compiled
        self._layout = compiled.layout
        self._selective = _selective_sums(compiled.layout)
        self._base = np.array(compiled.encoder.log_inputs(hard, soft, log_soft))
        bound = float(_bounds(self._layout, self._selective, self._base[None, :])[0])
        self._ticket = count()  # breaks ties by insertion order
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
        _, _, positions = heapq.heappop(self._heap)
        for entry in self._extensions(positions):
            heapq.heappush(self._heap, entry)

    def result(self, *, exact: bool) -> MostProbable:
        upper = self.top_bound
        score, _, positions = self._heap[0]
        while len(positions) < len(self._order):  # out of expansions: finish greedily
            score, _, positions = min(self._extensions(positions))
        chosen = dict(zip(self._order, positions, strict=True))
        assignment = {
            variable.name: variable.values[chosen[variable.name]]
            for variable in self._compiled.circuit.variables
        }
        return MostProbable(assignment, -score, upper, exact)

    def _extensions(self, positions: tuple[int, ...]) -> list[tuple[float, int, tuple[int, ...]]]:
        inputs = self._base.copy()
        for name, position in zip(self._order, positions, strict=False):
            _keep_only(inputs[self._layout.slots[name]][None, :], [position])
        slot = self._layout.slots[self._order[len(positions)]]
        size = slot.stop - slot.start
        rows = np.tile(inputs, (size, 1))
        _keep_only(rows[:, slot], range(size))
        bounds = _bounds(self._layout, self._selective, rows).tolist()
        return [
            (-bound, next(self._ticket), (*positions, position))
            for position, bound in enumerate(bounds)
            if bound > -inf
        ]

    def _variable_order(self, hard: Hard, soft: Soft, log_soft: Soft) -> list[str]:
        # The most certain variables first, so that wrong values are ruled out early.
        marginals = self._compiled.marginals(hard, soft, log_soft)
        return sorted(marginals, key=lambda name: (-float(marginals[name].max()), name))


def _keep_only(block: FloatArray, positions: range | list[int]) -> None:
    """Set all entries of each row to -inf, except the one at its position."""
    block[np.arange(block.shape[1]) != np.array(positions)[:, None]] = -inf


def _bounds(
    layout: Layout, selective: list[npt.NDArray[np.bool_]], log_inputs: FloatArray
) -> FloatArray:
    """Upper bounds [B] of log P(best completion, evidence), from inputs [B, S]."""
    values = np.empty((layout.n_rows, len(log_inputs)))
    values[: layout.n_slots] = log_inputs.T
    for layer, is_selective in zip(layout.layers, selective, strict=True):
        layer.upward_log(values)
        if isinstance(layer, SumLayer) and is_selective.any():
            peak = np.maximum.reduceat(layer.log_terms(values), layer.edge_starts, axis=0)
            values[layer.rows][is_selective] = peak[is_selective]
    bounds: FloatArray = values[layout.root]
    return bounds


def _selective_sums(layout: Layout) -> list[npt.NDArray[np.bool_]]:
    """Return, for each layer, a mask of the sums whose children exclude each other.

    A node's support is a bit mask of the inputs it depends on with a weight above zero. Children
    exclude each other if, for some variable, no two supports share a bit.
    """
    support = [1 << row for row in range(layout.n_slots)]
    masks = [sum(support[slot]) for slot in layout.slots.values()]
    result = []
    for layer in layout.layers:
        flags = []
        for position in range(layer.rows.stop - layer.rows.start):
            parts = [support[child] for child in layer.possible_children(position)]
            support.append(reduce(or_, parts, 0))
            flags.append(isinstance(layer, SumLayer) and any(_disjoint(parts, m) for m in masks))
        result.append(np.array(flags))
    return result


def _disjoint(parts: list[int], mask: int) -> bool:
    union = reduce(or_, parts, 0) & mask
    # An empty union means that no child depends on the variable.
    return bool(union) and sum((p & mask).bit_count() for p in parts) == union.bit_count()
