"""Learned in one domain, asked in another; and learned from few."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import StudyResult
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.transfer.answers import Matched
from lpf.experiments.studies.transfer.cells import METHODS, domain_pairs, transfer_cell
from lpf.experiments.studies.transfer.exhibits import transfer_matrices, transfer_table
from lpf.experiments.studies.transfer.few_labels import (
    few_cells,
    few_figures,
    few_findings,
    few_tables,
)
from lpf.experiments.studies.transfer.findings import transfer_findings


@dataclass(frozen=True)
class TransferStudy:
    name: str = "transfer"

    def cells(self, plan: Plan) -> list[Cell]:
        found = (
            transfer_cell(plan, method, pair, seed)
            for method in METHODS
            for pair in domain_pairs(plan)
            for seed in plan.study_seeds
        )
        return list(dict.fromkeys([*found, *few_cells(plan)]))

    def result(self, plan: Plan, book: Book) -> StudyResult:
        answers = Matched(plan, book)
        return StudyResult(
            self.name,
            "From one domain to another, and from few labels",
            "Does what was learned in one domain hold in another, and how many labelled entities "
            "does each method need?",
            (*transfer_findings(plan, answers), *few_findings(plan, book)),
            (transfer_table(plan, answers), *few_tables(plan, book)),
            (*transfer_matrices(plan, answers), *few_figures(plan, book)),
        )
