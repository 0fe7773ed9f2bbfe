"""Seven domains, two presets: who is best where, and how far from a perfect reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lpf.experiments.cells import Cell, DomainData, Exam, Lesson
from lpf.experiments.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.plan import Plan
from lpf.experiments.printed import printed_table
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.tables import (
    comparison_table,
    comparisons,
    method_table,
    printed_value,
)

TEST_SEED, VARYING_SEED = 1000, 2000
MEASURES = ("nll", "accuracy", "macro_f1", "brier", "ece", "ece_null", "ece_p", "aurc")
PRESET_WORDS = {
    "paper": "items err independently of each other",
    "hard": "items err together: borderline entities, copies, gaps, ageing notes",
}

Runs = Mapping[str, list[Cell]]


@dataclass(frozen=True)
class DomainsStudy:
    """``preset`` is that of the generator."""

    preset: str

    @property
    def name(self) -> str:
        return f"domains_{self.preset}"

    def cells(self, plan: Plan) -> list[Cell]:
        places = ("own", "fixed", "varying")
        return [
            cell
            for place in places
            for method in plan.domain_methods
            for cell in self._cells(plan, method, place)
        ] + [
            cell
            for method in plan.far_methods
            for cell in self._cells(plan, method, "fixed", first=True)
        ]

    def result(self, plan: Plan, book: Book) -> StudyResult:
        fixed, varying = (
            {method: self._cells(plan, method, place) for method in plan.domain_methods}
            for place in ("fixed", "varying")
        )
        tables = [
            self._pooled(plan, "fixed", fixed, book),
            self._pooled(plan, "varying", varying, book),
        ]
        tables += [self._against(fixed, "", book), self._against(varying, "_varying", book)]
        tables += [self._by_domain(plan, fixed, book), self._gaps(plan, fixed, book)]
        if self.preset == "paper":
            tables.append(self._cross_domain(plan, book))
        if plan.far_methods:
            tables.append(self._far(plan, book))
        return StudyResult(
            self.name,
            f"{len(plan.domains)} domains, preset {self.preset}",
            f"Does the order of methods hold across domains where {PRESET_WORDS[self.preset]}?",
            tuple(self._findings(plan, fixed, varying, book)),
            tuple(tables),
            (self._nll_figure(plan, fixed, book),),
        )

    def _seeds(self, plan: Plan) -> tuple[int, ...]:
        return plan.data_seeds if self.preset == "paper" else plan.hard_seeds

    def _cells(self, plan: Plan, method: str, place: str, first: bool = False) -> list[Cell]:
        """Domain by domain, data set by data set, or the first data sets only."""
        seeds = self._seeds(plan)[:1] if first else self._seeds(plan)
        return [
            self._cell(plan, method, domain, seed, place)
            for domain in plan.domains
            for seed in seeds
        ]

    def _cell(self, plan: Plan, method: str, domain: str, seed: int, place: str) -> Cell:
        lesson = Lesson(DomainData(domain, self.preset, seed), seed=seed, seeds=plan.training_seeds)
        return Cell(lesson, self._exam(plan, domain, place), method)

    def _exam(self, plan: Plan, domain: str, place: str) -> Exam:
        if place == "own":
            return Exam()
        if place == "fixed":
            return Exam(DomainData(domain, self.preset, TEST_SEED), plan.asked)
        varied = DomainData(domain, self.preset, VARYING_SEED, ("items_min=1",))
        return Exam(varied, plan.asked // 2)

    def _pooled(self, plan: Plan, place: str, runs: Runs, book: Book) -> Table:
        entities = plan.asked if place == "fixed" else plan.asked // 2
        items = "five items each" if place == "fixed" else "one to five items each"
        return method_table(
            f"{self.name}_{place}",
            f"All domains together, {items}",
            f"Means over {len(plan.domains)} domains with {len(self._seeds(plan))} data sets of "
            f"630 training entities each; {entities:,} test entities a domain, in wordings that "
            "no training saw. A temperature for everyone, by the number of items where it varies.",
            runs,
            MEASURES,
            book,
        )

    def _against(self, runs: Runs, suffix: str, book: Book) -> Table:
        return comparison_table(
            f"{self.name}_against{suffix}",
            "Paired by entity and data set; below 0 the ensemble is better. Intervals of 95 % over "
            "data sets and entities together, p-values corrected for the number of methods.",
            "lpf_robust",
            runs,
            book,
        )

    def _by_domain(self, plan: Plan, runs: Runs, book: Book) -> Table:
        columns = tuple(Column(domain, domain, "number", "lower", 4) for domain in plan.domains)
        rows = []
        for method, cells in runs.items():
            values = [
                book.summary(cells_of(domain, cells)).spreads.get("nll") for domain in plan.domains
            ]
            shown = tuple(None if one is None else one.value() for one in values)
            rows.append(Row(method, title_of(method), shown, standing_of(method)))
        rows.sort(key=_mean_of_row)
        return Table(
            f"{self.name}_nll",
            "NLL by domain",
            "Mean and sd over data sets, five items an entity.",
            columns,
            tuple(rows),
        )

    def _gaps(self, plan: Plan, runs: Runs, book: Book) -> Table:
        """How much of the way from the paper's model to the perfect reader is gone."""
        columns = (
            Column("accuracy", "Accuracy", "share", None, 4),
            Column("nll", "NLL", "number", None, 4),
            Column("paper", "Paper mode + T", "number", None, 4),
            Column("perfect", "Perfect reader", "number", None, 4),
            Column("closed", "Gap closed", "share", None, 3),
            Column("ece", "ECE", "share", None, 4),
            Column("ece_null", "ECE if perfect", "share", None, 4),
        )
        rows = [self._gap_row(domain, runs, book) for domain in plan.domains]
        return Table(
            f"{self.name}_gap",
            "The robust ensemble between the paper's model and a perfect reader",
            "A perfect reader knows what the generator meant by every text, but no more.",
            columns,
            tuple(rows),
        )

    def _gap_row(self, domain: str, runs: Runs, book: Book) -> Row:
        ours, paper, perfect = (
            book.summary(cells_of(domain, runs[method])).spreads
            for method in ("lpf_robust", "lpf_paper", "perfect_reader")
        )
        cells = (
            ours["accuracy"].value(),
            ours["nll"].value(),
            Value(paper["nll"].mean),
            Value(perfect["nll"].mean),
            Value(closed(ours["nll"].mean, paper["nll"].mean, perfect["nll"].mean)),
            ours["ece"].value(),
            Value(ours["ece_null"].mean),
        )
        return Row(domain, domain, cells)

    def _cross_domain(self, plan: Plan, book: Book) -> Table:
        """On the 135 test entities of each data set, as the paper does."""
        beside = printed_table("cross_domain")
        methods = ("lpf_robust", "lpf_paper_best", "lpf_learned", "vae_only")
        shown = [method for method in methods if method in plan.domain_methods]
        columns = tuple(Column(one, title_of(one), "share", "higher", 4) for one in shown)
        rows = []
        for domain in plan.domains:
            cells: list[Value | None] = []
            for method in shown:
                asked = cells_of(domain, self._cells(plan, method, "own"))
                paper, doubt = printed_value(beside, domain, method)
                cells.append(book.summary(asked).spreads["accuracy"].value(paper, doubt))
            rows.append(Row(domain, domain, tuple(cells)))
        return Table(
            "cross_domain",
            "Accuracy on each data set's own 135 test entities",
            "Mean and sd over data sets. The paper has one data set a domain and reports the best "
            "of seven seeds by its test accuracy.",
            columns,
            tuple(rows),
        )

    def _far(self, plan: Plan, book: Book) -> Table:
        """Methods that were run on the first data set of each domain; beside them, the same runs
        of those that matter."""
        beside = ("lpf_robust", "vae_only_ensemble", "logistic_mean", "perfect_reader")
        runs = {
            method: self._cells(plan, method, "fixed", first=True)
            for method in (*plan.far_methods, *beside)
        }
        return method_table(
            f"{self.name}_far",
            "Those that are slow to train, on the first data set of each domain",
            f"{len(plan.domains)} runs a method, five items an entity. Training on one core.",
            runs,
            (*MEASURES, "fit_seconds"),
            book,
        )

    def _nll_figure(self, plan: Plan, runs: Runs, book: Book) -> Figure:
        methods = [
            method
            for method in (
                "lpf_robust",
                "vae_only_ensemble",
                "lpf_paper",
                "lpf_learned",
                "perfect_reader",
            )
            if method in runs
        ]
        series = tuple(
            Series(
                title_of(method),
                plan.domains,
                tuple(
                    book.summary(cells_of(domain, runs[method])).spreads["nll"].mean
                    for domain in plan.domains
                ),
                standing=standing_of(method),
            )
            for method in methods
        )
        return Figure(
            f"{self.name}_nll",
            "NLL by domain",
            "Five items an entity; lower is better.",
            "bars",
            "",
            "NLL",
            series,
        )

    def _findings(self, plan: Plan, fixed: Runs, varying: Runs, book: Book) -> list[str]:
        sentences = [
            _standing(f"On the preset {self.preset}, with five items an entity,", fixed, book),
            _standing(f"On the preset {self.preset}, with one to five items,", varying, book),
        ]
        ours, paper, perfect = (
            book.summary(fixed[method]).spreads["nll"].mean
            for method in ("lpf_robust", "lpf_paper", "perfect_reader")
        )
        shares = [
            closed(
                *(
                    book.summary(cells_of(domain, fixed[method])).spreads["nll"].mean
                    for method in ("lpf_robust", "lpf_paper", "perfect_reader")
                )
            )
            for domain in plan.domains
        ]
        sentences.append(
            f"The ensemble closes {closed(ours, paper, perfect):.0%} of the gap between the "
            f"paper's model with a fitted temperature and a perfect reader; by domain "
            f"{min(shares):.0%} to {max(shares):.0%}."
        )
        told = [book.answered(cell) for cell in fixed["lpf_robust"]]
        p_values = [book.summary([cell]).spreads["ece_p"].mean for cell in fixed["lpf_robust"]]
        sentences.append(
            f"Its ECE can be told from that of a perfectly calibrated predictor in "
            f"{sum(np.array(p_values) < 0.05)} of {len(told)} data sets (at 5 %)."
        )
        return sentences


