"""Data sets that nobody here generated: each file evaluated as ``lpf evaluate`` does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lpf.datasets import Dataset
from lpf.experiments.cells import Cell
from lpf.experiments.evaluation.evaluator import Evaluator
from lpf.experiments.evaluation.outcome import Evaluation
from lpf.experiments.evaluation.plan import EvaluationPlan
from lpf.experiments.exhibits import Figure, Series, StudyResult
from lpf.experiments.keeping import Keeper
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.figures import reliability_series
from lpf.experiments.studies.files.findings import findings
from lpf.experiments.studies.files.tables import file_table, file_title, summary_table
from lpf.experiments.workbench.shared_models import CHOSEN

FOLDS, QUICK_FOLDS = 5, 3
DRAWN = (
    CHOSEN,
    "lpf_robust",
    "vae_only_ensemble",
    "deterministic_ensemble_average",
    "logistic_mean",
    "claim_only",
    "prior",
)


@dataclass(frozen=True)
class FilesStudy:
    name: str = "files"

    def cells(self, plan: Plan) -> list[Cell]:
        return [cell for path in plan.files for cell in evaluator(plan, path).cells()]

    def result(self, plan: Plan, book: Book) -> StudyResult:
        keeper = Keeper(book.folder)
        evaluated = [evaluator(plan, path).evaluation(keeper) for path in plan.files]
        tables = [file_table(one, is_fever(one.dataset)) for one in evaluated]
        return StudyResult(
            self.name,
            "Evidence that people wrote",
            "Does what holds in generated domains hold on data sets from elsewhere?",
            tuple(findings(evaluated)),
            (summary_table(evaluated), *tables) if evaluated else (),
            (_nll_figure(evaluated), _reliability_figure(evaluated)) if evaluated else (),
        )


def evaluator(plan: Plan, path: Path) -> Evaluator:
    """A file that says who is to be asked is asked about with every seed of the plan. One in folds
    is learned from once a fold already, and asks about everybody: one seed has to do."""
    asked = EvaluationPlan(path, seeds=plan.study_seeds, folds=QUICK_FOLDS if plan.quick else FOLDS)
    found = Evaluator.of(asked)
    if found.folds:
        asked = replace(asked, seeds=asked.seeds[:1])
    if is_fever(found.dataset):  # the paper has a row of this one
        asked = replace(asked, methods=(*asked.methods, "vae_only"))
    return replace(found, plan=asked)


def is_fever(dataset: Dataset) -> bool:
    """Whether the claims are those that the paper's table of FEVER is about: their ids begin with
    its name, and others built upon it have names of their own."""
    return all(entity.entity_id.casefold().startswith("fever") for entity in dataset)


def _nll_figure(evaluated: Sequence[Evaluation]) -> Figure:
    names = tuple(file_title(one) for one in evaluated)
    series = []
    for method in DRAWN:
        found = [_nll(one, method) for one in evaluated]
        if any(value is not None for value in found):
            series.append(
                Series(title_of(method), names, tuple(found), standing=standing_of(method))
            )
    return Figure(
        "files_nll",
        "NLL by file",
        "Lower is better. What is not below the claim alone was not learned from evidence.",
        "bars",
        "",
        "NLL",
        tuple(series),
    )


def _reliability_figure(evaluated: Sequence[Evaluation]) -> Figure:
    series = []
    for one in evaluated:
        first = one.runs[CHOSEN][0]
        if first.error is None:
            series.append(reliability_series(file_title(one), first))
    return Figure(
        "files_reliability",
        "Are the confidences right?",
        f"{title_of(CHOSEN)}, first repetition on each file. On the diagonal, a confidence "
        "means what it says; bars are 95 % intervals.",
        "reliability",
        "Confidence",
        "Share that is right",
        tuple(series),
    )


def _nll(evaluation: Evaluation, method: str) -> float | None:
    if method not in evaluation.runs:
        return None
    spread = evaluation.summary(method).spreads.get("nll")
    return None if spread is None else spread.value().value
