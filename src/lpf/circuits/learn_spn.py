"""LearnSPN (Gens and Domingos, 2013): learns structure and parameters from a table with gaps.

Recursively: variables that look independent (pairwise G-tests) are split into a product, otherwise
rows are clustered (a mixture of independent categoricals, fitted by EM) and split into a sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpf.circuits.circuit import Circuit, CircuitBuilder, Priors, prior_circuit, resolve_priors
from lpf.circuits.data_table import DataTable, check_at_least, smoothed
from lpf.circuits.em import RefineConfig, refine
from lpf.circuits.layout import FloatArray, IntArray, variable_slots
from lpf.errors import ConfigError


@dataclass(frozen=True)
class LearnSPNConfig:
    """Settings of `learn_spn`.

    ``min_rows``: with fewer rows, variables are treated as independent; a whole table with fewer
    informative rows gives `prior_circuit`. ``significance``: level of the independence tests.
    ``smoothing``: pseudo counts per value. ``clusters``: number of clusters per row split, fitted
    with up to ``iterations`` EM steps from each of ``restarts`` random starts. ``max_depth``:
    maximum depth of row splits. ``refinements``: EM steps on all parameters at the end, which
    corrects for the hard assignment of incomplete rows to clusters.
    """

    min_rows: int = 30
    significance: float = 0.01
    smoothing: float = 1.0
    clusters: int = 2
    iterations: int = 100
    restarts: int = 3
    max_depth: int = 16
    refinements: int = 20

    def __post_init__(self) -> None:
        check_at_least("min_rows", self.min_rows, 1)
        if not 0.0 < self.significance < 1.0:
            raise ConfigError(
                f"must lie between 0 and 1, got {self.significance!r}.", field="significance"
            )
        check_at_least("smoothing", self.smoothing, 0.0)
        check_at_least("clusters", self.clusters, 2)
        check_at_least("iterations", self.iterations, 1)
        check_at_least("restarts", self.restarts, 1)
        check_at_least("max_depth", self.max_depth, 0)
        check_at_least("refinements", self.refinements, 0)


def learn_spn(
    table: DataTable,
    config: LearnSPNConfig | None = None,
    priors: Priors | None = None,
    *,
    generator: np.random.Generator,
) -> Circuit:
    """Learn a circuit from a table. Probabilities are smoothed towards ``priors``."""
    config = config or LearnSPNConfig()
    if table.informative_rows < config.min_rows:
        return prior_circuit(table.variables, priors)
    circuit = _Learner(table, config, priors, generator).learn()
    if not config.refinements:
        return circuit
    return refine(circuit, table, RefineConfig(config.refinements, 0.0, config.smoothing)).circuit


class _Learner:
    """The recursion. A part is a subset of rows and variables."""

    def __init__(
        self,
        table: DataTable,
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
        """Return the node for some rows [R, S] and some variables."""
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
        # A row without known values of these variables belongs to no cluster.
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
        """Return the columns of some variables, and the slice of each variable in them."""
        blocks = [rows[:, self._slots[name]] for name in names]
        ends = np.cumsum([block.shape[1] for block in blocks]).tolist()
        slots = [slice(end - block.shape[1], end) for end, block in zip(ends, blocks, strict=True)]
        return np.concatenate(blocks, axis=1), slots


def independence_p_value(counts: FloatArray) -> float:
    """Return the p-value of the G-test on counts [V, W]; 1.0 if nothing can be tested.

    Only values that occur count as degrees of freedom.
    """
    used = counts[counts.sum(axis=1) > 0.0][:, counts.sum(axis=0) > 0.0]
    freedom = (used.shape[0] - 1) * (used.shape[1] - 1)
    if used.size == 0 or freedom == 0:
        return 1.0
    expected = np.outer(used.sum(axis=1), used.sum(axis=0)) / used.sum()
    seen = used > 0.0
    statistic = 2.0 * float((used[seen] * np.log(used[seen] / expected[seen])).sum())
    from scipy.special import chdtrc  # slow to import; only learning needs it

    # Rounding may give a statistic of -1e-15 for exact independence.
    return float(chdtrc(freedom, max(statistic, 0.0)))


def dependent_groups(
    one_hot: FloatArray, slots: list[slice], significance: float
) -> list[list[int]]:
    """Group the variables (positions in ``slots``) so that no dependence is found between groups.

    ``one_hot`` is [N, S]. The level is divided by the number of pairs (Bonferroni), so that
    ``significance`` bounds the chance of joining any variables if all are independent.
    """
    counts = one_hot.T @ one_hot
    pairs = [(i, j) for i in range(len(slots)) for j in range(i)]
    level = significance / max(1, len(pairs))
    group = list(range(len(slots)))
    for i, j in pairs:
        if group[i] != group[j] and independence_p_value(counts[slots[i], slots[j]]) < level:
            group = [group[j] if label == group[i] else label for label in group]
    members: dict[int, list[int]] = {}
    for position, label in enumerate(group):
        members.setdefault(label, []).append(position)
    return list(members.values())


# Keeps values that do not occur in a cluster possible during EM. Leaves are estimated afterwards.
_FITTING_SMOOTHING = 0.1


def cluster_rows(
    one_hot: FloatArray,
    slots: list[slice],
    clusters: int,
    iterations: int,
    restarts: int,
    *,
    generator: np.random.Generator,
) -> IntArray:
    """Return the cluster of each row, [N], from the best of several fits to ``one_hot`` [N, S]."""
    fits = [_fit(one_hot, slots, clusters, iterations, generator) for _ in range(restarts)]
    best = max(fits, key=lambda fit: fit[0])
    return best[1]


def _fit(
    one_hot: FloatArray,
    slots: list[slice],
    clusters: int,
    iterations: int,
    generator: np.random.Generator,
) -> tuple[float, IntArray]:
    labels = generator.integers(clusters, size=len(one_hot))
    shares = np.eye(clusters)[labels]
    previous = -np.inf
    for _ in range(iterations):
        log_joint = _log_joint(one_hot, slots, shares)
        evidence = np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
        total = float(evidence.sum())
        shares = np.exp(log_joint - evidence)
        if total - previous < 1e-6 * len(one_hot):
            break
        previous = total
    return total, shares.argmax(axis=1)


def _log_joint(one_hot: FloatArray, slots: list[slice], shares: FloatArray) -> FloatArray:
    """Return log P(row, cluster), [N, K]. Missing values contribute nothing: their inputs are 0."""
    counts = shares.T @ one_hot + _FITTING_SMOOTHING
    log_probabilities = np.empty_like(counts)
    for slot in slots:
        block = counts[:, slot]
        log_probabilities[:, slot] = np.log(block / block.sum(axis=1, keepdims=True))
    weights = shares.sum(axis=0) + _FITTING_SMOOTHING
    result: FloatArray = one_hot @ log_probabilities.T + np.log(weights / weights.sum())
    return result
