"""A knob of the paper through all its values: what was measured at each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lpf.experiments.cells import Cell
from lpf.experiments.judging.summaries import Summary, summarise
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.knobs.cells import (
    Knob,
    as_it_came,
    members,
    paper_cell,
    robust_cell,
)

SAMPLERS = ("plain", "orthogonal")
Turned = Mapping[str, int | float]


@dataclass(frozen=True)
class Point:
    """A value of a knob in paper mode: the best network and all of them as answers come, and all
    of them at fitted temperatures."""

    value: int | float
    best: Summary
    raw: Summary
    tempered: Summary


@dataclass(frozen=True)
class RobustLine:
    """One way of robust mode over the values of a knob. ``alone`` is the one that robust mode has
    where it is not told any, and says what that is."""

    title: str
    values: tuple[int | float, ...]
    summaries: tuple[Summary, ...]
    alone: tuple[str, Summary] | None = None


@dataclass(frozen=True)
class Sweep:
    knob: Knob
    points: tuple[Point, ...]
    robust: tuple[RobustLine, ...]


def paper_runs(plan: Plan, turned: Turned) -> list[Cell]:
    """One a network, the best first."""
    return [paper_cell(plan, member, turned) for member in members(plan)]


def robust_runs(plan: Plan, knob: Knob, value: float, sampler: str | None) -> list[Cell]:
    return [robust_cell(plan, member, {knob.name: value}, sampler) for member in members(plan)]


def robust_default(plan: Plan) -> list[Cell]:
    return [robust_cell(plan, member, {}) for member in members(plan)]


def robust_ways(knob: Knob) -> tuple[str | None, ...]:
    """In which ways robust mode goes through a knob: α it does not know, and without a sampler
    there are no samples to count."""
    if knob.name == "alpha":
        return ()
    return SAMPLERS if knob.name == "n_samples" else (None,)


def make_sweep(plan: Plan, knob: Knob, book: Book) -> Sweep:
    points = tuple(_point(plan, knob, value, book) for value in knob.values)
    lines = [_robust_line(plan, knob, sampler, book) for sampler in robust_ways(knob)]
    if knob.name == "alpha":
        lines.append(RobustLine("Robust mode, which has no α", (), (), _alone(plan, knob, book)))
    return Sweep(knob, points, tuple(lines))


def _point(plan: Plan, knob: Knob, value: float, book: Book) -> Point:
    runs = book.runs(paper_runs(plan, {knob.name: value}))
    came = [as_it_came(run) for run in runs]
    return Point(value, summarise(came[:1]), summarise(came), summarise(runs))


def _robust_line(plan: Plan, knob: Knob, sampler: str | None, book: Book) -> RobustLine:
    summaries = tuple(
        book.summary(robust_runs(plan, knob, value, sampler)) for value in knob.values
    )
    title = "Robust mode" if sampler is None else f"Robust mode, {sampler} samples"
    alone = None if knob.name == "top_k" else _alone(plan, knob, book)
    return RobustLine(title, knob.values, summaries, alone)


def _alone(plan: Plan, knob: Knob, book: Book) -> tuple[str, Summary]:
    words = {"n_samples": "no samples: at the mean", "temperature": "fitted", "alpha": "none"}
    return words[knob.name], book.summary(robust_default(plan))
