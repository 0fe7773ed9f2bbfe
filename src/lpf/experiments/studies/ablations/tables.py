"""Tables of robust mode with one part taken out: one a test."""

from __future__ import annotations

from collections.abc import Mapping

from lpf.experiments.exhibits import Column, Row, Table, Value
from lpf.experiments.judging.summaries import Summary
from lpf.experiments.plan import Plan
from lpf.experiments.studies.ablations.parts import (
    DEFAULT,
    Change,
    Place,
    changes_of,
    data_sets,
    default_size,
    exam_of,
    runs,
    variants,
)
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.tables import COLUMNS, cell_value, counted, plain_value

ABLATION_COLUMNS = (
    COLUMNS["nll"],
    Column("change", "NLL, change", "number", "lower", 4),
    Column("p", "p (Holm)", "share", None, 4),
    COLUMNS["accuracy"],
    Column("errors", "Errors, change", "share", "lower", 4),
    COLUMNS["ece"],
    COLUMNS["ece_null"],
)


def ablation_table(
    plan: Plan, place: Place, changes: Mapping[str, Change | None], book: Book
) -> Table:
    return Table(
        f"ablations_{place.name}",
        f"One part taken out: {place.title}",
        f"Compliance, {asked(plan, place)}. Changes are of the variant less the default, paired "
        "by entity and data set, with 95 % intervals and p-values corrected for the number of "
        f"variants: above 0, the part taken out was good for something. {_how(place)}",
        ABLATION_COLUMNS,
        tuple(_rows(plan, place, changes, book)),
    )


def asked(plan: Plan, place: Place) -> str:
    """For captions."""
    many = "five items" if place.items == "fixed" else "one to five items"
    sets = counted(len(data_sets(plan, place)), "data set")
    return f"{exam_of(plan, place).entities:,} new companies with {many} each, {sets}"


def _rows(plan: Plan, place: Place, changes: Mapping[str, Change | None], book: Book) -> list[Row]:
    cells = runs(plan, place)
    errors = changes_of(cells, book, "error")
    default = f"Robust mode as it is: at the mean, {default_size(plan)} networks"
    rows = [_row(DEFAULT, default, book.summary(cells[DEFAULT]), None, None)]
    for name, variant in variants(plan, place).items():
        summary = book.summary(cells[name])
        rows.append(_row(name, variant.title, summary, changes[name], errors[name]))
    return rows


def _row(
    name: str, title: str, summary: Summary, change: Change | None, errors: Change | None
) -> Row:
    nll, accuracy, ece, null = (
        cell_value(summary, measure) for measure in ("nll", "accuracy", "ece", "ece_null")
    )
    p = plain_value(None if change is None else change.p)
    cells = (nll, _shown(change), p, accuracy, _shown(errors), ece, null)
    note = "; ".join(summary.notes) or None
    return Row(name, title, cells, "ours" if name == DEFAULT else "rival", note)


def _shown(change: Change | None) -> Value | None:
    return None if change is None else Value(change.mean, low=change.low, high=change.high)


def _how(place: Place) -> str:
    if place.shares:
        return "Without dividing, all else is fitted anew."
    return (
        "ε and ρ are set to 0 after all was fitted; integrators take the place of the mean at "
        "which it was fitted."
    )
