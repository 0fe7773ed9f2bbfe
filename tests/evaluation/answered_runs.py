"""Artificial answers to measure and compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpf.evaluation.predictions import Predictions

VALUES = ("low", "medium", "high")


def a_run(rows: object, labels: Sequence[int], **changes: object) -> Predictions:
    """Answers at the fitted temperature, with entities e0, e1, ... by default."""
    tempered = np.asarray(rows, dtype=np.float64)
    size = len(labels)
    given: dict[str, object] = {
        "raw": tempered,
        "tempered": tempered,
        "labels": np.asarray(labels),
        "counts": np.full(size, 5),
        "credibility": np.full(size, np.nan),
        "entity_ids": tuple(f"e{place}" for place in range(size)),
        "values": VALUES[: tempered.shape[1]],
    }
    return Predictions(**{**given, **changes})  # type: ignore[arg-type]


def a_crash(labels: Sequence[int], error: str = "TrainingError: it broke") -> Predictions:
    return a_run(np.eye(3)[list(labels)], labels, raw=None, tempered=None, error=error)


def calibrated_run(
    entities: int, seed: int, *, sharpness: float = 1.0, data: int = 0, **changes: object
) -> Predictions:
    """Entities of ``data``, answered with noise of ``seed``; overconfident where ``sharpness`` is
    above 1."""
    generator, noise = np.random.default_rng(data), np.random.default_rng([seed, 1])
    labels = generator.integers(3, size=entities)
    scores = generator.normal(size=(entities, 3)) + 1.5 * np.eye(3)[labels]
    rows = np.exp(sharpness * (scores + 0.3 * noise.normal(size=(entities, 3))))
    return a_run(rows / rows.sum(axis=1, keepdims=True), labels.tolist(), **changes)
