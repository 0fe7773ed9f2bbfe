"""Tables of methods and measures with the paper's numbers, and rows that only the paper has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lpf.evaluation import (
    LANGUAGE_MODEL,
    Cell,
    Comparison,
    Loss,
    Summary,
    compare,
    standing_of,
    title_of,
)
from lpf_paper.exhibits import Column, Row, Table, Value
from lpf_paper.printed import PrintedTable, printed_table
from lpf_paper.studies.study import ResultReader, Runs

COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (
        Column("accuracy", "Accuracy", "share", "higher", 4),
        Column("macro_f1", "Macro F1", "share", "higher", 4),
        Column("weighted_f1", "Weighted F1", "share", "higher", 4),
        Column("nll", "NLL", "number", "lower", 4),
        Column("raw_nll", "NLL before T", "number", "lower", 4),
        Column("brier", "Brier", "number", "lower", 4),
        Column("brier_over_k", "Brier / K", "number", "lower", 4),
        Column("ece", "ECE", "share", "lower", 4),
        Column("raw_ece", "ECE before T", "share", "lower", 4),
        Column("ece_null", "ECE if perfect", "share", None, 4),
        Column("ece_p", "p(perfect)", "share", None, 3),
        Column("ece_15", "ECE, 15 bins", "share", "lower", 4),
        Column("ece_mass", "ECE, equal mass", "share", "lower", 4),
        Column("mce", "MCE", "share", "lower", 3),
        Column("classwise_ece", "Class-wise ECE", "share", "lower", 4),
        Column("aurc", "AURC", "number", "lower", 4),
        Column("mean_confidence", "Mean confidence", "share", None, 3),
        Column("confidence_sd", "sd", "share", None, 3),
        Column("high_confidence_errors", "Errors above .8", "share", "lower", 4),
        Column("low_confidence_correct", "Right below .5", "share", None, 4),
        Column("runtime_ms", "One query", "milliseconds", "lower", 2),
        Column("per_second", "Queries per second", "count", "higher", 0),
        Column("fit_seconds", "Training", "seconds", None, 1),
        Column("stored_bytes", "Size of the model", "bytes", None, 1),
        Column("peak_bytes", "Peak memory", "bytes", None, 1),
    )
}
# Measures that have another name in the paper's tables.
_PRINTED_NAMES = {
    "brier_over_k": "brier",
    "per_second": "throughput",
    "validation_accuracy": "best_validation_accuracy",
    "validation_loss": "best_validation_loss",
}
# Counts in the paper, shares of all here; and the number of entities it counts.
_COUNTED = ("high_confidence_errors", "low_confidence_correct")
_COUNTED_OF = 135


def renamed_column(measure: str, name: str, title: str) -> Column:
    """For a measure with several columns: ``name`` is put before its own, ``title`` after."""
    column = COLUMNS[measure]
    return replace(column, name=f"{name}_{measure}", title=f"{column.title}{title}")


def method_table(
    name: str,
    title: str,
    caption: str,
    runs: Runs,
    measures: Sequence[str],
    results: ResultReader,
    printed: str | None = None,
) -> Table:
    """One row per method, the lowest NLL first and references last. ``printed`` names the table of
    the paper to compare with."""
    beside = None if printed is None else printed_table(printed)
    rows = [
        _row(method, results.summary(cells), measures, beside)
        for method, cells in sorted(runs.items(), key=lambda one: _order(one[0], one[1], results))
    ]
    return Table(name, title, caption, tuple(COLUMNS[one] for one in measures), tuple(rows))


def comparison_table(
    name: str,
    caption: str,
    reference: str,
    runs: Runs,
    results: ResultReader,
    where: str = "",
    measure: Loss = "nll",
) -> Table:
    """The reference's loss minus that of each other method, paired, with p-values after Holm.
    ``where`` is added to the title."""
    compared = comparisons(reference, runs, results, measure)
    columns = (
        Column("difference", f"{measure.upper()} difference", "number", None, 4),
        Column("p", "p (Holm)", "share", None, 4),
        Column("runs", "Runs", "count", None, 0),
    )
    rows = tuple(_compared(one) for one in compared)
    return Table(name, f"{title_of(reference)} against each{where}", caption, columns, rows)


def comparisons(
    reference: str, runs: Runs, results: ResultReader, measure: Loss = "nll"
) -> list[Comparison]:
    """The smallest difference first. Others have as many runs as the reference; a single run of the
    reference is paired with each of theirs."""
    ours = results.runs(runs[reference])
    rivals = {method: cells for method, cells in runs.items() if standing_of(method) != "reference"}
    others = {
        method: results.runs(cells)
        for method, cells in rivals.items()
        if method != reference and cells and len(ours) in (1, len(cells))
    }
    found = compare(ours, others, measure)
    return sorted(found, key=lambda one: -(one.difference.mean if one.difference else -1e9))


def printed_value(
    beside: PrintedTable | None, row: str, measure: str
) -> tuple[float | None, str | None]:
    """The paper's number, and why it cannot be right, if there is a reason."""
    if beside is None:
        return None, None
    found = beside.value(row, _PRINTED_NAMES.get(measure, measure))
    if found is None:
        return None, None
    value = found.value / _COUNTED_OF if measure in _COUNTED else found.value
    return value, " ".join(found.doubts) or None


