"""All methods on the same entities. One that crashes is a row that says so, not a missing row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from lpf.baselines.interface import FittedMethod, Method, labelled
from lpf.baselines.tempered import Temperature, with_temperature
from lpf.errors import ConfigError, EvidenceError
from lpf.metrics.scores import checked_probabilities
from lpf.training.examples import Examples
from lpf.types import FloatArray

TEMPERING = 77  # tells the draws of subsets apart from those of training with the same seed


@dataclass(frozen=True)
class Outcome:
    """What became of one method: its answers [E, V] as they are and at the fitted temperature.

    ``fit_seconds`` is learning without the temperature. Methods over the same item classifier share
    its training: whoever comes first is charged. ``error`` is the text of what went wrong, None
    where nothing did; answers that were there before it are kept. A reference has no temperature,
    and its tempered answers are its answers."""

    name: str
    raw: FloatArray | None
    tempered: FloatArray | None
    temperature: Temperature | None
    fit_seconds: float
    error: str | None


def run_methods(
    methods: Sequence[Method],
    train: Examples,
    validation: Examples,
    test: Examples,
    predicate: str,
    seed: int,
    *,
    by_count: bool | None = None,
) -> dict[str, Outcome]:
    """Fits each on ``train`` and ``validation`` and asks it about ``test``, by name in the order
    given. Entities of the first two that have no value of ``predicate`` are left out. ``by_count``
    is that of ``with_temperature``; set it where test entities differ in their number of items and
    validation entities do not."""
    names = [method.name for method in methods]
    if len(set(names)) != len(names):
        raise ConfigError(f"methods: given more than once in {names}. Nothing was fitted.")
    known, held = labelled(train, predicate), labelled(validation, predicate)
    return {
        method.name: _Run(method, seed, predicate).outcome(known, held, test, by_count)
        for method in methods
    }


@dataclass
class _Run:
    """One method on its way; what it has reached stays when it crashes."""

    method: Method
    seed: int
    predicate: str
    raw: FloatArray | None = None
    tempered: FloatArray | None = None
    temperature: Temperature | None = None
    fit_seconds: float = 0.0

    def outcome(
        self, train: Examples, validation: Examples, test: Examples, by_count: bool | None
    ) -> Outcome:
        error = None
        try:
            fitted = self._fit(train, validation)
            self.raw = self._answers(fitted, test)
            self.tempered = self._temper(fitted, validation, test, by_count)
        except Exception as problem:  # whatever a method raises is its result, and is shown
            error = f"{type(problem).__name__}: {problem}"
        return Outcome(
            self.method.name, self.raw, self.tempered, self.temperature, self.fit_seconds, error
        )

    def _fit(self, train: Examples, validation: Examples) -> FittedMethod:
        start = perf_counter()
        try:
            return self.method.fit(train, validation, self.predicate, self.seed)
        finally:
            self.fit_seconds = perf_counter() - start

    def _answers(self, fitted: FittedMethod, test: Examples) -> FloatArray:
        found = checked_probabilities(fitted.predict_proba(test))
        expected = (len(test.dataset), len(test.dataset.schema[self.predicate].values))
        if found.shape != expected:
            raise EvidenceError(f"{self.method.name}: answers are {found.shape}, not {expected}.")
        return found

    def _temper(
        self,
        fitted: FittedMethod,
        validation: Examples,
        test: Examples,
        by_count: bool | None,
    ) -> FloatArray | None:
        if self.method.is_reference:
            return self.raw
        generator = np.random.default_rng([self.seed, TEMPERING])
        tempered = with_temperature(
            fitted, validation, self.predicate, generator=generator, by_count=by_count
        )
        self.temperature = tempered.temperature
        assert self.raw is not None  # answered before
        return checked_probabilities(self.temperature.apply(self.raw, test.segments.counts))
