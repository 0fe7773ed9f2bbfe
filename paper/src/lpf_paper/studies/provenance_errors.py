"""The paper's tables of errors by method, true value, confidence and credibility, and the records
it prints, recomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.combine import Segments, combine_paper
from lpf.evaluation import Cell, Predictions, by_label, standing_of, title_of
from lpf_paper.exhibits import Column, Row, Table, Value
from lpf_paper.printed import PrintedTable, printed_slugs, printed_table
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.study_tables import printed_value

# The paper's own LPF-SPN, whose errors are printed.
PAPERS_LPF = "lpf_paper_best"
RECORDS = ("record_c0042", "record_c0089")
_ANSWER = "answer"


def printed_errors(domain: str) -> PrintedTable | None:
    slug = f"errors_{domain}"
    return printed_table(slug) if slug in printed_slugs() else None


def printed_methods(domains: Sequence[str]) -> set[str]:
    """Methods whose errors the paper counts in one of the domains."""
    tables = [printed_errors(domain) for domain in domains]
    return {method for table in tables if table is not None for method in table.rows}


def method_errors(runs: Mapping[str, Mapping[str, Cell]], results: ResultReader) -> Table:
    """``runs`` has one cell per domain for each method."""
    domains = tuple(next(iter(runs.values())))
    columns = tuple(Column(domain, domain, "count", "lower", 0) for domain in domains)
    rows = []
    for method, cells in runs.items():
        answers = {domain: results.answered(cells[domain]) for domain in domains}
        notes = [f"{domain}: {one.error}" for domain, one in answers.items() if one.error]
        shown = tuple(_errors(method, domain, one) for domain, one in answers.items())
        rows.append(
            Row(method, title_of(method), shown, standing_of(method), "; ".join(notes) or None)
        )
    sizes = sorted(
        {len(results.answered(cell).labels) for cell in next(iter(runs.values())).values()}
    )
    return Table(
        "errors_by_method",
        "Errors by method and domain",
        f"Wrong answers among the {' or '.join(map(str, sizes))} test entities of the first data "
        "set of each domain. The paper's are of its own data.",
        columns,
        tuple(rows),
    )


def label_errors(answered: Predictions) -> Table:
    beside = printed_table("errors_by_label")
    columns = (
        Column("entities", "Entities", "count", None, 0),
        Column("errors", "Errors", "count", None, 0),
        Column("error_rate", "Error rate", "share", None, 3),
    )
    rows = []
    for part in by_label(answered):
        rate, size = 1.0 - part.accuracy, float(part.entities)
        found = {"entities": size, "errors": float(round(rate * size)), "error_rate": rate}
        rows.append(_beside(part.name, part.name, found, columns, beside))
    return Table("errors_by_label", "Errors by true value", _of(answered), columns, tuple(rows))


def selective_table(answered: Predictions) -> Table:
    """Answering only above a confidence, at the paper's thresholds."""
    beside = printed_table("selective")
    columns = (
        Column("coverage", "Answered", "share", None, 3),
        Column("accuracy", "Accuracy among them", "share", None, 3),
        Column("rejected", "Left unanswered", "count", None, 0),
    )
    confidence, right = metrics.confidence_and_hits(
        answered.answers, answered.labels.astype(np.int64)
    )
    rows = []
    for threshold in beside.rows:
        taken = confidence >= float(threshold)
        found = {"coverage": float(taken.mean()), "rejected": float((~taken).sum())}
        if taken.any():
            found["accuracy"] = float(right[taken].mean())
        rows.append(_beside(threshold, f"From {threshold}", found, columns, beside))
    return Table("selective", "Answering only when sure", _of(answered), columns, tuple(rows))


