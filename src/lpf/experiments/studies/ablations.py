"""Robust mode with one part taken out at a time: what is each of them good for?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lpf.experiments.cells import Cell
from lpf.experiments.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value
from lpf.experiments.plan import Plan
from lpf.experiments.studies.ablation_parts import (
    DEFAULT,
    INTEGRATORS,
    PARTS,
    PLACES,
    TELLING,
    UNEQUAL_PLACES,
    Change,
    Place,
    Runs,
    Variant,
    changes_of,
    data_sets,
    default_size,
    ensembles,
    exam_of,
    runs,
    variants,
)
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.tables import COLUMNS
from lpf.experiments.summaries import Summary

Changes = Mapping[str, Mapping[str, Change | None]]
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
            tuple(_findings(plan, changes)),
            tuple(_table(plan, place, changes[place.name], book) for place in ALL_PLACES),
            tuple(
                figure
                for figure in (*_change_figures(plan, changes), _ensemble_figure(plan, book))
                if figure.series
            ),
        )


def _table(plan: Plan, place: Place, changes: Mapping[str, Change | None], book: Book) -> Table:
    cells = runs(plan, place)
    errors = changes_of(cells, book, "error")
    columns = (
        COLUMNS["nll"],
        Column("change", "NLL, change", "number", "lower", 4),
        Column("p", "p (Holm)", "share", None, 4),
        COLUMNS["accuracy"],
        Column("errors", "Errors, change", "share", "lower", 4),
        COLUMNS["ece"],
        COLUMNS["ece_null"],
    )
    rows = [_row(DEFAULT, _default_title(plan), book.summary(cells[DEFAULT]), None, None)]
    for name, variant in variants(plan, place).items():
        summary = book.summary(cells[name])
        rows.append(_row(name, variant.title, summary, changes[name], errors[name]))
    return Table(
        f"ablations_{place.name}",
        f"One part taken out: {place.title}",
        f"Compliance, {_asked(plan, place)}. Changes are of the variant less the default, paired "
        "by entity and data set, with 95 % intervals and p-values corrected for the number of "
        f"variants: above 0, the part taken out was good for something. {_how(place)}",
        columns,
        tuple(rows),
    )


def _how(place: Place) -> str:
    if place.shares:
        return "Without dividing, all else is fitted anew."
    return (
        "ε and ρ are set to 0 after all was fitted; integrators take the place of the mean at "
        "which it was fitted."
    )


def _row(
    name: str, title: str, summary: Summary, change: Change | None, errors: Change | None
) -> Row:
    nll, accuracy, ece, null = (
        None if (one := summary.spreads.get(measure)) is None else one.value()
        for measure in ("nll", "accuracy", "ece", "ece_null")
    )
    p = None if change is None else Value(change.p)
    cells = (nll, _shown(change), p, accuracy, _shown(errors), ece, null)
    note = "; ".join(summary.notes) or None
    return Row(name, title, cells, "ours" if name == DEFAULT else "rival", note)


def _shown(change: Change | None) -> Value | None:
    return None if change is None else Value(change.mean, low=change.low, high=change.high)


def _change_figures(plan: Plan, changes: Changes) -> list[Figure]:
    """One a preset; a set of bars a number of items."""
    figures = []
    for preset in dict.fromkeys(place.preset for place in PLACES):
        among = [place for place in PLACES if place.preset == preset]
        series = tuple(_bars(plan, place, changes[place.name]) for place in among)
        figures.append(
            Figure(
                f"ablations_{preset}",
                f"What taking a part out changes, preset {preset}",
                f"Compliance, {'; '.join(_asked(plan, place) for place in among)}. NLL less that "
                "of robust mode as it is, with 95 % intervals; to the right of 0 the part was good "
                "for something.",
                "bars",
                "",
                "NLL, change",
                tuple(one for one in series if one.x),
            )
        )
    return figures


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


def _by_size(cells: Runs, plan: Plan) -> list[tuple[int, list[Cell]]]:
    others = [
        (int(name.removeprefix("ensemble_")), found)
        for name, found in cells.items()
        if name.startswith("ensemble_")
    ]
    return [(default_size(plan), cells[DEFAULT]), *others]


def _findings(plan: Plan, changes: Changes) -> list[str]:
    sentences = [_integral(changes)]
    sentences += [_part(name, PARTS[name], changes) for name in PARTS]
    sentences += _networks(plan, changes)
    return [*sentences, *_unequal(changes)]


def _integral(changes: Changes) -> str:
    """Said plainly: the paper's central step is one of the parts."""
    found = [
        (INTEGRATORS[name].title, place, change)
        for place in PLACES
        for name in INTEGRATORS
        if (change := changes[place.name][name]) is not None
    ]
    if not found:
        return "No integral could be compared with decoding at the mean."
    better = [one for one in found if one[2].verdict == "better"]
    worse = [one for one in found if one[2].verdict == "worse"]
    means = [change.mean for *_, change in found]
    reach = f"NLL changes by {min(means):+.4f} to {max(means):+.4f}"
    if better:
        named = "; ".join(f"{title}, {place.title}: {change}" for title, place, change in better)
        return (
            f"Integrating over q(z|e) instead of decoding at its mean lowers NLL beyond chance in "
            f"{len(better)} of {len(found)} comparisons ({named}) and raises it in {len(worse)}; "
            f"{reach}."
        )
    return (
        f"The integral over q(z|e) brings nothing: in none of {len(found)} comparisons is any "
        f"integrator better than decoding at the mean beyond chance, in {len(worse)} it is worse; "
        f"{reach}, and no 95 % interval reaches below {min(one[2].low for one in found):+.4f}."
    )


