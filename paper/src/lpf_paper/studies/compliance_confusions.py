"""Confusion matrices on 135 test companies, compared with those that the paper prints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lpf.evaluation import confusion_of, standing_of, title_of
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Row, Table, Value
from lpf_paper.printed import PrintedTable, printed_slugs, printed_table
from lpf_paper.studies.compliance_runs import DOMAIN
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_tables import NOT_RUN, printed_value

OURS = "lpf_robust"
PREFIX = f"confusion_{DOMAIN}_"


def confusion_table(small: Runs, results: ResultReader) -> Table:
    """One row per true value, for the ensemble and for methods whose matrix the paper prints."""
    beside = _printed()
    values = next(iter(beside.values())).columns
    rows = [
        row
        for method in (OURS, *beside)
        for row in _rows(method, values, small, results, beside.get(method))
    ]
    return Table(
        "confusions",
        "Confusion matrices: 135 companies",
        "A row is a true value, a column what was answered: mean and sd of the counts over runs. "
        "The paper's companies differ, and so do the numbers of each true value.",
        tuple(Column(value, f"Answered {value}", "count", None, 1) for value in values),
        tuple(rows),
    )


def _printed() -> dict[str, PrintedTable]:
    """The printed matrices by method."""
    slugs = [slug for slug in printed_slugs() if slug.startswith(PREFIX)]
    return {slug.removeprefix(PREFIX): printed_table(slug) for slug in slugs}


def _rows(
    method: str,
    values: tuple[str, ...],
    runs: Runs,
    results: ResultReader,
    beside: PrintedTable | None,
) -> Iterator[Row]:
    counts = _counts(method, values, runs, results)
    note = "; ".join(results.summary(runs[method]).notes) or None if method in runs else NOT_RUN
    for place, truth in enumerate(values):
        cells = []
        for column, answer in enumerate(values):
            paper, doubt = printed_value(beside, truth, answer)
            cells.append(_cell(counts[:, place, column], paper, doubt))
        title = f"{title_of(method)}: {truth}"
        yield Row(f"{method}_{truth}", title, tuple(cells), standing_of(method), note)


def _counts(method: str, values: tuple[str, ...], runs: Runs, results: ResultReader) -> FloatArray:
    """Counts [R, V, V] of the runs with answers: true value, answer, in the order of ``values``."""
    answered = [run for run in results.runs(runs.get(method, ())) if run.error is None]
    orders = [[run.values.index(value) for value in values] for run in answered]
    counts = [
        confusion_of(run)[np.ix_(order, order)] for run, order in zip(answered, orders, strict=True)
    ]
    return np.array(counts, np.float64).reshape(len(counts), len(values), len(values))


def _cell(counts: FloatArray, paper: float | None, doubt: str | None) -> Value | None:
    """``counts`` [R] of one cell of the matrix."""
    if not len(counts):
        return None if paper is None else Value(None, paper=paper, doubt=doubt)
    sd = float(counts.std(ddof=1)) if len(counts) > 1 else None
    return Value(float(counts.mean()), sd, paper=paper, doubt=doubt)
