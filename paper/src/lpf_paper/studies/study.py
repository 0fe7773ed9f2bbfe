"""The interface of a study, and the reader of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lpf.evaluation import Cell, ModelCache, Predictions, ResultStore, Summary, summarise
from lpf_paper.exhibits import StudyResult
from lpf_paper.plan import ExperimentPlan

Runs = Mapping[str, Sequence[Cell]]  # by method


@dataclass(frozen=True)
class ResultReader:
    """Stored results of cells; each is read and summarised once."""

    folder: Path
    _answers: dict[Cell, Predictions] = field(default_factory=dict)
    _summaries: dict[tuple[Cell, ...], Summary] = field(default_factory=dict)

    def answered(self, cell: Cell) -> Predictions:
        if cell not in self._answers:
            self._answers[cell] = ResultStore(self.folder).load(cell)
        return self._answers[cell]

    def runs(self, cells: Sequence[Cell]) -> list[Predictions]:
        return [self.answered(cell) for cell in cells]

    def summary(self, cells: Sequence[Cell]) -> Summary:
        key = tuple(cells)
        if key not in self._summaries:
            self._summaries[key] = summarise(self.runs(cells))
        return self._summaries[key]

    @property
    def models(self) -> ModelCache:
        return ModelCache(self.folder / "models")


class Study(Protocol):
    """``cells`` must be run first; ``result`` is called when all their results are stored."""

    @property
    def name(self) -> str: ...

    def cells(self, plan: ExperimentPlan) -> list[Cell]: ...

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult: ...
