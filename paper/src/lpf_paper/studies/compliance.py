"""Compliance, all methods: the paper's main, seed, confidence, runtime and error tables."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.evaluation import Cell, EvalSpec, title_of
from lpf_paper.exhibits import Figure, StudyResult, Table
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.compliance_confusions import confusion_table
from lpf_paper.studies.compliance_runs import REFERENCES, large_eval_spec, main_runs
from lpf_paper.studies.compliance_seeds import seed_stats_table, seeds_table, training_figures
from lpf_paper.studies.compliance_tables import (
    COLLAPSED,
    against_table,
    confidence_table,
    costs_table,
    large_table,
    more_table,
    parts_tables,
    small_table,
)
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_figures import (
    bar_figure,
    confusion_figure,
    error_figure,
    reliability_figure,
    risk_figure,
    scatter_figure,
    with_points,
)
from lpf_paper.studies.study_tables import comparisons


def main_findings(plan: ExperimentPlan, large: Runs, results: ResultReader) -> list[str]:
    sentences = (_ours(plan, large, results), _rivals(large, results), _papers_best(large, results))
    return [sentence for sentence in sentences if sentence]


def _ours(plan: ExperimentPlan, large: Runs, results: ResultReader) -> str:
    begin = f"On {plan.test_entities:,} new companies the robust ensemble has"
    ours = results.summary(large["lpf_robust"]).spreads
    if not ours:
        return f"{begin} no answers: every run of it crashed."
    return (
        f"{begin} an NLL of "
        f"{ours['nll'].mean:z.4f}, an accuracy of {ours['accuracy'].mean:z.4f} and an ECE of "
        f"{ours['ece'].mean:z.4f}, where a perfectly calibrated predictor would show "
        f"{ours['ece_null'].mean:z.4f}."
    )


def _rivals(large: Runs, results: ResultReader) -> str:
    """Methods better than the ensemble, or the nearest one if there is none."""
    found = [
        (one.name, one.difference, one.adjusted)
        for one in comparisons("lpf_robust", large, results)
        if one.difference is not None and one.adjusted is not None
    ]
    if not found:
        return ""
    better = ", ".join(
        f"{title_of(name)} (by {difference.mean:z.4f}, p {p_value:z.3f})"
        for name, difference, p_value in found
        if difference.mean > 0
    )
    if better:
        return f"A lower NLL than the robust ensemble have: {better}."
    name, nearest, p_value = found[0]
    return (
        f"No method has a lower NLL; nearest is {title_of(name)}, {-nearest.mean:z.4f} above (95 % "
        f"interval {-nearest.high:z.4f} to {-nearest.low:z.4f}, corrected p {p_value:z.3f})."
    )


def _papers_best(large: Runs, results: ResultReader) -> str:
    paper = results.summary(large["lpf_paper_best"]).spreads
    if not paper:
        return ""
    return (
        f"The paper's best setting has an ECE of {paper['raw_ece'].mean:z.3f} as published and of "
        f"{paper['ece'].mean:z.3f} once its temperature is fitted; its accuracy is "
        f"{paper['accuracy'].mean:z.4f}."
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

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        eval_specs = (EvalSpec(), large_eval_spec(plan))
        return [
            cell
            for eval_spec in eval_specs
            for cells in main_runs(plan, eval_spec).values()
            for cell in cells
        ]

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        small, large = main_runs(plan, EvalSpec()), main_runs(plan, large_eval_spec(plan))
        return StudyResult(
            self.name,
            "Compliance: every method on the same companies",
            "How good, how confident and how fast is each method, and are the paper's numbers "
            "reproduced?",
            tuple(main_findings(plan, large, results)),
            _tables(plan, small, large, results),
            (*training_figures(plan, results), *_answer_figures(plan, large, results)),
        )


def _tables(
    plan: ExperimentPlan, small: Runs, large: Runs, results: ResultReader
) -> tuple[Table, ...]:
    return (
        small_table(plan, small, results),
        large_table(plan, large, results),
        more_table(plan, large, results),
        against_table(large, results),
        seeds_table(plan, results),
        seed_stats_table(small, results),
        confidence_table(plan, small, results),
        costs_table(small, results),
        confusion_table(small, results),
        *parts_tables(large, results),
    )


def _answer_figures(plan: ExperimentPlan, large: Runs, results: ResultReader) -> list[Figure]:
    where = f"On {plan.test_entities:,} new companies"
    figures = [
        *_comparing_figures(where, large, results),
        *_curves(where, large, results),
        confusion_figure("confusion", f"{where}, counts.", "lpf_robust", large, results),
        confusion_figure("confusion_paper", f"{where}, counts.", "lpf_paper_best", large, results),
    ]
    return with_points(figures)


def _comparing_figures(where: str, large: Runs, results: ResultReader) -> list[Figure]:
    """All methods except references."""
    compared = {method: cells for method, cells in large.items() if method not in REFERENCES}
    outside = "; the collapsed EDL is far outside" if COLLAPSED in compared else ""
    return [
        scatter_figure(
            "accuracy_ece",
            f"{where}. The best place is the top left{outside}.",
            {method: cells for method, cells in compared.items() if method != COLLAPSED},
            results,
        ),
        error_figure("error_rates", f"{where}, with 95 % intervals.", compared, results),
        bar_figure(
            "runtime",
            "Time of one query",
            "Median over single companies, without the time for reading texts (except for the "
            "transformer, which reads them itself).",
            compared,
            "runtime_ms",
            "Milliseconds",
            results,
        ),
    ]


def _curves(where: str, large: Runs, results: ResultReader) -> list[Figure]:
    shown = {method: large[method] for method in CURVES if method in large}
    return [
        reliability_figure(
            "reliability",
            f"{where}. On the diagonal, confidence equals accuracy; bars are 95 % intervals.",
            shown,
            results,
        ),
        risk_figure(
            "risk_coverage",
            f"{where}: answers are taken in order of confidence, the most confident first.",
            shown,
            results,
        ),
    ]
