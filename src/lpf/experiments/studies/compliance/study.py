"""Compliance, all methods: the paper's main, seed, confidence, runtime and error tables."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.experiments.cells import Cell, Exam
from lpf.experiments.exhibits import Figure, StudyResult, Table
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book, Runs
from lpf.experiments.studies.compliance.cells import REFERENCES, large_exam, main_runs
from lpf.experiments.studies.compliance.collapse import COLLAPSED
from lpf.experiments.studies.compliance.confusions import confusion_table
from lpf.experiments.studies.compliance.findings import main_findings
from lpf.experiments.studies.compliance.seed_search import seeds_table, training_figures
from lpf.experiments.studies.compliance.seed_stats import seed_stats_table
from lpf.experiments.studies.compliance.tables import (
    against_table,
    confidence_table,
    costs_table,
    large_table,
    more_table,
    parts_tables,
    small_table,
)
from lpf.experiments.studies.figures import (
    bar_figure,
    confusion_figure,
    error_figure,
    reliability_figure,
    risk_figure,
    scatter_figure,
    with_points,
)

CURVES = (
    "lpf_robust",
    "lpf_paper_best",
    "lpf_learned",
    "vae_only_ensemble",
    "deterministic_ensemble_average",
    "majority_vote",
)


@dataclass(frozen=True)
class ComplianceStudy:
    name: str = "compliance"

    def cells(self, plan: Plan) -> list[Cell]:
        exams = (Exam(), large_exam(plan))
        return [
            cell for exam in exams for cells in main_runs(plan, exam).values() for cell in cells
        ]

    def result(self, plan: Plan, book: Book) -> StudyResult:
        small, large = main_runs(plan, Exam()), main_runs(plan, large_exam(plan))
        return StudyResult(
            self.name,
            "Compliance: every method on the same companies",
            "How good, how sure and how fast is each method, and does the paper's table come out?",
            tuple(main_findings(plan, large, book)),
            _tables(plan, small, large, book),
            (*training_figures(plan, book), *_answer_figures(plan, large, book)),
        )


def _tables(plan: Plan, small: Runs, large: Runs, book: Book) -> tuple[Table, ...]:
    return (
        small_table(plan, small, book),
        large_table(plan, large, book),
        more_table(plan, large, book),
        against_table(large, book),
        seeds_table(plan, book),
        seed_stats_table(small, book),
        confidence_table(plan, small, book),
        costs_table(small, book),
        confusion_table(small, book),
        *parts_tables(large, book),
    )


def _answer_figures(plan: Plan, large: Runs, book: Book) -> list[Figure]:
    where = f"On {plan.asked:,} new companies"
    figures = [
        *_comparing_figures(where, large, book),
        *_curves(where, large, book),
        confusion_figure("confusion", f"{where}, counts.", "lpf_robust", large, book),
        confusion_figure("confusion_paper", f"{where}, counts.", "lpf_paper_best", large, book),
    ]
    return with_points(figures)


def _comparing_figures(where: str, large: Runs, book: Book) -> list[Figure]:
    """All methods side by side, without references."""
    compared = {method: cells for method, cells in large.items() if method not in REFERENCES}
    outside = "; the collapsed EDL is far outside" if COLLAPSED in compared else ""
    return [
        scatter_figure(
            "accuracy_ece",
            f"{where}. The best place is the top left{outside}.",
            {method: cells for method, cells in compared.items() if method != COLLAPSED},
            book,
        ),
        error_figure("error_rates", f"{where}, with 95 % intervals.", compared, book),
        bar_figure(
            "runtime",
            "Time of one query",
            "Median of single companies, texts already read (the transformer reads them).",
            compared,
            "runtime_ms",
            "Milliseconds",
            book,
        ),
    ]


def _curves(where: str, large: Runs, book: Book) -> list[Figure]:
    shown = {method: large[method] for method in CURVES if method in large}
    return [
        reliability_figure(
            "reliability",
            f"{where}. On the diagonal, a confidence means what it says; bars are 95 % intervals.",
            shown,
            book,
        ),
        risk_figure(
            "risk_coverage",
            f"{where}: answers are taken in order of confidence, the surest first.",
            shown,
            book,
        ),
    ]
