"""How each setting of the paper's grid scored, and which of them are worth a look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lpf import metrics
from lpf.experiments.answered import Answered
from lpf.experiments.judging.measures import NULL_DRAWS
from lpf.experiments.plan import Plan
from lpf.experiments.studies.grid.settings import DEFAULT, HEADLINE, Setting, grid
from lpf.experiments.studies.knobs.cells import as_it_came

BAD_ECE = 0.1


@dataclass(frozen=True)
class Scored:
    """One setting: measures as its answers come and at the fitted temperature. ``chance`` is the
    ECE that a perfectly calibrated predictor with its confidences stays below in 95 % of cases."""

    setting: Setting
    raw: Mapping[str, float]
    tempered: Mapping[str, float]
    chance: float

    @classmethod
    def of(cls, setting: Setting, answered: Answered) -> Scored:
        came = as_it_came(answered)
        null = metrics.ece_null(came.answers, np.random.default_rng(0), NULL_DRAWS)
        return cls(setting, measured(came), measured(answered), null.quantile_95)


def measured(answered: Answered) -> dict[str, float]:
    rows, labels = answered.answers, answered.labels.astype(np.int64)
    return {
        "accuracy": metrics.accuracy(rows, labels),
        "nll": metrics.nll(rows, labels),
        "ece": metrics.ece(rows, labels),
    }


def picked(plan: Plan, scored: Sequence[Scored]) -> list[tuple[str, Scored]]:
    """By what, and whom. The more items the better, which is not a choice of the method's: so the
    best is picked for every number of items, and by other measures among those with five, which is
    what the paper's companies have. Ties go to the lower NLL."""
    found = [
        (f"Lowest NLL, top_k = {top_k:g}", min(among, key=raw_nll))
        for top_k in grid(plan)["top_k"]
        if (among := with_items(scored, top_k))
    ]
    return [*found, *_picked_of_five(scored), *published(scored)]


def _picked_of_five(scored: Sequence[Scored]) -> list[tuple[str, Scored]]:
    five = with_items(scored, DEFAULT["top_k"])
    if not five:
        return []
    told = f", top_k = {DEFAULT['top_k']:g}"
    accurate = min(five, key=lambda one: (-one.raw["accuracy"], raw_nll(one)))
    return [
        (f"Highest accuracy{told}", accurate),
        (f"Lowest ECE{told}", min(five, key=lambda one: one.raw["ece"])),
        (f"Highest NLL{told}", max(five, key=raw_nll)),
    ]


def published(scored: Sequence[Scored]) -> list[tuple[str, Scored]]:
    settings = (("The paper's default", DEFAULT), ("The paper's headline", HEADLINE))
    return [(name, one) for name, setting in settings for one in scored if one.setting == setting]


def with_items(scored: Sequence[Scored], top_k: float) -> list[Scored]:
    return [one for one in scored if one.setting["top_k"] == top_k]


def raw_nll(one: Scored) -> float:
    return one.raw["nll"]
