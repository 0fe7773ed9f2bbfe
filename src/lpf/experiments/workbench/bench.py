"""All cells of one lesson: data read once, models trained once, each method fitted once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from lpf.baselines import FittedMethod, Temperature
from lpf.datasets import Dataset
from lpf.errors import EvidenceError
from lpf.experiments.answered import Answered
from lpf.experiments.cells import Cell, Exam, Lesson, Settings
from lpf.experiments.lessons.examples import LessonExamples
from lpf.experiments.lessons.library import Library
from lpf.experiments.workbench.fitted_methods import NOT_THE_METHODS, FittedMethods, told
from lpf.experiments.workbench.method_costs import method_costs
from lpf.experiments.workbench.models import ModelShelf, StudyModel
from lpf.experiments.workbench.shared_models import SharedModels
from lpf.experiments.workbench.temperatures import Temperatures
from lpf.metrics.checked import checked_probabilities
from lpf.training import Examples
from lpf.types import FloatArray


class Workbench:
    """One lesson. ``folder`` keeps features and models."""

    def __init__(self, lesson: Lesson, folder: Path, threads: int = 1) -> None:
        self.lesson = lesson
        self.library = Library(folder / "features", threads)
        self.shelf = ModelShelf(folder / "models")
        self._data = LessonExamples(lesson, self.library)
        self._models = SharedModels(self._data, self.shelf)
        self._methods = FittedMethods(self._data, self._models)
        self._temperatures = Temperatures(self._data)

    def answered(self, cell: Cell) -> Answered:
        """What came of it. Whatever a method raises is its result, and is shown as such; what is
        wrong with the machine or the folder is nobody's, and ends the run."""
        asked = self.exam(cell.exam)
        try:
            return self._asked(cell, asked)
        except NOT_THE_METHODS:
            raise
        except Exception as error:
            return replace(self._unanswered(asked), error=told(error))

    def exam(self, exam: Exam) -> Examples:
        return self._data.exam(exam)

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

    def _asked(self, cell: Cell, asked: Examples) -> Answered:
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

    def _unanswered(self, asked: Examples) -> Answered:
        dataset = asked.dataset
        return Answered(
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
        protected = getattr(self.lesson.data, "protected", None)
        if protected is None:
            return ()
        found = (entity.fields.get(protected) for entity in dataset)
        return tuple(None if value is None else str(value) for value in found)


def _at_temperature(
    unanswered: Answered, raw: FloatArray, temperature: Temperature | None
) -> Answered:
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
