"""The cells of the study of domains, and what their runs say of each domain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from lpf.experiments.cells import Cell, DomainData, Exam, Lesson
from lpf.experiments.judging.summaries import Summary
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book, Runs

# Of the large test sets, apart from those of data sets.
TEST_SEED, VARYING_SEED = 1000, 2000
# Which entities are asked about: the data set's own, or new ones with five or one to five items.
Place = Literal["own", "fixed", "varying"]


@dataclass(frozen=True)
class DomainRuns:
    """All methods on a preset at one place, and the book that has their answers."""

    preset: str
    place: Place
    by_method: Runs
    book: Book

    @property
    def study(self) -> str:
        return study_name(self.preset)

    @property
    def items(self) -> str:
        return "one to five items each" if self.place == "varying" else "five items each"

    def summary(self, method: str, domain: str | None = None) -> Summary:
        """Over all domains where none is named."""
        cells = self.by_method[method]
        if domain is not None:
            cells = [cell for cell in cells if _domain_of(cell) == domain]
        return self.book.summary(cells)

    def nll(self, method: str, domain: str | None = None) -> float | None:
        return finite_mean(self.summary(method, domain), "nll")


def study_name(preset: str) -> str:
    return f"domains_{preset}"


def finite_mean(summary: Summary, measure: str) -> float | None:
    """None where every run crashed, or a loss is infinite."""
    spread = summary.spreads.get(measure)
    return spread.mean if spread is not None and isfinite(spread.mean) else None


def cells_at(
    plan: Plan, preset: str, place: Place, methods: Iterable[str], *, first: bool = False
) -> dict[str, list[Cell]]:
    """The cells of each method, domain by domain, data set by data set, or on the first data sets
    only."""
    seeds = data_seeds(plan, preset)[:1] if first else data_seeds(plan, preset)
    return {
        method: [
            _cell(plan, preset, method, domain, seed, place)
            for domain in plan.domains
            for seed in seeds
        ]
        for method in methods
    }


def data_seeds(plan: Plan, preset: str) -> tuple[int, ...]:
    return plan.data_seeds if preset == "paper" else plan.hard_seeds


def exam_at(plan: Plan, preset: str, domain: str, place: Place) -> Exam:
    if place == "own":
        return Exam()
    if place == "fixed":
        return Exam(DomainData(domain, preset, TEST_SEED), plan.asked)
    varied = DomainData(domain, preset, VARYING_SEED, ("items_min=1",))
    return Exam(varied, plan.asked // 2)


def domain_lesson(plan: Plan, domain: str, seed: int, preset: str = "paper") -> Lesson:
    """Other studies learn from it too, and share its networks."""
    return Lesson(DomainData(domain, preset, seed), seed=seed, seeds=plan.training_seeds)


def _cell(plan: Plan, preset: str, method: str, domain: str, seed: int, place: Place) -> Cell:
    lesson = domain_lesson(plan, domain, seed, preset)
    return Cell(lesson, exam_at(plan, preset, domain, place), method)


def _domain_of(cell: Cell) -> str | None:
    return cell.lesson.data.domain if isinstance(cell.lesson.data, DomainData) else None
