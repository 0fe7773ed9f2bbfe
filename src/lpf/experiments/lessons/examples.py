"""One lesson with features: who is learned from, and whoever is asked, each read once."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from lpf.baselines.interface import labelled
from lpf.experiments.cells import Exam, Lesson
from lpf.experiments.lessons.datasets import lesson_dataset
from lpf.experiments.lessons.exams import exam_dataset
from lpf.experiments.lessons.library import Library
from lpf.training import Examples


class LessonExamples:
    """Nothing is made or read before it is asked for."""

    def __init__(self, lesson: Lesson, library: Library) -> None:
        self.lesson, self.library = lesson, library
        self._exams: dict[Exam, Examples] = {}

    @property
    def examples(self) -> Examples:
        """Of all splits."""
        return self._data[0]

    @property
    def predicate(self) -> str:
        return self._data[1]

    @property
    def reader_id(self) -> str:
        return self.library.reader(self.examples.dataset).reader_id

    @cached_property
    def train(self) -> Examples:
        return self._part("train")

    @cached_property
    def validation(self) -> Examples:
        return self._part("validation")

    def exam(self, exam: Exam) -> Examples:
        if exam not in self._exams:
            self._exams[exam] = labelled(self._read(exam), self.predicate)
        return self._exams[exam]

    @cached_property
    def _data(self) -> tuple[Examples, str]:
        dataset, predicate = lesson_dataset(self.lesson)
        return self.library.examples(dataset), predicate

    def _part(self, split: str) -> Examples:
        found = self.examples.split(split)  # type: ignore[arg-type]
        assert found is not None  # lessons have every split
        return labelled(found, self.predicate)

    def _read(self, exam: Exam) -> Examples:
        made = exam_dataset(exam, self.examples.dataset, self.predicate)
        if exam.perturbation is None and exam.top_k is None:
            return self.library.examples(made)
        self.exam(replace(exam, perturbation=None, level=0.0, top_k=None))  # reads the most of it
        return self.library.altered(made)
