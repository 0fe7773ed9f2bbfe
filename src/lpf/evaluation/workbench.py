"""All cells of one train_spec: data read once, models trained once, each method fitted once.

The temperature that a method's answers get on top, fitted on the validation entities.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from lpf.baselines import FittedMethod, Temperature, with_temperature
from lpf.datasets import Dataset
from lpf.errors import EvidenceError
from lpf.evaluation.feature_cache import FeatureCache, SpecExamples
from lpf.evaluation.fitted_methods import NOT_THE_METHODS, FittedMethods, told
from lpf.evaluation.method_costs import method_costs
from lpf.evaluation.model_cache import ModelCache, SharedModels, StudyModel
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.specs import Cell, EvalSpec, Settings, TrainSpec
from lpf.metrics.scores import checked_probabilities
from lpf.training import Examples
from lpf.types import FloatArray

# The temperature of these is among what they fit.
SELF_TEMPERED = ("lpf_robust", "lpf_chosen", "lpf_robust_single")
TEMPERING = 77


class Temperatures:
    """Of one train_spec; each is fitted once."""

    def __init__(self, learned: SpecExamples) -> None:
        self.learned = learned
        self._known: dict[tuple[str, Settings, bool], Temperature | EvidenceError] = {}

    def temperature(
        self, cell: Cell, fitted: FittedMethod, asked: Examples
    ) -> Temperature | EvidenceError | None:
        """None for a method that is to have none on top."""
        if _keeps_its_own(cell.method):
            return None
        varying = self._is_by_count(asked)
        key = (cell.method, cell.settings, varying)
        if key not in self._known:
            self._known[key] = self._newly_fitted(fitted, varying)
        return self._known[key]

    def _newly_fitted(self, fitted: FittedMethod, varying: bool) -> Temperature | EvidenceError:
        """The error of a method that rules out what is true: its answers stand without one."""
        learned = self.learned
        try:
            return with_temperature(
                fitted,
                learned.validation,
                learned.predicate,
                generator=np.random.default_rng([learned.train_spec.seed, TEMPERING]),
                by_count=varying or None,
            ).temperature
        except EvidenceError as error:
            return error

    def _is_by_count(self, asked: Examples) -> bool:
        """Unless everybody, asked or validated on, has as many items as the next: a temperature
        fitted at five items is not that of nine."""
        validation = self.learned.validation
        counts = np.concatenate([asked.segments.counts, validation.segments.counts])
        return len(np.unique(counts)) > 1


def _keeps_its_own(name: str) -> bool:
    """Its own temperature, or none: references are shown as they are."""
    return name in (*SELF_TEMPERED, "prior", "perfect_reader", "oracle")


class Workbench:
    """One train_spec. ``folder`` keeps features and models."""

    def __init__(self, train_spec: TrainSpec, folder: Path, threads: int = 1) -> None:
        self.train_spec = train_spec
        self.feature_cache = FeatureCache(folder / "features", threads)
        self.model_cache = ModelCache(folder / "models")
        self._data = SpecExamples(train_spec, self.feature_cache)
        self._models = SharedModels(self._data, self.model_cache)
        self._methods = FittedMethods(self._data, self._models)
        self._temperatures = Temperatures(self._data)

    def predict(self, cell: Cell) -> Predictions:
        """What came of it. Whatever a method raises is its result, and is shown as such; what is
        wrong with the machine or the folder is nobody's, and ends the run."""
        asked = self.test_examples(cell.eval_spec)
        try:
            return self._asked(cell, asked)
        except NOT_THE_METHODS:
            raise
        except Exception as error:
            return replace(self._unanswered(asked), error=told(error))

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

    def _asked(self, cell: Cell, asked: Examples) -> Predictions:
        fit = self._methods.fit(cell.method, cell.settings)
        begin = perf_counter()
        raw = checked_probabilities(fit.method.predict_proba(asked))
        rate = len(asked.dataset) / (perf_counter() - begin)
        temperature = self._temperatures.temperature(cell, fit.method, asked)
        costs, unmeasured = method_costs(cell, fit, asked, rate)
        notes = [] if unmeasured is None else [unmeasured]
        if isinstance(temperature, EvidenceError):
            notes.append(f"without a temperature: {temperature}")
            temperature = None
        return replace(
            _at_temperature(self._unanswered(asked), raw, temperature),
            costs=costs,
            note="; ".join(notes) or None,
        )

    def _unanswered(self, asked: Examples) -> Predictions:
        dataset = asked.dataset
        return Predictions(
            None,
            None,
            dataset.labels(self.predicate),
            asked.segments.counts,
            _mean_credibility(asked),
            tuple(entity.entity_id for entity in dataset),
            dataset.schema[self.predicate].values,
            self._groups(dataset),
        )

    def _groups(self, dataset: Dataset) -> tuple[str | None, ...]:
        protected = getattr(self.train_spec.data, "protected", None)
        if protected is None:
            return ()
        found = (entity.fields.get(protected) for entity in dataset)
        return tuple(None if value is None else str(value) for value in found)


def _at_temperature(
    unanswered: Predictions, raw: FloatArray, temperature: Temperature | None
) -> Predictions:
    if temperature is None:
        return replace(unanswered, raw=raw, tempered=raw)
    return replace(
        unanswered,
        raw=raw,
        tempered=checked_probabilities(temperature.apply(raw, unanswered.counts)),
        temperature=(temperature.intercept, temperature.slope),
    )


def _mean_credibility(asked: Examples) -> FloatArray:
    known = ~np.isnan(asked.credibility)
    total = asked.segments.sum(np.where(known, asked.credibility, 0.0)[:, None])[:, 0]
    count = asked.segments.sum(known.astype(np.float64)[:, None])[:, 0]
    unknown = np.full(len(total), np.nan)
    return np.asarray(np.divide(total, count, out=unknown, where=count > 0))