def _part(name: str, variant: Variant, changes: Changes) -> str:
    """One variant over all places."""
    found = [
        (place, change) for place in PLACES if (change := changes[place.name][name]) is not None
    ]
    if not found:
        return f"{variant.title}: could not be compared."
    told = "; ".join(f"{place.title} {change}" for place, change in found)
    worse, better = (
        sum(change.verdict == verdict for _, change in found) for verdict in ("worse", "better")
    )
    return (
        f"{variant.title}: NLL is worse beyond chance on {worse} and better on {better} of "
        f"{len(found)} tests ({told})."
    )


def _networks(plan: Plan, changes: Changes) -> list[str]:
    sizes = ensembles(plan)
    return [
        f"Against {default_size(plan)} networks: {_lowered(_part(name, variant, changes))}"
        for name, variant in sizes.items()
    ]


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _unequal(changes: Changes) -> list[str]:
    found = [(place, changes[place.name]) for place in UNEQUAL_PLACES]
    return [sentence for place, among in found if (sentence := _divided(place, among))]


def _divided(place: Place, changes: Mapping[str, Change | None]) -> str | None:
    """What dividing by the prior is good for where some values are rarer than others."""
    undivided = changes["undivided"]
    if undivided is None:
        return None
    where = f"Where values have shares of {place.share_words}"
    if place.balanced and abs(undivided.mean) < TELLING:
        return (
            f"{where}, training draws all values equally often, so that the shares it divides by "
            f"are even and leaving that out changes nothing ({undivided})."
        )
    verdict = {
        "worse": "is worth it",
        "better": "does harm",
        "neither": "makes no difference that can be told from chance",
    }[undivided.verdict]
    told = f"{where}, dividing the prior out {verdict}: without it NLL changes by {undivided}"
    return f"{told}, all else fitted anew{_before_fitting(changes)}."


def _before_fitting(changes: Mapping[str, Change | None]) -> str:
    divided, undivided = changes["unfitted"], changes["unfitted_undivided"]
    if divided is None or undivided is None:
        return ""
    return (
        f"; before anything is fitted NLL is {divided.mean:+.4f} from the default's with the prior "
        f"divided out and {undivided.mean:+.4f} without"
    )


def _default_title(plan: Plan) -> str:
    return f"Robust mode as it is: at the mean, {default_size(plan)} networks"


def _asked(plan: Plan, place: Place) -> str:
    sets = len(data_sets(plan, place))
    many = "five items" if place.items == "fixed" else "one to five items"
    return (
        f"{exam_of(plan, place).entities:,} new companies with {many} each, "
        f"{sets} data {'set' if sets == 1 else 'sets'}"
    )