def cells_of(domain: str, cells: list[Cell]) -> list[Cell]:
    return [
        cell
        for cell in cells
        if isinstance(cell.lesson.data, DomainData) and cell.lesson.data.domain == domain
    ]


def closed(ours: float, paper: float, perfect: float) -> float:
    return (paper - ours) / (paper - perfect)


def _standing(where: str, runs: Runs, book: Book) -> str:
    found = [one for one in comparisons("lpf_robust", runs, book) if one.difference is not None]
    nearest = found[0]
    assert nearest.difference is not None  # just asked for
    mean, low, high = (
        -nearest.difference.mean,
        -nearest.difference.high,
        -nearest.difference.low,
    )
    ours = book.summary(runs["lpf_robust"]).spreads["nll"].mean
    word = "above" if mean >= 0 else "below: it is better"
    return (
        f"{where} the robust ensemble has an NLL of {ours:.4f}; the next method, "
        f"{title_of(nearest.name)}, is {abs(mean):.4f} {word} (95 % interval {low:.4f} to "
        f"{high:.4f})."
    )


def _mean_of_row(row: Row) -> tuple[bool, float]:
    values = [
        cell.value for cell in row.cells if isinstance(cell, Value) and cell.value is not None
    ]
    return row.standing == "reference", float(np.mean(values)) if values else np.inf
