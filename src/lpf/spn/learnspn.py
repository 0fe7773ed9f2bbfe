"""LearnSPN: split variables that look independent, else split rows into clusters, and repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lpf.spn.builder import CircuitBuilder, prior_circuit
from lpf.spn.circuit import Circuit
from lpf.spn.config import LearnSPNConfig, RefineConfig
from lpf.spn.independence import dependent_groups
from lpf.spn.layers import FloatArray
from lpf.spn.layout import variable_slots
from lpf.spn.mixture import cluster_rows
from lpf.spn.refine import refine
from lpf.spn.table import Table, smoothed
from lpf.spn.variables import resolve_priors

Priors = Mapping[str, Sequence[float]]


def learn_spn(
    table: Table,
    config: LearnSPNConfig | None = None,
    priors: Priors | None = None,
    *,
    generator: np.random.Generator,
) -> Circuit:
    """A circuit for the table. ``priors`` are what probabilities are smoothed towards.

    With fewer than ``min_rows`` rows that know something, this is `prior_circuit`.
    """
    config = config or LearnSPNConfig()
    if table.informative_rows < config.min_rows:
        return prior_circuit(table.variables, priors)
    circuit = _Learner(table, config, priors, generator).learn()
    if not config.refinements:
        return circuit
    return refine(circuit, table, RefineConfig(config.refinements, 0.0, config.smoothing)).circuit


class _Learner:
    """Holds what does not change in the recursion; a part is a set of rows and of variables."""

    def __init__(
        self,
        table: Table,
        config: LearnSPNConfig,
        priors: Priors | None,
        generator: np.random.Generator,
    ) -> None:
        self._config = config
        self._generator = generator
        self._one_hot = table.one_hot()
        self._slots = variable_slots(table.variables)
        self._priors = resolve_priors(table.variables, priors)
        self._builder = CircuitBuilder(table.variables)

    def learn(self) -> Circuit:
        return self._builder.build(self._part(self._one_hot, list(self._slots), depth=0))

    def _part(self, rows: FloatArray, names: list[str], depth: int) -> int:
        """Node for some rows [R, S] and some variables."""
        if len(names) == 1 or len(rows) < self._config.min_rows:
            return self._independent(rows, names)
        local, slots = self._restrict(rows, names)
        groups = dependent_groups(local, slots, self._config.significance)
        if len(groups) > 1:
            return self._split_variables(
                rows, [[names[i] for i in group] for group in groups], depth
            )
        if depth >= self._config.max_depth:
            return self._independent(rows, names)
        return self._split_rows(rows, names, depth)

    def _split_variables(self, rows: FloatArray, groups: list[list[str]], depth: int) -> int:
        return self._builder.product([self._part(rows, group, depth) for group in groups])

    def _split_rows(self, rows: FloatArray, names: list[str], depth: int) -> int:
        local, slots = self._restrict(rows, names)
        # A row that knows nothing about these variables has no cluster.
        known = local.any(axis=1)
        labels = cluster_rows(
            local[known],
            slots,
            self._config.clusters,
            self._config.iterations,
            self._config.restarts,
            generator=self._generator,
        )
        parts = [rows[known][labels == label] for label in np.unique(labels)]
        if len(parts) == 1:
            return self._independent(rows, names)
        children = [self._part(part, names, depth + 1) for part in parts]
        return self._builder.sum(children, [len(part) / known.sum() for part in parts])

    def _independent(self, rows: FloatArray, names: list[str]) -> int:
        return self._builder.product([self._leaf(rows, name) for name in names])

    def _leaf(self, rows: FloatArray, name: str) -> int:
        counts = rows[:, self._slots[name]].sum(axis=0)
        probabilities = smoothed(counts, self._priors[name], self._config.smoothing)
        return self._builder.leaf(name, probabilities.tolist())

    def _restrict(self, rows: FloatArray, names: list[str]) -> tuple[FloatArray, list[slice]]:
        """The columns of some variables, and where each variable stands among them."""
        blocks = [rows[:, self._slots[name]] for name in names]
        ends = np.cumsum([block.shape[1] for block in blocks]).tolist()
        slots = [slice(end - block.shape[1], end) for end, block in zip(ends, blocks, strict=True)]
        return np.concatenate(blocks, axis=1), slots
