"""What spoilt evidence did to each method, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan

import numpy as np

from lpf.experiments.naming import title_of
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.steps import Steps, overconfidence
from lpf.experiments.studies.tables import comparisons
from lpf.metrics import Difference

OURS = "lpf_robust"
ATTACK = "adversarial"
SURE = 0.05  # of the p-values below which one method is called better than another
Lost = Mapping[str, Difference | None]  # by method
KIND_TITLES = {
    "missing": "Items that are missing",
    "flipped": "Items that speak for another value",
    "noise": "Texts of random words",
    "contradiction": "Entities with a contradiction",
    "copies": "Copies that nobody marked",
    "foreign": "Texts about something else",
    "adversarial": "New items of credibility 1 for a wrong value",
}


def robustness_findings(
    all_steps: Mapping[str, Steps], lost: Mapping[str, Lost], book: Book
) -> list[str]:
    """``lost`` is what each method loses at the highest level, by kind."""
    sentences = [_least_lost(kind, all_steps[kind], lost[kind], book) for kind in all_steps]
    sentences.append(_where_others_win(all_steps, book))
    sentences.append(_attacked(all_steps[ATTACK], book))
    sentences.append(_surest(all_steps, book))
    return [sentence for sentence in sentences if sentence]


def _least_lost(kind: str, steps: Steps, lost: Lost, book: Book) -> str:
    known = sorted((one.mean, method) for method, one in lost.items() if one is not None)
    if not known:
        return ""
    (least, first), (most, last) = known[0], known[-1]
    best = _lowest(steps, -1, book)
    return (
        f"{KIND_TITLES[kind]}, {steps.words[-1]}: {title_of(first)} loses least NLL "
        f"({least:+z.3f}), {title_of(last)} most ({most:+z.3f})"
        f"{_ours_lost(lost[OURS], (first, last))}. The lowest NLL is then that of "
        f"{title_of(best)} ({steps.mean(best, 'nll', -1, book):z.3f}"
        f"{_ours_beside(steps, best, book)})."
    )


def _ours_lost(lost: Difference | None, named: tuple[str, str]) -> str:
    return "" if lost is None or OURS in named else f", the robust ensemble {lost.mean:+z.3f}"


def _ours_beside(steps: Steps, best: str, book: Book) -> str:
    ours = steps.mean(OURS, "nll", -1, book)
    return "" if best == OURS or isnan(ours) else f"; the robust ensemble has {ours:z.3f}"


def _lowest(steps: Steps, place: int, book: Book) -> str:
    def nll(method: str) -> float:
        found = steps.mean(method, "nll", place, book)
        return np.inf if isnan(found) else found

    return min(steps.runs, key=nll)


def _where_others_win(all_steps: Mapping[str, Steps], book: Book) -> str:
    places = [
        (kind, place) for kind, steps in all_steps.items() for place in range(1, len(steps.x))
    ]
    first = sum(_lowest(all_steps[kind], place, book) == OURS for kind, place in places)
    begin = (
        f"The robust ensemble has the lowest NLL at {first} of {len(places)} levels of spoilt "
        f"evidence"
    )
    lost = [told for kind, place in places if (told := _better(kind, all_steps[kind], place, book))]
    if not lost:
        return f"{begin}; at none is another method better by more than chance."
    return (
        f"{begin}; by more than chance (p below {SURE:g}, corrected for the number of methods) it "
        f"is beaten at {len(lost)}: {'; '.join(lost)}."
    )


def _better(kind: str, steps: Steps, place: int, book: Book) -> str:
    """Who beats the robust ensemble there, and by how much."""
    better = [
        (one.name, one.difference.mean)
        for one in comparisons(OURS, steps.at(place), book)
        if one.difference is not None and one.difference.mean > 0
        if one.adjusted is not None and one.adjusted < SURE
    ]
    if not better:
        return ""
    names = ", ".join(f"{title_of(name)} by {mean:z.3f}" for name, mean in better)
    return f"{kind} at {steps.words[place]} ({names})"


def _attacked(steps: Steps, book: Book) -> str:
    """What a planted item does."""
    parts = []
    for method in steps.runs:
        before, after = (steps.mean(method, "accuracy", place, book) for place in (0, -1))
        if not isnan(after):
            parts.append((before - after, before, after, method))
    if not parts:
        return ""
    parts.sort()
    told = "; ".join(
        f"{title_of(method)} from {before:z.3f} to {after:z.3f}"
        for _, before, after, method in parts
    )
    items = "one planted item" if steps.x[-1] == 1 else f"{steps.x[-1]:g} planted items"
    return f"Accuracy with {items} of credibility 1 for a wrong value, least loss first: {told}."


def _surest(all_steps: Mapping[str, Steps], book: Book) -> str:
    gaps = {
        kind: gap
        for kind, steps in all_steps.items()
        if not isnan(gap := overconfidence(steps, OURS, -1, book))
    }
    if not gaps:
        return ""
    kind = max(gaps, key=lambda one: gaps[one])
    if gaps[kind] <= 0:
        return "At the highest level of no kind is the robust ensemble surer than it is right."
    steps = all_steps[kind]
    sure, right = (
        steps.mean(OURS, measure, -1, book) for measure in ("mean_confidence", "accuracy")
    )
    return (
        f"The robust ensemble is most overconfident under {kind} at {steps.words[-1]}: mean "
        f"confidence {sure:.3f} at an accuracy of {right:.3f}, a gap of {gaps[kind]:+z.3f} against "
        f"{overconfidence(steps, OURS, 0, book):+z.3f} untouched."
    )
