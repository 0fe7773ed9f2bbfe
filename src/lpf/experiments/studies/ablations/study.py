"""Robust mode with one part taken out at a time: what is each of them good for?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import Figure, Series, StudyResult
from lpf.experiments.plan import Plan
from lpf.experiments.studies.ablations.findings import Changes, ablation_findings
from lpf.experiments.studies.ablations.parts import (
    DEFAULT,
    PLACES,
    UNEQUAL_PLACES,
    Change,
    Place,
    changes_of,
    default_size,
    runs,
    variants,
)
from lpf.experiments.studies.ablations.tables import ablation_table, asked
from lpf.experiments.studies.book import Book, Runs

ALL_PLACES = (*PLACES, *UNEQUAL_PLACES)


@dataclass(frozen=True)
class AblationsStudy:
    name: str = "ablations"

    def cells(self, plan: Plan) -> list[Cell]:
        return [
            cell for place in ALL_PLACES for cells in runs(plan, place).values() for cell in cells
        ]

    def result(self, plan: Plan, book: Book) -> StudyResult:
        changes = {place.name: changes_of(runs(plan, place), book) for place in ALL_PLACES}
        return StudyResult(
            self.name,
            "Robust mode, one part taken out at a time",
            "What do the integral over the latent space, dividing by the prior, ε, ρ, fitting and "
            "the ensemble bring?",
            tuple(ablation_findings(plan, changes)),
            tuple(ablation_table(plan, place, changes[place.name], book) for place in ALL_PLACES),
            tuple(
                figure
                for figure in (*_change_figures(plan, changes), _ensemble_figure(plan, book))
                if figure.series
            ),
        )


def _change_figures(plan: Plan, changes: Changes) -> list[Figure]:
    """One a preset."""
    presets = dict.fromkeys(place.preset for place in PLACES)
    return [_change_figure(plan, preset, changes) for preset in presets]


def _change_figure(plan: Plan, preset: str, changes: Changes) -> Figure:
    """A set of bars a number of items."""
    among = [place for place in PLACES if place.preset == preset]
    series = tuple(_bars(plan, place, changes[place.name]) for place in among)
    return Figure(
        f"ablations_{preset}",
        f"What taking a part out changes, preset {preset}",
        f"Compliance, {'; '.join(asked(plan, place) for place in among)}. NLL less that "
        "of robust mode as it is, with 95 % intervals; to the right of 0 the part was good "
        "for something.",
        "bars",
        "",
        "NLL, change",
        tuple(one for one in series if one.x),
    )


def _bars(plan: Plan, place: Place, changes: Mapping[str, Change | None]) -> Series:
    there = {name: change for name, change in changes.items() if change is not None}
    titles = variants(plan, place)
    return Series(
        "Five items" if place.items == "fixed" else "One to five items",
        tuple(titles[name].title for name in there),
        tuple(change.mean for change in there.values()),
        tuple(change.low for change in there.values()),
        tuple(change.high for change in there.values()),
        "ours" if place.items == "fixed" else "rival",
    )


def _ensemble_figure(plan: Plan, book: Book) -> Figure:
    series = tuple(_sizes(plan, place, book) for place in PLACES)
    return Figure(
        "ablations_ensemble",
        "How many networks",
        f"Compliance, {len(plan.study_seeds)} data sets; the best so many of "
        f"{len(plan.training_seeds)} networks, each ensemble fitted for itself. Means with 95 % "
        "intervals.",
        "lines",
        "Networks",
        "NLL",
        tuple(one for one in series if one.x),
    )


def _sizes(plan: Plan, place: Place, book: Book) -> Series:
    by_size = dict(_by_size(runs(plan, place), plan))
    found = {
        size: spread
        for size, cells in sorted(by_size.items())
        if (spread := book.summary(cells).spreads.get("nll")) is not None
    }
    bounds = [
        (one.low, one.high)
        for one in found.values()
        if one.low is not None and one.high is not None
    ]
    whole = len(bounds) == len(found)
    return Series(
        place.title,
        tuple(map(float, found)),
        tuple(one.mean for one in found.values()),
        tuple(low for low, _ in bounds) if whole else (),
        tuple(high for _, high in bounds) if whole else (),
        "ours" if place.preset == "paper" else "rival",
    )


def _by_size(cells: Runs, plan: Plan) -> list[tuple[int, Sequence[Cell]]]:
    others = [
        (int(name.removeprefix("ensemble_")), found)
        for name, found in cells.items()
        if name.startswith("ensemble_")
    ]
    return [(default_size(plan), cells[DEFAULT]), *others]
