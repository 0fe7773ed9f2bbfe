"""Marginals of a circuit, compared with SPFlow 1.1.0 on the same circuit and evidence.

The circuit is one sum over 5 products of 8 leaves with 3 values each. SPFlow has no soft evidence
and no downward pass, so the evidence is hard, and its fastest way to all marginals is one
vectorised call with a row for every value of every variable (24 rows per query), followed by a
softmax over the values. Timed for SPFlow: building these rows and one `log_likelihood` of a layered
`Sum(Product(Categorical))` in float64 under `inference_mode`, without argument checks, in chunks of
the size that was fastest here; on one thread and on all threads, whichever is faster (on a busy
machine its threads wait for each other). Timed for lpf: `marginals` of a mapping, with all checks,
and `marginals_batch` of an array of log-likelihoods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Paired, Row, paired_ratio
from lpf.circuits import Circuit, CircuitBuilder, CompiledCircuit, Leaf, Variable, compile_circuit
from lpf.circuits import Sum as OurSum

VARIABLES, VALUES, COMPONENTS, BATCH = 8, 3, 5, 10_000
SPFLOW_CHUNK = 2_500  # queries, i.e. 60,000 rows
REFERENCE = "SPFlow 1.1.0"


def run() -> list[Row]:
    circuit = _mixture()
    compiled, spflow = compile_circuit(circuit), _SPFlow(circuit)
    codes = _evidence()
    _check_agreement(compiled, spflow, codes[:50])
    return [_one_query(compiled, spflow, codes), _batch(compiled, spflow, codes)]


def _one_query(compiled: CompiledCircuit, spflow: _SPFlow, codes: Any) -> Row:
    hard, observed = _hard(codes[0]), spflow.tensor(codes[:1])
    timing = spflow.best(
        lambda: paired_ratio(
            lambda: compiled.marginals(hard),
            lambda: spflow.marginals(observed),
            inner_candidate=500,
            inner_reference=100,
        )
    )
    return _row("circuit marginals, one query", timing, 1, 5.0)


def _batch(compiled: CompiledCircuit, spflow: _SPFlow, codes: Any) -> Row:
    inputs, observed = _log_inputs(codes), spflow.tensor(codes)
    timing = spflow.best(
        lambda: paired_ratio(
            lambda: compiled.marginals_batch(inputs),
            lambda: [spflow.marginals(chunk) for chunk in observed.split(SPFLOW_CHUNK)],
            repeats=9,
            inner_candidate=5,
        )
    )
    return _row("circuit marginals, 10,000 queries", timing, BATCH, 3.0)


def _row(name: str, timing: Paired, queries: int, goal: float) -> Row:
    return Row(
        name=name,
        value=1e6 * timing.candidate_seconds / queries,
        unit="us/query",
        reference=REFERENCE,
        ratio=timing.ratio,
        goal=f">= {goal:g}x faster",
        met=timing.ratio >= goal,
    )


def _mixture() -> Circuit:
    rng = np.random.default_rng(0)
    domain = tuple(f"a{place}" for place in range(VALUES))
    builder = CircuitBuilder([Variable(f"v{index}", domain) for index in range(VARIABLES)])
    parts = [
        builder.product(
            [
                builder.leaf(f"v{index}", rng.dirichlet(np.ones(VALUES)))
                for index in range(VARIABLES)
            ]
        )
        for _ in range(COMPONENTS)
    ]
    return builder.build(builder.sum(parts, rng.dirichlet(np.ones(COMPONENTS))))


def _evidence() -> Any:
    """Positions of values [BATCH, VARIABLES]; half of them are -1 (unknown)."""
    rng = np.random.default_rng(1)
    codes = rng.integers(VALUES, size=(BATCH, VARIABLES))
    codes[rng.random(codes.shape) < 0.5] = -1
    codes[0] = [0, -1, 2, -1, 1, -1, -1, 0]
    return codes


def _hard(codes: Any) -> dict[str, str]:
    return {f"v{index}": f"a{place}" for index, place in enumerate(codes) if place >= 0}


def _log_inputs(codes: Any) -> Any:
    allowed = (codes[:, :, None] == np.arange(VALUES)) | (codes[:, :, None] < 0)
    return np.where(allowed, 0.0, -np.inf).reshape(len(codes), -1)


class _SPFlow:
    """The same circuit in SPFlow (imported late, since torch takes seconds)."""

    def __init__(self, circuit: Circuit) -> None:
        import torch
        from spflow.meta.data import Scope
        from spflow.modules.leaves import Categorical
        from spflow.modules.products import Product
        from spflow.modules.sums import Sum

        self._torch = torch
        root = circuit.nodes[circuit.root]
        assert isinstance(root, OurSum)
        probabilities = [n.probabilities for n in circuit.nodes if isinstance(n, Leaf)]
        shaped = torch.tensor(probabilities, dtype=torch.float64)
        shaped = shaped.reshape(COMPONENTS, VARIABLES, 1, VALUES).transpose(0, 1).contiguous()
        layer = Categorical(
            Scope(list(range(VARIABLES))), COMPONENTS, probs=shaped, validate_args=False
        )
        weights = torch.tensor(root.weights, dtype=torch.float64)
        self._model = Sum(Product(layer), weights=weights[:, None]).double().eval()
        values = torch.arange(VALUES, dtype=torch.float64).repeat(VARIABLES)
        columns = torch.arange(VARIABLES).repeat_interleave(VALUES)
        self._rows = (torch.arange(VARIABLES * VALUES), columns, values)

    def best(self, measure: Callable[[], Paired]) -> Paired:
        """Return the measurement that is better for SPFlow: one thread or all threads."""
        torch, threads = self._torch, self._torch.get_num_threads()
        everything = measure()
        torch.set_num_threads(1)
        try:
            return min(everything, measure(), key=lambda timing: timing.ratio)
        finally:
            torch.set_num_threads(threads)

    def tensor(self, codes: Any) -> Any:
        """Observed positions [B, X], NaN for missing values as SPFlow expects."""
        return self._torch.from_numpy(np.where(codes < 0, np.nan, codes.astype(float)))

    def marginals(self, observed: Any) -> Any:
        """Marginals [B, X, V]; other values of an observed variable get probability 0."""
        torch, (row, column, value) = self._torch, self._rows
        with torch.inference_mode():
            rows = observed[:, None, :].repeat(1, len(row), 1)
            known = observed[:, column]
            rows[:, row, column] = value
            logs = self._model.log_likelihood(rows.reshape(-1, VARIABLES)).reshape(known.shape)
            logs.masked_fill_((known != value) & ~known.isnan(), -torch.inf)
            return logs.reshape(-1, VARIABLES, VALUES).softmax(dim=-1)


def _check_agreement(compiled: CompiledCircuit, spflow: _SPFlow, codes: Any) -> None:
    """Check that both compute the same marginals."""
    ours = np.stack(list(compiled.marginals_batch(_log_inputs(codes)).values()), axis=1)
    theirs = spflow.marginals(spflow.tensor(codes)).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-9)
