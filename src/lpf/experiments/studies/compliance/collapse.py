"""How often the method that reproduces a collapse did collapse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lpf.experiments.answered import Answered
from lpf.experiments.exhibits import Table
from lpf.experiments.studies.book import Book, Runs
from lpf.experiments.studies.tables import counted

COLLAPSED = "edl_individual_broken"
NEARLY_ALL = 0.99


def with_collapse_told(table: Table, runs: Runs, book: Book) -> Table:
    """The note of its row says in how many runs; the table as it is where no run has answers."""
    there = [one for one in book.runs(runs.get(COLLAPSED, ())) if one.error is None]
    if not there:
        return table
    told = _told(sum(map(is_collapsed, there)), len(there))
    rows = tuple(
        replace(row, note="; ".join(filter(None, (row.note, told))))
        if row.name == COLLAPSED
        else row
        for row in table.rows
    )
    return replace(table, rows=rows)


def is_collapsed(answered: Answered) -> bool:
    """Whether one value is answered to nearly everybody, whatever its probability."""
    counts = np.bincount(answered.answers.argmax(axis=1))
    return bool(counts.max() >= NEARLY_ALL * len(answered.labels))


def _told(collapsed: int, runs: int) -> str:
    return (
        f"in {collapsed} of {counted(runs, 'run')} it answers one and the same value to "
        f"{100 * NEARLY_ALL:.0f} % of companies or more"
    )
