"""Tables of compliance: all methods on the small and the large test, the ensemble on subsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lpf.evaluation import Predictions, SubsetScores, by_credibility, by_label, title_of
from lpf_paper.exhibits import Column, Row, Table
from lpf_paper.plan import ExperimentPlan
from lpf_paper.printed import printed_table
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_figures import answers_of
from lpf_paper.studies.study_tables import (
    comparison_table,
    counted,
    method_table,
    plain_value,
    with_printed_rows,
)

COLLAPSED = "edl_individual_broken"
NEARLY_ALL = 0.99


def with_collapse_note(table: Table, runs: Runs, results: ResultReader) -> Table:
    """Notes in the row of the collapsing method in how many runs it collapsed. The table is
    returned unchanged if no run has answers."""
    answered = [run for run in results.runs(runs.get(COLLAPSED, ())) if run.error is None]
    if not answered:
        return table
    collapses = _collapse_note(sum(map(is_collapsed, answered)), len(answered))
    rows = tuple(
        replace(row, note="; ".join(filter(None, (row.note, collapses))))
        if row.name == COLLAPSED
        else row
        for row in table.rows
    )
    return replace(table, rows=rows)


def is_collapsed(answered: Predictions) -> bool:
    """Return True if one value is the answer for nearly all entities, whatever its probability."""
    counts = np.bincount(answered.answers.argmax(axis=1))
    return bool(counts.max() >= NEARLY_ALL * len(answered.labels))


def _collapse_note(collapsed: int, runs: int) -> str:
    return (
        f"in {collapsed} of {counted(runs, 'run')} it gives the same answer to "
        f"{100 * NEARLY_ALL:.0f} % of companies or more"
    )


PAPER_MEASURES = (
    "accuracy",
    "macro_f1",
    "weighted_f1",
    "nll",
    "brier_over_k",
    "ece",
    "runtime_ms",
)
OWN_MEASURES = ("nll", "accuracy", "macro_f1", "brier", "ece", "ece_null", "ece_p", "raw_nll")
MORE_MEASURES = (
    "weighted_f1",
    "brier_over_k",
    "ece_15",
    "ece_mass",
    "mce",
    "classwise_ece",
    "raw_nll",
    "raw_ece",
    "aurc",
)
CONFIDENCE_MEASURES = (
    "mean_confidence",
    "confidence_sd",
    "high_confidence_errors",
    "low_confidence_correct",
)
COST_MEASURES = ("runtime_ms", "per_second", "fit_seconds", "stored_bytes", "peak_bytes")
PART_COLUMNS = (
    Column("entities", "Entities", "count", None, 0),
    Column("accuracy", "Accuracy", "share", None, 4),
    Column("nll", "NLL", "number", None, 4),
    Column("mean_confidence", "Mean confidence", "share", None, 4),
    Column("ece", "ECE", "share", None, 4),
    Column("ece_null", "ECE if perfect", "share", None, 4),
)


def small_table(plan: ExperimentPlan, small: Runs, results: ResultReader) -> Table:
    """The paper's main table, with the methods that were not run here."""
    shown = _with_papers_numbers(
        "main",
        "The paper's test: 135 companies",
        f"{_how(plan)} One error is .0074 of accuracy here. Query times do not include reading the "
        "texts, except for the transformer, which reads them itself.",
        small,
        PAPER_MEASURES,
        results,
        "main_results",
    )
    return with_collapse_note(shown, small, results)


def large_table(plan: ExperimentPlan, large: Runs, results: ResultReader) -> Table:
    shown = method_table(
        "large",
        f"The same on {plan.test_entities:,} new companies in unseen wordings",
        f"{_how(plan)} 'ECE if perfect' is what a perfectly calibrated predictor with the same "
        "confidences would have on this number of companies, p(perfect) how often it would have a "
        "higher one (mean over runs).",
        large,
        OWN_MEASURES,
        results,
    )
    return with_collapse_note(shown, large, results)


def more_table(plan: ExperimentPlan, large: Runs, results: ResultReader) -> Table:
    return method_table(
        "more",
        "More measures",
        f"On the same {plan.test_entities:,} new companies, methods in the same order. ECE has ten "
        "bins of equal width unless noted, with equal mass 15; MCE is the largest gap of a bin, "
        "which is large by chance in a bin of few companies. AURC is the error rate among the most "
        "confident answers, averaged over how many of them are taken. Before T is before the "
        "temperature.",
        large,
        MORE_MEASURES,
        results,
    )


def against_table(large: Runs, results: ResultReader) -> Table:
    return comparison_table(
        "against",
        "Paired by company; the ensemble's single run is paired with every run of the other "
        "method. Below 0 the ensemble is better. Intervals of 95 % over companies and runs "
        "together, p-values corrected for the number of methods.",
        "lpf_robust",
        large,
        results,
    )


def confidence_table(plan: ExperimentPlan, small: Runs, results: ResultReader) -> Table:
    return _with_papers_numbers(
        "confidence",
        "Confidence",
        "Shares of all companies; high is above .8, low below .5. " + _how(plan),
        small,
        CONFIDENCE_MEASURES,
        results,
        "confidence",
    )


def costs_table(small: Runs, results: ResultReader) -> Table:
    return _with_papers_numbers(
        "costs",
        "Costs",
        "One query is the median over single companies, without reading their texts; queries per "
        "second are for all companies at once, on one core. Training includes networks that "
        "a method shares with others. Memory is that of Python and NumPy.",
        small,
        COST_MEASURES,
        results,
        "runtime",
    )


def parts_tables(large: Runs, results: ResultReader) -> list[Table]:
    """Empty if every run of the ensemble crashed."""
    answered = answers_of(large["lpf_robust"], results)
    if answered is None:
        return []
    return [
        _parts_table("by_label", "By true value", by_label(answered)),
        _parts_table(
            "by_credibility", "By the evidence's mean credibility", by_credibility(answered)
        ),
    ]


def _with_papers_numbers(
    name: str,
    title: str,
    caption: str,
    runs: Runs,
    measures: Sequence[str],
    results: ResultReader,
    printed: str,
) -> Table:
    shown = method_table(name, title, caption, runs, measures, results, printed)
    return with_printed_rows(shown, printed_table(printed))


def _parts_table(name: str, title: str, parts: Sequence[SubsetScores]) -> Table:
    caption = f"{title_of('lpf_robust')} on the large test set."
    return Table(name, title, caption, PART_COLUMNS, tuple(map(_part_row, parts)))


def _part_row(part: SubsetScores) -> Row:
    cells = tuple(plain_value(getattr(part, column.name)) for column in PART_COLUMNS)
    return Row(part.name, part.name, cells)


def _how(plan: ExperimentPlan) -> str:
    seeds = f"{len(plan.main_seeds)} seeds of the search"
    repeats = counted(len(plan.main_repetitions), "repetition")
    return (
        f"LPF and VAE-Only with one network: mean and sd over all {seeds}, including the worst; "
        "their ensembles: the best five of these, one run. Methods built on the classifier use the "
        f"best of as many networks; all other random methods are run in {repeats}. All methods "
        "except references have a temperature fitted on the same 135 validation companies, robust "
        "mode its own."
    )
