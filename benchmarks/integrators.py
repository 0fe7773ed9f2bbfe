"""The error of each integrator, and its cost.

The reference is 100,000 plain samples per item. The model is trained, so that sigma and decoder are
as in real use.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Row, paired_ratio
from benchmarks.trained_model import synthetic_features, train
from lpf.factors import ConversionConfig, Converter
from lpf.model.runtime import Runtime

ITEMS, REPEATS, REFERENCE_SAMPLES, CHUNK = 40, 40, 100_000, 2_000
SAMPLED = ("plain", "antithetic", "orthogonal", "sobol")


def run() -> list[Row]:
    runtime = train()
    inputs, _ = synthetic_features(ITEMS, seed=99)
    exact = reference(runtime, inputs)
    plain = {m: rmse(runtime, inputs, exact, "plain", m) for m in (4, 16, 32)}
    rows = [
        sampled_row(runtime, inputs, exact, sampler, m, plain[m])
        for m in (4, 16)
        for sampler in SAMPLED
    ]
    return [*rows, *deterministic_rows(runtime, inputs, exact)]


def reference(runtime: Runtime, inputs: np.ndarray) -> np.ndarray:
    """100,000 samples per item, in chunks with different seeds."""
    chunks = [
        convert(runtime, inputs, "plain", CHUNK, seed)
        for seed in range(1000, 1000 + REFERENCE_SAMPLES // CHUNK)
    ]
    return np.mean(chunks, axis=0)


def convert(
    runtime: Runtime, inputs: np.ndarray, sampler: str, samples: int | None, seed: int = 0
) -> np.ndarray:
    config = ConversionConfig(sampler, samples, seed=seed)
    return Converter(runtime, "level", config).from_features(inputs).potential


def rmse(
    runtime: Runtime, inputs: np.ndarray, exact: np.ndarray, sampler: str, samples: int | None
) -> float:
    seeds = range(REPEATS) if samples else range(1)
    errors = [convert(runtime, inputs, sampler, samples, seed) - exact for seed in seeds]
    return float(np.sqrt(np.mean(np.square(errors))))


def sampled_row(
    runtime: Runtime,
    inputs: np.ndarray,
    exact: np.ndarray,
    sampler: str,
    samples: int,
    plain: float,
) -> Row:
    error = plain if sampler == "plain" else rmse(runtime, inputs, exact, sampler, samples)
    return Row(
        f"error of {sampler}, M={samples}",
        error,
        "RMSE against 100k samples",
        f"plain Monte Carlo, M={samples} (as many decodes)",
        error / plain,
        "",
        None,
    )


def deterministic_rows(runtime: Runtime, inputs: np.ndarray, exact: np.ndarray) -> list[Row]:
    """``moments`` and ``mean`` against as many orthogonal samples as take the same time."""
    rows = []
    for sampler in ("moments", "mean"):
        fixed = Converter(runtime, "level", ConversionConfig(sampler))
        sixteen = Converter(runtime, "level", ConversionConfig("orthogonal", 16))
        paired = paired_ratio(
            lambda fixed=fixed: fixed.from_features(inputs),
            lambda sixteen=sixteen: sixteen.from_features(inputs),
            repeats=15,
            inner_candidate=10,
            inner_reference=10,
        )
        equal = max(2, 2 * round(16 / paired.ratio / 2))
        other = rmse(runtime, inputs, exact, "orthogonal", equal)
        error = rmse(runtime, inputs, exact, sampler, None)
        rows.append(
            Row(
                f"error of {sampler} (costs {1 / paired.ratio:.2f}x of 16 samples)",
                error,
                "RMSE against 100k samples",
                f"orthogonal at equal cost, M={equal}",
                error / other,
                "",
                None,
            )
        )
    return rows
