"""The temperature that a method's answers get on top, fitted on the validation entities."""

from __future__ import annotations

import numpy as np

from lpf.baselines import FittedMethod, Temperature, with_temperature
from lpf.errors import EvidenceError
from lpf.experiments.cells import Cell, Settings
from lpf.experiments.lessons.examples import LessonExamples
from lpf.training import Examples

# The temperature of these is among what they fit.
SELF_TEMPERED = ("lpf_robust", "lpf_chosen", "lpf_robust_single")
TEMPERING = 77


class Temperatures:
    """Of one lesson; each is fitted once."""

    def __init__(self, learned: LessonExamples) -> None:
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
                generator=np.random.default_rng([learned.lesson.seed, TEMPERING]),
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
