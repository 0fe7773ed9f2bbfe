"""Random valid circuits and evidence, and reference results by enumeration of all assignments.

The enumeration shares no code with the compiled evaluator. A "world" is one full assignment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy.special import logsumexp

from lpf.circuits import Circuit, CircuitBuilder, Leaf, Product, Variable

MOST_WORLDS = 3000


@dataclass(frozen=True)
class Case:
    """A circuit with evidence: ``log_inputs`` [S] is the same evidence as hard and soft."""

    circuit: Circuit
    hard: dict[str, str]
    soft: dict[str, np.ndarray]
    log_inputs: np.ndarray


def random_variables(rng: np.random.Generator, most: int) -> list[Variable]:
    variables, worlds = [], 1
    for index in range(int(rng.integers(1, most + 1))):
        size = int(rng.integers(1, 5))
        if worlds * size > MOST_WORLDS:
            break
        worlds *= size
        variables.append(Variable(f"v{index}", tuple(f"a{place}" for place in range(size))))
    return variables


def random_distribution(rng: np.random.Generator, size: int, zeros: float) -> list[float]:
    numbers = rng.dirichlet(np.ones(size)) * (rng.random(size) >= zeros)
    if numbers.sum() == 0.0:
        numbers[rng.integers(size)] = 1.0
    return (numbers / numbers.sum()).tolist()


class _Grower:
    """Builds a random DAG top down. Some nodes of the same scope are reused (shared children)."""

    def __init__(self, variables: list[Variable], rng: np.random.Generator, zeros: float) -> None:
        self.builder = CircuitBuilder(variables)
        self.sizes = {variable.name: len(variable.values) for variable in variables}
        self.rng, self.zeros = rng, zeros
        self.built: dict[frozenset[str], list[int]] = {}

    def grow(self, names: list[str], depth: int) -> int:
        scope = frozenset(names)
        if scope in self.built and self.rng.random() < 0.3:
            return int(self.rng.choice(self.built[scope]))
        node = self._new(names, depth)
        self.built.setdefault(scope, []).append(node)
        return node

    def _new(self, names: list[str], depth: int) -> int:
        if depth < 5 and self.rng.random() < 0.5:
            children = [self.grow(names, depth + 1) for _ in range(self.rng.integers(1, 4))]
            return self.builder.sum(
                children, random_distribution(self.rng, len(children), self.zeros)
            )
        if len(names) == 1:
            size = self.sizes[names[0]]
            return self.builder.leaf(names[0], random_distribution(self.rng, size, self.zeros))
        shuffled = self.rng.permutation(names).tolist()
        parts = min(len(names), int(self.rng.integers(2, 4)))
        return self.builder.product(
            [self.grow(shuffled[part::parts], depth + 1) for part in range(parts)]
        )


def random_circuit(seed: int, most: int = 8, zeros: float = 0.0) -> Circuit:
    rng = np.random.default_rng(seed)
    variables = random_variables(rng, most)
    grower = _Grower(variables, rng, zeros)
    return grower.builder.build(grower.grow([variable.name for variable in variables], 0))


def random_case(seed: int, zeros: float = 0.0, scale: float = 1.0, most: int = 8) -> Case:
    """Each variable has hard, soft, both or no evidence. ``scale`` spreads the log-likelihoods."""
    circuit = random_circuit(seed, most, zeros)
    rng = np.random.default_rng([seed, 1])
    hard, soft, blocks = {}, {}, []
    for variable in circuit.variables:
        size = len(variable.values)
        block = np.zeros(size)
        if rng.random() < 0.4:
            block = rng.normal(size=size) * scale
            block[rng.random(size) < zeros] = -np.inf
            soft[variable.name] = block
        if rng.random() < 0.25:
            place = int(rng.integers(size))
            hard[variable.name] = variable.values[place]
            block = np.where(np.arange(size) == place, block, -np.inf)
        blocks.append(block)
    return Case(circuit, hard, soft, np.concatenate(blocks))


def cases(zeros: float = 0.0, scale: float = 1.0, most: int = 8) -> st.SearchStrategy[Case]:
    return st.integers(0, 2**32 - 1).map(lambda seed: random_case(seed, zeros, scale, most))


def log_worlds(circuit: Circuit) -> np.ndarray:
    """log P of every world; one axis per variable."""
    axis = {variable.name: index for index, variable in enumerate(circuit.variables)}
    done: dict[int, np.ndarray] = {}

    def value(index: int) -> np.ndarray:
        if index not in done:
            done[index] = compute(index)
        return done[index]

    def compute(index: int) -> np.ndarray:
        node = circuit.nodes[index]
        if isinstance(node, Leaf):
            shape = [1] * len(axis)
            shape[axis[node.variable]] = -1
            return safe_log(np.array(node.probabilities)).reshape(shape)
        if isinstance(node, Product):
            return sum(value(child) for child in node.children)
        terms = [w + value(c) for w, c in zip(safe_log(node.weights), node.children, strict=True)]
        return np.logaddexp.reduce(np.broadcast_arrays(*terms), axis=0)

    return value(circuit.root)


def safe_log(numbers) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(numbers, dtype=float))


def with_evidence(circuit: Circuit, log_inputs: np.ndarray) -> np.ndarray:
    """log P(world, evidence) of every world."""
    worlds, start = log_worlds(circuit), 0
    for index, variable in enumerate(circuit.variables):
        shape = [1] * len(circuit.variables)
        shape[index] = -1
        stop = start + len(variable.values)
        worlds = worlds + log_inputs[start:stop].reshape(shape)
        start = stop
    return worlds


def enumerated_log_joint(circuit: Circuit, log_inputs: np.ndarray, name: str) -> np.ndarray:
    worlds = with_evidence(circuit, log_inputs)
    position = [variable.name for variable in circuit.variables].index(name)
    others = tuple(i for i in range(worlds.ndim) if i != position)
    if worlds.max() == -np.inf:
        return np.full(worlds.shape[position], -np.inf)
    return logsumexp(worlds, axis=others) if others else worlds


def enumerated_marginals(circuit: Circuit, log_inputs: np.ndarray) -> dict[str, np.ndarray]:
    result = {}
    for variable in circuit.variables:
        joint = enumerated_log_joint(circuit, log_inputs, variable.name)
        result[variable.name] = np.exp(joint - logsumexp(joint))
    return result


def mixture(seed: int = 0, variables: int = 8, size: int = 3, components: int = 5) -> Circuit:
    """The circuit of the benchmarks: one sum over products of leaves."""
    rng = np.random.default_rng(seed)
    domain = tuple(f"a{place}" for place in range(size))
    names = [Variable(f"v{index}", domain) for index in range(variables)]
    builder = CircuitBuilder(names)
    parts = [
        builder.product([builder.leaf(v.name, rng.dirichlet(np.ones(size))) for v in names])
        for _ in range(components)
    ]
    return builder.build(builder.sum(parts, rng.dirichlet(np.ones(components))))
