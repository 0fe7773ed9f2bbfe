"""All cells of one lesson: data read once, models trained once, each method fitted once."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter

import numpy as np

from lpf.baselines import (
    FittedMethod,
    ItemModels,
    Method,
    Shared,
    Temperature,
    make_methods,
    with_temperature,
)
from lpf.baselines.averaging import FactorAverage
from lpf.baselines.interface import labelled
from lpf.datasets import Dataset
from lpf.errors import ArtefactError, ConfigError, EvidenceError, MissingPackageError
from lpf.experiments.answered import Answered, Costs
from lpf.experiments.cells import Cell, Exam, Lesson, Settings
from lpf.experiments.claim_only import CLAIM_ONLY, ClaimOnly
from lpf.experiments.footprint import stored_bytes
from lpf.experiments.lessons import Library, exam_dataset, flat, lesson_dataset
from lpf.experiments.models import ModelShelf, StudyModel
from lpf.experiments.own import OwnMethod, is_own
from lpf.experiments.variants import DEFAULT_ENSEMBLE, OPTIONS, LpfVariant, best_members
from lpf.metrics.checked import checked_probabilities
from lpf.spn import CompiledCircuit, Variable, compile_circuit, prior_circuit
from lpf.training import Examples
from lpf.types import FloatArray

# The temperature of these is among what they fit.
SELF_TEMPERED = ("lpf_robust", "lpf_robust_single")
# With the uniform P0 of the paper: a temperature after the fact would sharpen any other prior
# along with the rest.
FLAT_PRIOR = ("lpf_paper", "lpf_paper_best", "lpf_learned_published")
OVER_FACTORS = "vae_only"
OVER_ITEMS = (
    "deterministic_average",
    "deterministic_ensemble_average",
    "spn_only",
    "majority_vote",
    "confidence_vote",
    "stacking",
    "dawid_skene",
)
OVER_FOLDS = ("stacking", "dawid_skene")
NOT_THE_METHODS = (ArtefactError, MissingPackageError, OSError, MemoryError)
FIRST_NETWORK: Settings = (("member", 0),)
ASKED_SINGLY = 15
TEMPERING = 77


@dataclass
class _Fitted:
    method: FittedMethod
    seconds: float


class Workbench:
    """One lesson. ``folder`` keeps features and models."""

    def __init__(self, lesson: Lesson, folder: Path, threads: int = 1) -> None:
        self.lesson = lesson
        self.library = Library(folder / "features", threads)
        self.shelf = ModelShelf(folder / "models")
        # As wide a search as LPF's own.
        self._items = ItemModels(searched=len(lesson.seeds))
        self._fits: dict[tuple[str, Settings], _Fitted | Exception] = {}
        self._exams: dict[Exam, Examples] = {}
        self._temperatures: dict[tuple[str, Settings, bool], Temperature | EvidenceError] = {}

    def answered(self, cell: Cell) -> Answered:
        """What came of it. Whatever a method raises is its result, and is shown as such; what is
        wrong with the machine or the folder is nobody's, and ends the run."""
        asked = self.exam(cell.exam)
        try:
            return self._asked(cell, asked)
        except NOT_THE_METHODS:
            raise
        except Exception as error:
            return replace(self._unanswered(asked), error=_told(error))

    def exam(self, exam: Exam) -> Examples:
        if exam not in self._exams:
            self._exams[exam] = labelled(self._read(exam), self.predicate)
        return self._exams[exam]

    def _read(self, exam: Exam) -> Examples:
        made = exam_dataset(exam, self.examples.dataset, self.predicate)
        if exam.perturbation is None and exam.top_k is None:
            return self.library.examples(made)
        self.exam(replace(exam, perturbation=None, level=0.0, top_k=None))  # reads the most of it
        return self.library.altered(made)

    @cached_property
    def _data(self) -> tuple[Examples, str]:
        dataset, predicate = lesson_dataset(self.lesson)
        return self.library.examples(dataset), predicate

    @property
    def examples(self) -> Examples:
        return self._data[0]

    @property
    def predicate(self) -> str:
        return self._data[1]

    @cached_property
    def train(self) -> Examples:
        return self._part("train")

    @cached_property
    def validation(self) -> Examples:
        return self._part("validation")

    @cached_property
    def model(self) -> StudyModel:
        return self._trained(published=False)

    @cached_property
    def published(self) -> StudyModel:
        return self._trained(published=True)

    def shared(self, name: str) -> Shared:
        """What the method shares with others; no model for those that do without, which would be
        trained for nothing. The one trained to the letter is left to variants."""
        if not name.startswith(OVER_FACTORS):
            return Shared(items=self._items)
        return Shared(best_members(self.model.runtime, DEFAULT_ENSEMBLE), items=self._items)

    def fitted(self, name: str, settings: Settings = ()) -> FittedMethod:
        return self._fit(name, settings).method

    def _part(self, split: str) -> Examples:
        found = self.examples.split(split)  # type: ignore[arg-type]
        assert found is not None  # lessons have every split
        return labelled(found, self.predicate)

    def _trained(self, published: bool) -> StudyModel:
        reader = self.library.reader(self.examples.dataset)
        return self.shelf.model(
            self.lesson, self.examples, reader.reader_id, self.predicate, published
        )

    def _asked(self, cell: Cell, asked: Examples) -> Answered:
        fit = self._fit(cell.method, cell.settings)
        begin = perf_counter()
        raw = checked_probabilities(fit.method.predict_proba(asked))
        rate = len(asked.dataset) / (perf_counter() - begin)
        temperature = self._temperature(cell, fit.method, asked)
        costs, unmeasured = self._costs(cell, fit, asked, rate)
        notes = [] if unmeasured is None else [unmeasured]
        tempered = raw
        if isinstance(temperature, EvidenceError):
            notes.append(f"without a temperature: {temperature}")
            temperature = None
        elif temperature is not None:
            tempered = checked_probabilities(temperature.apply(raw, asked.segments.counts))
        return replace(
            self._unanswered(asked),
            raw=raw,
            tempered=tempered,
            temperature=None if temperature is None else (temperature.intercept, temperature.slope),
            costs=costs,
            note="; ".join(notes) or None,
        )

    def _fit(self, name: str, settings: Settings) -> _Fitted:
        key = (name, settings)
        if key not in self._fits:
            self._fits[key] = self._newly_fitted(name, settings)
        found = self._fits[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _newly_fitted(self, name: str, settings: Settings) -> _Fitted | Exception:
        try:
            method = self._method(name, dict(settings))
            shared = self._shared_seconds(name)  # trains what is shared, so before the clock
            begin = perf_counter()
            fitted = method.fit(self.train, self.validation, self.predicate, self.lesson.seed)
            return _Fitted(fitted, perf_counter() - begin + shared)
        except NOT_THE_METHODS:
            raise
        except Exception as error:  # remembered, or the next exam would train it again
            return error

    def _method(self, name: str, settings: Mapping[str, bool | int | float | str]) -> Method:
        circuit = self._flat_circuit if name in FLAT_PRIOR else None
        if is_own(name):
            return OwnMethod(name)
        if name == "vae_only" and settings.keys() == {"member"}:
            return FactorAverage(name, self.model.runtime.member(int(settings["member"])))
        if settings and name not in OPTIONS:
            raise ConfigError(f"{name}: cannot be changed, got {sorted(settings)}.")
        if name == CLAIM_ONLY:
            return ClaimOnly(name, self.library)
        if name in OPTIONS:
            published = name == "lpf_learned_published"
            model = (self.published if published else self.model).runtime
            return LpfVariant(name, model, settings, circuit)
        return make_methods(self.shared(name), [name])[0]

    def _shared_seconds(self, name: str) -> float:
        """The training of networks, which several methods share, is charged to each."""
        if name == "lpf_learned_published":
            return self.published.seconds
        if name in OPTIONS or name.startswith(OVER_FACTORS):
            return self.model.seconds
        classified = self._item_seconds if name in OVER_ITEMS else 0.0
        return classified + (self._fold_seconds if name in OVER_FOLDS else 0.0)

    @cached_property
    def _item_seconds(self) -> float:
        return self._timed(self._items.model)

    @cached_property
    def _fold_seconds(self) -> float:
        return self._timed(self._items.out_of_fold)

    def _timed(self, training: Callable[[Examples, Examples, str, int], object]) -> float:
        begin = perf_counter()
        training(self.train, self.validation, self.predicate, self.lesson.seed)
        return perf_counter() - begin

    @cached_property
    def _flat_circuit(self) -> CompiledCircuit:
        schema = flat(self.examples.dataset.schema)
        variables = [Variable(one.name, one.values) for one in schema]
        return compile_circuit(prior_circuit(variables, {one.name: one.prior for one in schema}))

    def _temperature(
        self, cell: Cell, fitted: FittedMethod, asked: Examples
    ) -> Temperature | EvidenceError | None:
        if _keeps_its_own(cell.method):
            return None
        varying = self._is_by_count(asked)
        key = (cell.method, cell.settings, varying)
        if key not in self._temperatures:
            self._temperatures[key] = self._fitted_temperature(fitted, varying)
        return self._temperatures[key]

    def _fitted_temperature(
        self, fitted: FittedMethod, varying: bool
    ) -> Temperature | EvidenceError:
        """The error of a method that rules out what is true: its answers stand without one."""
        generator = np.random.default_rng([self.lesson.seed, TEMPERING])
        try:
            return with_temperature(
                fitted,
                self.validation,
                self.predicate,
                generator=generator,
                by_count=varying or None,
            ).temperature
        except EvidenceError as error:
            return error

    def _is_by_count(self, asked: Examples) -> bool:
        """Unless everybody, asked or validated on, has as many items as the next: a temperature
        fitted at five items is not that of nine."""
        counts = np.concatenate([asked.segments.counts, self.validation.segments.counts])
        return len(np.unique(counts)) > 1

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

    def _costs(
        self, cell: Cell, fit: _Fitted, asked: Examples, rate: float
    ) -> tuple[Costs, str | None]:
        """Single questions and memory are measured where nothing was done to the evidence, and of
        networks that stand for each other once. The text says why they could not be."""
        changed = cell.settings not in ((), FIRST_NETWORK) and not is_own(cell.method)
        if cell.exam.perturbation is not None or changed:
            return Costs(fit_seconds=fit.seconds, per_second=rate), None
        costs = Costs(fit.seconds, None, rate, stored_bytes(fit.method))
        try:
            single, peak = _median_ms(fit.method, asked), _peak_bytes(fit.method, asked)
        except NOT_THE_METHODS:
            raise
        except Exception as error:  # it has answered all; its answers stand
            return costs, f"cannot be asked about one entity alone: {_told(error)}"
        return replace(costs, query_ms=single, peak_bytes=peak), None


def _keeps_its_own(name: str) -> bool:
    """Its own temperature, or none: references are shown as they are."""
    return name in (*SELF_TEMPERED, "prior", "perfect_reader", "oracle")


def _mean_credibility(asked: Examples) -> FloatArray:
    known = ~np.isnan(asked.credibility)
    total = asked.segments.sum(np.where(known, asked.credibility, 0.0)[:, None])[:, 0]
    count = asked.segments.sum(known.astype(np.float64)[:, None])[:, 0]
    unknown = np.full(len(total), np.nan)
    return np.asarray(np.divide(total, count, out=unknown, where=count > 0))


def _median_ms(method: FittedMethod, asked: Examples) -> float:
    times = []
    for place in range(min(ASKED_SINGLY, len(asked.dataset))):
        one = asked.select(np.array([place]))
        begin = perf_counter()
        method.predict_proba(one)
        times.append(perf_counter() - begin)
    return float(np.median(times)) * 1e3


def _peak_bytes(method: FittedMethod, asked: Examples) -> int:
    """Of Python and NumPy; what torch holds outside is not seen."""
    tracemalloc.start()
    try:
        method.predict_proba(asked)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