def credibility_table(answered: Predictions) -> Table:
    """By mean credibility of the evidence, in the paper's bins."""
    beside = printed_table("evidence_quality")
    columns = (
        Column("entities", "Entities", "count", None, 0),
        Column("accuracy", "Accuracy", "share", None, 3),
        Column("ece", "ECE", "share", None, 3),
        Column("ece_null", "ECE if perfect", "share", None, 3),
    )
    mean = answered.credibility
    parts = {
        "above 0.9": mean > 0.9,
        "0.7 to 0.9": (mean >= 0.7) & (mean <= 0.9),
        "below 0.7": mean < 0.7,
    }
    rows = [
        _beside(name, name.capitalize(), _quality(answered, among), columns, beside)
        for name, among in parts.items()
    ]
    return Table(
        "by_credibility",
        "By the mean credibility of the evidence",
        _of(answered) + " The ECE of few entities is high by chance.",
        columns,
        tuple(rows),
    )


def records_table() -> Table:
    """The answers of the paper's records, recomputed by its own rule from a uniform prior."""
    values = tuple(record_answer(RECORDS[0]))
    columns = tuple(Column(value, value, "share", None, 4) for value in values)
    rows = [_record(slug, weighted) for slug in RECORDS for weighted in (True, False)]
    return Table(
        "papers_records",
        "The paper's two printed records, added up",
        "The listed potentials, with or without the listed weights as exponents, multiplied and "
        "normalised. Below each number is the answer in the record.",
        columns,
        tuple(rows),
    )


def record_name(slug: str) -> str:
    return slug.removeprefix("record_").upper()


def record_answer(slug: str) -> dict[str, float]:
    """The printed answer."""
    return {value: one.value for value, one in printed_table(slug).rows[_ANSWER].items()}


def recomputed(slug: str, *, weighted: bool) -> dict[str, float]:
    """The answer recomputed from a printed record's items."""
    values = tuple(record_answer(slug))
    items = [row for name, row in printed_table(slug).rows.items() if name != _ANSWER]
    potential = np.array([[row[value].value for value in values] for row in items])
    weight = np.array([row["weight"].value if weighted else 1.0 for row in items])
    flat = np.full(len(values), -np.log(len(values)))
    found = combine_paper(potential, weight, flat, Segments.one(len(items)))
    return dict(zip(values, found.distribution[0].tolist(), strict=True))


def _record(slug: str, weighted: bool) -> Row:
    beside, cells = printed_table(slug), []
    for value, share in recomputed(slug, weighted=weighted).items():
        paper, doubt = printed_value(beside, _ANSWER, value)
        cells.append(Value(share, paper=paper, doubt=doubt))
    how = "weighted" if weighted else "unweighted"
    return Row(f"{slug}_{how}", f"{record_name(slug)}, {how}", tuple(cells))


def _errors(method: str, domain: str, answered: Predictions) -> Value | None:
    paper, doubt = printed_value(printed_errors(domain), method, "errors")
    if answered.error is not None:
        return None if paper is None else Value(None, paper=paper, doubt=doubt)
    wrong = int((answered.answers.argmax(axis=1) != answered.labels).sum())
    return Value(float(wrong), paper=paper, doubt=doubt)


def _quality(answered: Predictions, among: NDArray[np.bool_]) -> dict[str, float]:
    if not among.any():
        return {"entities": 0.0}
    rows, labels = answered.answers[among], answered.labels[among].astype(np.int64)
    return {
        "entities": float(among.sum()),
        "accuracy": metrics.accuracy(rows, labels),
        "ece": metrics.ece(rows, labels),
        "ece_null": metrics.ece_null(rows, np.random.default_rng(0)).mean,
    }


def _beside(
    name: str,
    title: str,
    found: Mapping[str, float],
    columns: Sequence[Column],
    beside: PrintedTable,
) -> Row:
    cells = []
    for column in columns:
        paper, doubt = printed_value(beside, name, column.name)
        is_known = column.name in found or paper is not None
        cells.append(Value(found.get(column.name), paper=paper, doubt=doubt) if is_known else None)
    return Row(name, title, tuple(cells))


def _of(answered: Predictions) -> str:
    return (
        f"Compliance, {title_of('lpf_robust')} on the {len(answered.labels)} test entities of the "
        "first data set; the paper's numbers are for its LPF-SPN on its own data."
    )
