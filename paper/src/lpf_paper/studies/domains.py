"""Seven domains, two presets: which method is best where, and how far from a perfect reader?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lpf.evaluation import Cell, standing_of, title_of
from lpf.metrics import Difference
from lpf_paper.exhibits import Figure, Series, StudyResult, Table
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.domains_tables import (
    DomainRuns,
    TestSet,
    against_table,
    cells_at,
    closing,
    cross_domain_table,
    far_table,
    finite_mean,
    gap_table,
    nll_table,
    pooled_table,
    study_name,
)
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.study_figures import with_points
from lpf_paper.studies.study_tables import comparisons


def domain_findings(plan: ExperimentPlan, fixed: DomainRuns, varying: DomainRuns) -> list[str]:
    sentences = (
        _standing(f"On the preset {fixed.preset}, with five items an entity,", fixed),
        _standing(f"On the preset {varying.preset}, with one to five items,", varying),
        _as_they_come(fixed),
        closing(plan, fixed),
        _calibrated(fixed),
    )
    return [sentence for sentence in sentences if sentence]


def _standing(where: str, runs: DomainRuns) -> str:
    ours = runs.nll("lpf_robust")
    if ours is None:
        return f"{where} the robust ensemble has no NLL that can be compared."
    begin = f"{where} the robust ensemble has an NLL of {ours:z.4f}"
    found = [
        (one.name, one.difference)
        for one in comparisons("lpf_robust", runs.by_method, runs.results)
        if one.difference is not None
    ]
    if not found:
        return f"{begin}; no other method could be compared with it."
    name, nearest = found[0]
    return (
        f"{begin}; the next method, {title_of(name)}, is {abs(nearest.mean):z.4f} "
        f"{_side(nearest)} (95 % interval {-nearest.high:z.4f} to {-nearest.low:z.4f})."
    )


def _side(difference: Difference) -> str:
    """Where the other method is; ``difference`` is ours minus the other's."""
    if difference.mean <= 0:
        return "above"
    return "below: it is better" if difference.low > 0 else "below, which may be chance"


def _as_they_come(runs: DomainRuns) -> str:
    """Methods that are worse with a temperature, which happens with few validation entities."""
    both = {
        method: (finite_mean(runs.summary(method), "raw_nll"), runs.nll(method))
        for method in runs.by_method
        if standing_of(method) != "reference"
    }
    hurt = {name: (raw, at) for name, (raw, at) in both.items() if raw and at and raw < at}
    ours = runs.nll("lpf_robust")
    if not hurt or ours is None:
        return ""
    listed = ", ".join(
        f"{title_of(name)} ({raw:z.4f} for {at:z.4f})" for name, (raw, at) in sorted(hurt.items())
    )
    below = [title_of(name) for name, (raw, _) in hurt.items() if raw < ours]
    return (
        f"With five items, without the fitted temperature a lower NLL have: {listed}. Below the "
        f"robust ensemble then: {', '.join(below) or 'none'}."
    )


def _calibrated(fixed: DomainRuns) -> str:
    cells = fixed.by_method["lpf_robust"]
    found = [fixed.results.summary([cell]).spreads.get("ece_p") for cell in cells]
    p_values = [one.mean for one in found if one is not None]
    if not p_values:
        return ""
    return (
        f"Its ECE differs beyond chance from that of a perfectly calibrated predictor in "
        f"{sum(p_value < 0.05 for p_value in p_values)} of {len(p_values)} data sets (at 5 %)."
    )


PRESET_WORDS = {
    "paper": "items err independently of each other",
    "hard": "items err together: borderline entities, copies, gaps, ageing notes",
}
CROSS_DOMAIN = ("lpf_robust", "lpf_paper_best", "lpf_learned", "vae_only")
SLOW_REFERENCES = ("lpf_robust", "vae_only_ensemble", "logistic_mean", "perfect_reader")
DRAWN = ("lpf_robust", "vae_only_ensemble", "lpf_paper", "lpf_learned", "perfect_reader")


@dataclass(frozen=True)
class DomainsStudy:
    """``preset`` is the generator's."""

    preset: str

    @property
    def name(self) -> str:
        return study_name(self.preset)

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        test_sets: tuple[TestSet, ...] = ("fixed", "varying")
        if self.preset == "paper":  # only the paper has a table of the data sets' own test entities
            test_sets = ("own", *test_sets)
        runs = [
            cells_at(plan, self.preset, test_set, plan.domain_methods) for test_set in test_sets
        ]
        runs.append(cells_at(plan, self.preset, "fixed", plan.slow_methods, first=True))
        return [cell for by_method in runs for cells in by_method.values() for cell in cells]

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        fixed, varying = self._runs(plan, "fixed", results), self._runs(plan, "varying", results)
        return StudyResult(
            self.name,
            f"{len(plan.domains)} domains, preset {self.preset}",
            f"Does the order of methods hold across domains where {PRESET_WORDS[self.preset]}?",
            tuple(domain_findings(plan, fixed, varying)),
            tuple(self._tables(plan, fixed, varying)),
            tuple(with_points([_nll_figure(plan, fixed)])),
        )

    def _runs(self, plan: ExperimentPlan, test_set: TestSet, results: ResultReader) -> DomainRuns:
        by_method = cells_at(plan, self.preset, test_set, plan.domain_methods)
        return DomainRuns(self.preset, test_set, by_method, results)

    def _tables(
        self, plan: ExperimentPlan, fixed: DomainRuns, varying: DomainRuns
    ) -> Iterator[Table]:
        yield from (pooled_table(plan, fixed), pooled_table(plan, varying))
        yield from (against_table(fixed), against_table(varying))
        yield from (nll_table(plan, fixed), gap_table(plan, fixed))
        if self.preset == "paper":
            yield cross_domain_table(plan, self._cross_domain(plan, fixed.results))
        if plan.slow_methods:
            yield far_table(plan, self._first(plan, fixed.results))

    def _cross_domain(self, plan: ExperimentPlan, results: ResultReader) -> DomainRuns:
        shown = [method for method in CROSS_DOMAIN if method in plan.domain_methods]
        return DomainRuns(self.preset, "own", cells_at(plan, self.preset, "own", shown), results)

    def _first(self, plan: ExperimentPlan, results: ResultReader) -> DomainRuns:
        """Methods that ran on the first data set of each domain only, and the same runs of the
        methods to compare them with."""
        methods = (*plan.slow_methods, *SLOW_REFERENCES)
        by_method = cells_at(plan, self.preset, "fixed", methods, first=True)
        return DomainRuns(self.preset, "fixed", by_method, results)


def _nll_figure(plan: ExperimentPlan, fixed: DomainRuns) -> Figure:
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
        "Five items per entity; lower is better.",
        "bars",
        "",
        "NLL",
        series,
    )
