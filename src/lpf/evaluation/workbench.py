"""Runs the cells of one training spec; data, models and fitted methods are shared between them.

Probabilities get a temperature that is fitted on the validation entities.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from lpf.baselines import TRANSFORMER, ZERO_LABEL, FittedMethod, Temperature, with_temperature
from lpf.baselines.tempered import TEMPERING
from lpf.datasets import Dataset
from lpf.errors import EvidenceError
from lpf.evaluation.feature_cache import FeatureCache, SpecExamples
from lpf.evaluation.fitted_methods import MACHINE_ERRORS, FittedMethods, error_text
from lpf.evaluation.method_costs import method_costs
from lpf.evaluation.model_cache import ModelCache, SharedModels, StudyModel
from lpf.evaluation.own_method import is_own
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.spec_datasets import DataSources
from lpf.evaluation.specs import Cell, DomainData, EvalSpec, Settings, TrainSpec
from lpf.metrics.scores import checked_probabilities
from lpf.training import Examples
from lpf.training.threads import one_thread
from lpf.types import FloatArray

# These methods fit a temperature of their own.
SELF_TEMPERED = ("lpf_robust", "lpf_chosen", "lpf_robust_single")
# References, and verdicts without labels: a temperature is fitted to labels.
WITHOUT_TEMPERATURE = ("prior", "perfect_reader", "oracle", ZERO_LABEL)


class Temperatures:
    """The temperatures of one training spec, each fitted once."""

    def __init__(self, examples: SpecExamples) -> None:
        self.examples = examples
        self._fitted: dict[tuple[str, Settings, bool], Temperature | EvidenceError] = {}

    def temperature(
        self, cell: Cell, fitted: FittedMethod, test: Examples
    ) -> Temperature | EvidenceError | None:
        """None for a method that gets none."""
        if cell.method in (*SELF_TEMPERED, *WITHOUT_TEMPERATURE):
            return None
        varying = self._is_by_count(test)
        key = (cell.method, cell.settings, varying)
        if key not in self._fitted:
            self._fitted[key] = self._newly_fitted(fitted, varying)
        return self._fitted[key]

    def _newly_fitted(self, fitted: FittedMethod, varying: bool) -> Temperature | EvidenceError:
        """Returns the error of a method that gives a label probability 0, which no temperature can
        change."""
        examples = self.examples
        try:
            return with_temperature(
                fitted,
                examples.validation,
                examples.predicate,
                generator=np.random.default_rng([examples.train_spec.seed, TEMPERING]),
                by_count=varying or None,
            ).temperature
        except EvidenceError as error:
            return error

    def _is_by_count(self, test: Examples) -> bool:
        """Return True if entities differ in their number of items: a temperature that is right for
        five items is not right for nine."""
        validation = self.examples.validation
        counts = np.concatenate([test.segments.counts, validation.segments.counts])
        return len(np.unique(counts)) > 1


class Workbench:
    """One training spec. ``folder`` holds features and models, ``sources`` the data sets that were
    read already, ``estimators`` own methods given as objects, by name."""

    def __init__(
        self,
        train_spec: TrainSpec,
        folder: Path,
        threads: int = 1,
        *,
        sources: DataSources | None = None,
        estimators: Mapping[str, object] | None = None,
    ) -> None:
        self.train_spec = train_spec
        # Generated texts are short, so passages change no features. But the reader's id is part of
        # a model's version, and with it of random samples: published results keep the earlier id.
        # For the same reason their texts are read in the batches that they always were.
        is_file = not isinstance(train_spec.data, DomainData)
        self.feature_cache = FeatureCache(
            folder / "features", threads, passages=is_file, distinct=is_file
        )
        self.model_cache = ModelCache(folder / "models")
        self._data = SpecExamples(train_spec, self.feature_cache, sources)
        self._models = SharedModels(self._data, self.model_cache)
        self._methods = FittedMethods(self._data, self._models, estimators or {})
        self._temperatures = Temperatures(self._data)

    def predict(self, cell: Cell) -> Predictions:
        """An error of the method is stored as its result. An error of the machine or the folder
        ends the run."""
        test = self.test_examples(cell.eval_spec)
        try:
            with self._threads(cell.method):
                return self._predict(cell, test)
        except MACHINE_ERRORS:
            raise
        except Exception as error:
            return replace(self._without_answers(test), error=error_text(error))

    def test_examples(self, eval_spec: EvalSpec) -> Examples:
        return self._data.test_examples(eval_spec)

    def fitted(self, name: str, settings: Settings = ()) -> FittedMethod:
        return self._methods.fit(name, settings).method

    @property
    def examples(self) -> Examples:
        return self._data.examples

    @property
    def predicate(self) -> str:
        return self._data.predicate

    @property
    def train(self) -> Examples:
        return self._data.train

    @property
    def validation(self) -> Examples:
        return self._data.validation

    @property
    def model(self) -> StudyModel:
        return self._models.model

    def _threads(self, method: str) -> AbstractContextManager[None]:
        """One thread, except for a transformer and for own methods, whose networks may be large."""
        large = method == TRANSFORMER or is_own(method) or method in self._methods.estimators
        return nullcontext() if large else one_thread()

    def _predict(self, cell: Cell, test: Examples) -> Predictions:
        fit = self._methods.fit(cell.method, cell.settings)
        begin = perf_counter()
        raw = checked_probabilities(fit.method.predict_proba(test))
        rate = len(test.dataset) / (perf_counter() - begin)
        temperature = self._temperatures.temperature(cell, fit.method, test)
        costs, unmeasured = method_costs(cell, fit, test, rate)
        notes = [] if unmeasured is None else [unmeasured]
        if isinstance(temperature, EvidenceError):
            notes.append(f"without a temperature: {temperature}")
            temperature = None
        return replace(
            _at_temperature(self._without_answers(test), raw, temperature),
            costs=costs,
            note="; ".join(notes) or None,
        )

    def _without_answers(self, test: Examples) -> Predictions:
        dataset = test.dataset
        return Predictions(
            None,
            None,
            dataset.labels(self.predicate),
            test.segments.counts,
            _mean_credibility(test),
            tuple(entity.entity_id for entity in dataset),
            dataset.schema[self.predicate].values,
            self._groups(dataset),
        )

    def _groups(self, dataset: Dataset) -> tuple[str | None, ...]:
        protected = getattr(self.train_spec.data, "protected", None)
        if protected is None:
            return ()
        values = (entity.fields.get(protected) for entity in dataset)
        return tuple(None if value is None else str(value) for value in values)


def _at_temperature(
    empty: Predictions, raw: FloatArray, temperature: Temperature | None
) -> Predictions:
    if temperature is None:
        return replace(empty, raw=raw, tempered=raw)
    return replace(
        empty,
        raw=raw,
        tempered=checked_probabilities(temperature.apply(raw, empty.counts)),
        temperature=(temperature.intercept, temperature.slope),
    )


def _mean_credibility(test: Examples) -> FloatArray:
    """[E], NaN if no item of an entity has a credibility."""
    known = ~np.isnan(test.credibility)
    total = test.segments.sum(np.where(known, test.credibility, 0.0)[:, None])[:, 0]
    count = test.segments.sum(known.astype(np.float64)[:, None])[:, 0]
    unknown = np.full(len(total), np.nan)
    return np.asarray(np.divide(total, count, out=unknown, where=count > 0))
