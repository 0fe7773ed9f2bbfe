"""Methods fitted and asked as an evaluation does it, without specs and stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpf.baselines import Method, Temperature, with_temperature
from lpf.baselines.interface import labelled
from lpf.baselines.tempered import TEMPERING
from lpf.metrics.scores import checked_probabilities
from lpf.training.examples import Examples
from lpf.types import FloatArray


@dataclass(frozen=True)
class MethodRun:
    """Probabilities [E, V] before and after the temperature; equal for a reference."""

    raw: FloatArray
    tempered: FloatArray
    temperature: Temperature | None


def run_methods(
    methods: Sequence[Method],
    train: Examples,
    validation: Examples,
    test: Examples,
    predicate: str,
    seed: int,
    *,
    by_count: bool | None = None,
) -> dict[str, MethodRun]:
    """By name. Training and validation entities without a label are left out."""
    known, held = labelled(train, predicate), labelled(validation, predicate)
    return {
        method.name: _run(method, known, held, test, predicate, seed, by_count)
        for method in methods
    }


def _run(
    method: Method,
    train: Examples,
    validation: Examples,
    test: Examples,
    predicate: str,
    seed: int,
    by_count: bool | None,
) -> MethodRun:
    fitted = method.fit(train, validation, predicate, seed)
    raw = checked_probabilities(fitted.predict_proba(test))
    assert raw.shape == (len(test.dataset), len(test.dataset.schema[predicate].values))
    if method.is_reference:
        return MethodRun(raw, raw, None)
    generator = np.random.default_rng([seed, TEMPERING])
    temperature = with_temperature(
        fitted, validation, predicate, generator=generator, by_count=by_count
    ).temperature
    tempered = checked_probabilities(temperature.apply(raw, test.segments.counts))
    return MethodRun(raw, tempered, temperature)
