"""Seven domains, two presets: who is best where, and how far from a perfect reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import Figure, Series, StudyResult, Table
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.domains.findings import domain_findings
from lpf.experiments.studies.domains.gaps import gap_table
from lpf.experiments.studies.domains.runs import DomainRuns, Place, cells_at, study_name
from lpf.experiments.studies.domains.tables import (
    against_table,
    cross_domain_table,
    far_table,
    nll_table,
    pooled_table,
)
from lpf.experiments.studies.figures import with_points

PRESET_WORDS = {
    "paper": "items err independently of each other",
    "hard": "items err together: borderline entities, copies, gaps, ageing notes",
}
CROSS_DOMAIN = ("lpf_robust", "lpf_paper_best", "lpf_learned", "vae_only")
BESIDE_FAR = ("lpf_robust", "vae_only_ensemble", "logistic_mean", "perfect_reader")
DRAWN = ("lpf_robust", "vae_only_ensemble", "lpf_paper", "lpf_learned", "perfect_reader")


@dataclass(frozen=True)
class DomainsStudy:
    """``preset`` is that of the generator."""

    preset: str

    @property
    def name(self) -> str:
        return study_name(self.preset)

    def cells(self, plan: Plan) -> list[Cell]:
        places: tuple[Place, ...] = ("fixed", "varying")
        if self.preset == "paper":  # only its table is of the data sets' own test entities
            places = ("own", *places)
        runs = [cells_at(plan, self.preset, place, plan.domain_methods) for place in places]
        runs.append(cells_at(plan, self.preset, "fixed", plan.far_methods, first=True))
        return [cell for by_method in runs for cells in by_method.values() for cell in cells]

    def result(self, plan: Plan, book: Book) -> StudyResult:
        fixed, varying = self._runs(plan, "fixed", book), self._runs(plan, "varying", book)
        return StudyResult(
            self.name,
            f"{len(plan.domains)} domains, preset {self.preset}",
            f"Does the order of methods hold across domains where {PRESET_WORDS[self.preset]}?",
            tuple(domain_findings(plan, fixed, varying)),
            tuple(self._tables(plan, fixed, varying)),
            tuple(with_points([_nll_figure(plan, fixed)])),
        )

    def _runs(self, plan: Plan, place: Place, book: Book) -> DomainRuns:
        by_method = cells_at(plan, self.preset, place, plan.domain_methods)
        return DomainRuns(self.preset, place, by_method, book)

    def _tables(self, plan: Plan, fixed: DomainRuns, varying: DomainRuns) -> Iterator[Table]:
        yield from (pooled_table(plan, fixed), pooled_table(plan, varying))
        yield from (against_table(fixed), against_table(varying))
        yield from (nll_table(plan, fixed), gap_table(plan, fixed))
        if self.preset == "paper":
            yield cross_domain_table(plan, self._cross_domain(plan, fixed.book))
        if plan.far_methods:
            yield far_table(plan, self._first(plan, fixed.book))

    def _cross_domain(self, plan: Plan, book: Book) -> DomainRuns:
        shown = [method for method in CROSS_DOMAIN if method in plan.domain_methods]
        return DomainRuns(self.preset, "own", cells_at(plan, self.preset, "own", shown), book)

    def _first(self, plan: Plan, book: Book) -> DomainRuns:
        """Methods that were run on the first data set of each domain; beside them, the same runs
        of those that matter."""
        methods = (*plan.far_methods, *BESIDE_FAR)
        by_method = cells_at(plan, self.preset, "fixed", methods, first=True)
        return DomainRuns(self.preset, "fixed", by_method, book)


def _nll_figure(plan: Plan, fixed: DomainRuns) -> Figure:
    series = tuple(
        Series(
            title_of(method),
            plan.domains,
            tuple(fixed.nll(method, domain) for domain in plan.domains),
            standing=standing_of(method),
        )
        for method in DRAWN
        if method in fixed.by_method
    )
    return Figure(
        f"{fixed.study}_nll",
        "NLL by domain",
        "Five items an entity; lower is better.",
        "bars",
        "",
        "NLL",
        series,
    )
