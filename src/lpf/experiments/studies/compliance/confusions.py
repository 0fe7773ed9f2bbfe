"""Who is taken for what on the paper's test, beside the matrices that the paper prints."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lpf.experiments.exhibits import Column, Row, Table, Value
from lpf.experiments.judging.measures import confusion_of
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.printed.tables import PrintedTable, printed_slugs, printed_table
from lpf.experiments.studies.book import Book, Runs
from lpf.experiments.studies.compliance.cells import DOMAIN
from lpf.experiments.studies.printed_rows import NOT_RUN
from lpf.experiments.studies.tables import printed_value
from lpf.types import FloatArray

OURS = "lpf_robust"
PREFIX = f"confusion_{DOMAIN}_"


def confusion_table(small: Runs, book: Book) -> Table:
    """Three rows a method: the ensemble's, and those of methods whose matrix the paper prints."""
    beside = _printed()
    values = next(iter(beside.values())).columns
    rows = [
        row
        for method in (OURS, *beside)
        for row in _rows(method, values, small, book, beside.get(method))
    ]
    return Table(
        "confusions",
        "Who is taken for what: 135 companies",
        "A row is a true value, a column what was answered: mean and sd of the counts over runs. "
        "The paper's companies are others, with other numbers of each true value.",
        tuple(Column(value, f"Answered {value}", "count", None, 1) for value in values),
        tuple(rows),
    )


def _printed() -> dict[str, PrintedTable]:
    """By method."""
    slugs = [slug for slug in printed_slugs() if slug.startswith(PREFIX)]
    return {slug.removeprefix(PREFIX): printed_table(slug) for slug in slugs}


def _rows(
    method: str, values: tuple[str, ...], runs: Runs, book: Book, beside: PrintedTable | None
) -> Iterator[Row]:
    counts = _counts(method, values, runs, book)
    note = "; ".join(book.summary(runs[method]).notes) or None if method in runs else NOT_RUN
    for place, truth in enumerate(values):
        cells = []
        for column, answer in enumerate(values):
            paper, doubt = printed_value(beside, truth, answer)
            cells.append(_cell(counts[:, place, column], paper, doubt))
        title = f"{title_of(method)}: {truth}"
        yield Row(f"{method}_{truth}", title, tuple(cells), standing_of(method), note)


def _counts(method: str, values: tuple[str, ...], runs: Runs, book: Book) -> FloatArray:
    """[R, V, V] of the runs that have answers: true value, answer, in the order of ``values``."""
    there = [one for one in book.runs(runs.get(method, ())) if one.error is None]
    orders = [[one.values.index(value) for value in values] for one in there]
    found = [
        confusion_of(one)[np.ix_(order, order)] for one, order in zip(there, orders, strict=True)
    ]
    return np.array(found, np.float64).reshape(len(found), len(values), len(values))


def _cell(counts: FloatArray, paper: float | None, doubt: str | None) -> Value | None:
    """``counts`` [R] of one place in the matrix."""
    if not len(counts):
        return None if paper is None else Value(None, paper=paper, doubt=doubt)
    sd = float(counts.std(ddof=1)) if len(counts) > 1 else None
    return Value(float(counts.mean()), sd, paper=paper, doubt=doubt)