def cell_value(
    summary: Summary, measure: str, beside: PrintedTable | None = None, row: str = ""
) -> Value | None:
    """None if neither we nor the paper have a number."""
    spread = summary.spreads.get(measure)
    paper, doubt = printed_value(beside, row, measure)
    if spread is None:
        return None if paper is None else Value(None, paper=paper, doubt=doubt)
    return Value.of(spread, paper, doubt)


def plain_value(number: float | None) -> Value | None:
    """A value without bounds or a number of the paper."""
    return None if number is None else Value(float(number))


def mean_of_row(row: Row, *, upwards: bool = True) -> tuple[bool, float]:
    """A sort key. Rows with a gap, because a method crashed or a loss is infinite, come last: a
    mean over fewer columns cannot be compared."""
    values = [cell.value if isinstance(cell, Value) else None for cell in row.cells]
    known = [value for value in values if value is not None]
    mean = float(np.mean(known)) if known else np.inf
    return len(known) < len(values), mean if upwards else -mean


def counted(count: int, noun: str) -> str:
    """'1 data set', '3 data sets'."""
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _row(
    method: str, summary: Summary, measures: Sequence[str], beside: PrintedTable | None
) -> Row:
    cells = tuple(cell_value(summary, measure, beside, method) for measure in measures)
    note = "; ".join(summary.notes) or None
    return Row(method, title_of(method), cells, standing_of(method), note)


def _order(method: str, cells: Sequence[Cell], results: ResultReader) -> tuple[bool, float]:
    spread = results.summary(cells).spreads.get("nll")
    return standing_of(method) == "reference", spread.mean if spread else float("inf")


def _compared(one: Comparison) -> Row:
    found = one.difference
    difference = None if found is None else Value(found.mean, low=found.low, high=found.high)
    return Row(
        one.name,
        title_of(one.name),
        (difference, plain_value(one.adjusted), Value(one.seeds)),
        standing_of(one.name),
        one.note,
    )


NOT_RUN = "not run here"
NOT_ASKED = "not asked here: needs an endpoint (lpf evaluate --llm)"


def with_printed_rows(table: Table, beside: PrintedTable) -> Table:
    """Adds the paper's methods that were not run. Rows must be named after methods, columns after
    measures."""
    ours = {row.name for row in table.rows}
    measures = [column.name for column in table.columns]
    rows = [_printed_row(method, measures, beside) for method in beside.rows if method not in ours]
    return replace(table, rows=(*table.rows, *rows))


def _printed_row(method: str, measures: Sequence[str], beside: PrintedTable) -> Row:
    cells = tuple(_cell(method, measure, beside) for measure in measures)
    return Row(method, title_of(method), cells, standing_of(method), _note(method, beside))


def _cell(method: str, measure: str, beside: PrintedTable) -> Value | None:
    paper, doubt = printed_value(beside, method, measure)
    return None if paper is None else Value(None, paper=paper, doubt=doubt)


def _note(method: str, beside: PrintedTable) -> str:
    why = NOT_ASKED if method.startswith(LANGUAGE_MODEL) else NOT_RUN
    entities = beside.entities_of(method)
    if entities is None or entities == beside.entities:
        return why
    return f"{why}; the paper's numbers are of {entities:,} entities"
