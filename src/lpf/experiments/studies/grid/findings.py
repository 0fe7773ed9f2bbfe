"""What the paper's grid says of its knobs and of robust mode, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from lpf.experiments.judging.comparisons import compare
from lpf.experiments.plan import Plan
from lpf.experiments.printed.tables import printed_table
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.grid.scores import BAD_ECE, Scored, published, raw_nll, with_items
from lpf.experiments.studies.grid.settings import DEFAULT, at, grid, robust_at, words
from lpf.experiments.studies.knobs.cells import KNOBS, as_it_came
from lpf.metrics import Difference

TELLING = 0.0001  # of a difference in NLL


def grid_findings(plan: Plan, scored: Sequence[Scored], book: Book) -> list[str]:
    return [
        _calibrated(scored),
        _movers(plan, scored),
        *_ranks(scored),
        *_against_robust(plan, scored, book),
        _printed_words(),
    ]


def _calibrated(scored: Sequence[Scored]) -> str:
    raw = sum(one.raw["ece"] > BAD_ECE for one in scored)
    tempered = sum(one.tempered["ece"] > BAD_ECE for one in scored)
    chance = sum(one.raw["ece"] <= one.chance for one in scored)
    return (
        f"Of {len(scored)} settings {raw} have an ECE above {BAD_ECE:g} as answers come, and "
        f"{tempered} at a fitted temperature; {chance} cannot be told from a "
        "perfectly calibrated predictor as they come (at 5 %)."
    )


def _movers(plan: Plan, scored: Sequence[Scored]) -> str:
    """Which knob moves the means of accuracy and of ECE furthest."""
    told = []
    for measure, title in (("accuracy", "accuracy"), ("ece", "ECE")):
        reach = {name: _reach(name, values, measure, scored) for name, values in grid(plan).items()}
        most = max(reach, key=lambda name: reach[name])
        others = ", ".join(
            f"{KNOBS[name].symbol} by {moved:z.3f}" for name, moved in reach.items() if name != most
        )
        told.append(f"{title} {KNOBS[most].symbol}, by {reach[most]:z.3f} ({others})")
    return f"On average over the others, the knob that moves most is for {' and for '.join(told)}."


def _reach(name: str, values: Sequence[float], measure: str, scored: Sequence[Scored]) -> float:
    means = [
        fmean(found)
        for value in values
        if (found := [one.raw[measure] for one in scored if one.setting[name] == value])
    ]
    return max(means) - min(means)


def _ranks(scored: Sequence[Scored]) -> list[str]:
    """Where the paper's own settings stand among those with as many items."""
    five = sorted(with_items(scored, DEFAULT["top_k"]), key=raw_nll)
    told = [
        f"{name} ({words(one.setting)}) has rank {five.index(one) + 1} of {len(five)} by NLL "
        f"({one.raw['nll']:z.4f}, ECE {one.raw['ece']:z.3f})."
        for name, one in published(scored)
    ]
    return [f"Among settings with five items: {' '.join(told)}"] if told else []


def _against_robust(plan: Plan, scored: Sequence[Scored], book: Book) -> list[str]:
    """The best in hindsight against robust mode with as many items, company by company."""
    sentences = []
    for how, tempered in (("as answers come", False), ("at fitted temperatures", True)):
        duels = [
            duel
            for top_k in grid(plan)["top_k"]
            if (duel := _duel(plan, int(top_k), scored, book, tempered)) is not None
        ]
        if duels:
            sentences.append(_duels(how, duels))
    return sentences


def _duel(
    plan: Plan, top_k: int, scored: Sequence[Scored], book: Book, tempered: bool
) -> tuple[str, Difference] | None:
    among = with_items(scored, top_k)
    if not among:
        return None
    best = min(among, key=lambda one: (one.tempered if tempered else one.raw)["nll"])
    ours, theirs = book.answered(robust_at(plan, top_k)), book.answered(at(plan, best.setting))
    judged = theirs if tempered else as_it_came(theirs)
    found = compare([ours], {"best": [judged]})[0].difference
    return None if found is None else (words(best.setting), found)


def _duels(how: str, duels: Sequence[tuple[str, Difference]]) -> str:
    # With many items all losses are next to nothing, and differences of nothing can be certain.
    telling = [found for _, found in duels if abs(found.mean) >= TELLING]
    won, lost = sum(one.high < 0 for one in telling), sum(one.low > 0 for one in telling)
    told = "; ".join(
        f"{setting}: {found.mean:+z.4f} ({found.low:+z.4f} to {found.high:+z.4f})"
        for setting, found in duels
    )
    return (
        f"Robust mode with the same network, against the setting with the lowest NLL for as many "
        f"items, picked in hindsight, {how}: better beyond chance, and by {TELLING:g} or more, for "
        f"{won} and worse for {lost} of {len(duels)} numbers of items. Robust mode's NLL less the "
        f"setting's, with 95 % intervals: {told}."
    )


def _printed_words() -> str:
    claimed = printed_table("search_space").value("combinations", "count")
    assert claimed is not None  # a row of the paper
    doubt = f" {' '.join(claimed.doubts)}" if claimed.doubts else ""
    return f"The paper says that it tried {claimed.value:g} settings.{doubt}"
