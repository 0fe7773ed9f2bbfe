"""Tables of the paper's grid: the best of its settings, and what each knob does on average."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from lpf.experiments.exhibits import Column, Row, Table, Value
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.grid.scores import BAD_ECE, Scored, measured, picked
from lpf.experiments.studies.grid.settings import grid, robust_at, where
from lpf.experiments.studies.knobs.cells import KNOBS
from lpf.experiments.studies.tables import COLUMNS, renamed_column

MEASURES = ("accuracy", "nll", "ece")
TEMPERED = ("nll", "ece")


def best_table(plan: Plan, scored: Sequence[Scored], book: Book) -> Table:
    columns = (
        *(Column(name, knob.symbol, "number", None, 1) for name, knob in KNOBS.items()),
        *(COLUMNS[name] for name in MEASURES),
        *(renamed_column(name, "tempered", " after T") for name in TEMPERED),
    )
    rows = [_picked_row(name, one) for name, one in picked(plan, scored)]
    rows += [_robust_row(plan, int(top_k), book) for top_k in grid(plan)["top_k"]]
    return Table(
        "grid_best",
        "The best of them",
        f"{where(plan, len(scored))} Each is picked on the companies on which it is judged, which "
        "flatters it; nothing was picked on validation data. Measured as answers come; 'after T' "
        "at a temperature fitted on 135 validation companies with five items each. Robust mode is "
        "fitted on the same 135 and not picked.",
        columns,
        tuple(rows),
    )


def knobs_table(plan: Plan, scored: Sequence[Scored]) -> Table:
    """What each knob does on average over all others."""
    columns = (
        Column("settings", "Settings", "count", None, 0),
        *(COLUMNS[name] for name in MEASURES),
        Column("bad", f"ECE above {BAD_ECE:g}", "share", "lower", 3),
        Column("tempered_ece", "ECE after T", "share", "lower", 4),
    )
    rows = [
        _knob_row(name, value, [one for one in scored if one.setting[name] == value])
        for name, values in grid(plan).items()
        for value in values
    ]
    return Table(
        "grid_knobs",
        "What each knob does, over all settings of the others",
        f"{where(plan, len(scored))} Means over settings, as answers come but for the last.",
        columns,
        tuple(row for row in rows if row is not None),
    )


def _picked_row(name: str, one: Scored) -> Row:
    knobs = tuple(Value(float(one.setting[knob])) for knob in KNOBS)
    raw = tuple(Value(one.raw[measure]) for measure in MEASURES)
    tempered = tuple(Value(one.tempered[measure]) for measure in TEMPERED)
    return Row(name, name, (*knobs, *raw, *tempered))


def _robust_row(plan: Plan, top_k: int, book: Book) -> Row:
    answered, title = book.answered(robust_at(plan, top_k)), f"Robust mode, top_k = {top_k}"
    knobs = (None, None, None, Value(top_k))
    if answered.error is not None:
        return Row(title, title, (*knobs, *(None,) * 5), "ours", answered.error)
    found = measured(answered)
    return Row(
        title, title, (*knobs, *(Value(found[name]) for name in MEASURES), None, None), "ours"
    )


def _knob_row(name: str, value: float, among: Sequence[Scored]) -> Row | None:
    if not among:
        return None
    title = f"{KNOBS[name].symbol} = {value:g}"
    cells = (
        Value(len(among)),
        *(Value(fmean(one.raw[measure] for one in among)) for measure in MEASURES),
        Value(fmean(one.raw["ece"] > BAD_ECE for one in among)),
        Value(fmean(one.tempered["ece"] for one in among)),
    )
    return Row(title, title, cells)
