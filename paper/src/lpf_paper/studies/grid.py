"""All combinations of the paper's settings: the grid that the paper says was searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import numpy as np

from lpf import metrics
from lpf.evaluation import NULL_DRAWS, Cell, Predictions, compare
from lpf.metrics import Difference
from lpf_paper.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value
from lpf_paper.plan import ExperimentPlan
from lpf_paper.printed import printed_table
from lpf_paper.studies.knobs_tables import (
    KNOBS,
    MANY_ITEMS,
    many_items,
    paper_cell,
    robust_cell,
    without_temperature,
)
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.study_tables import COLUMNS, renamed_column

Setting = Mapping[str, int | float]
GRID: Mapping[str, tuple[int | float, ...]] = {
    "n_samples": (4, 8, 16, 32),
    "temperature": (0.8, 1.0, 1.2, 1.5),
    "alpha": (0.1, 1.0, 2.0, 5.0),
    "top_k": (1, 3, 5, 10, 20),
}
CORNER: Mapping[str, tuple[int | float, ...]] = {
    "n_samples": (4, 16),
    "temperature": (0.8, 1.0),
    "alpha": (0.1, 2.0),
    "top_k": (1, 5, 20),
}
DEFAULT: Setting = {name: knob.default for name, knob in KNOBS.items()}
HEADLINE: Setting = {"n_samples": 4, "temperature": 0.8, "alpha": 0.1, "top_k": 5}
BEST_NETWORK = 0


def grid(plan: ExperimentPlan) -> Mapping[str, tuple[int | float, ...]]:
    """The whole grid, or the corner with the paper's two published settings."""
    return GRID if plan.grid else CORNER


def settings(plan: ExperimentPlan) -> list[Setting]:
    names = grid(plan)
    return [dict(zip(names, values, strict=True)) for values in product(*names.values())]


def at(plan: ExperimentPlan, setting: Setting) -> Cell:
    return paper_cell(plan, BEST_NETWORK, setting)


def robust_at(plan: ExperimentPlan, top_k: int) -> Cell:
    """The same network in robust mode, with the same number of items."""
    return robust_cell(plan, BEST_NETWORK, {"top_k": top_k})


def words(setting: Setting) -> str:
    return ", ".join(f"{KNOBS[name].symbol} = {value:g}" for name, value in setting.items())


def where(plan: ExperimentPlan, count: int) -> str:
    """For captions; ``count`` is the number of settings with answers."""
    total, part = len(settings(plan)), "" if plan.grid else ", a corner of the paper's grid"
    crashed = f" {total - count} of {total} settings crashed." if count < total else ""
    entities = many_items(plan, MANY_ITEMS).entities
    return (
        f"{count} settings{part}, the best network of the search, compliance, {entities:,} "
        f"new companies with {MANY_ITEMS} items to choose from.{crashed}"
    )


BAD_ECE = 0.1


@dataclass(frozen=True)
class Scored:
    """One setting: measures without and with the fitted temperature. ``chance`` is the
    ECE that a perfectly calibrated predictor with its confidences stays below in 95 % of cases."""

    setting: Setting
    raw: Mapping[str, float]
    tempered: Mapping[str, float]
    chance: float

    @classmethod
    def of(cls, setting: Setting, answered: Predictions) -> Scored:
        raw = without_temperature(answered)
        null = metrics.ece_null(raw.answers, np.random.default_rng(0), NULL_DRAWS)
        return cls(setting, measured(raw), measured(answered), null.quantile_95)


def measured(answered: Predictions) -> dict[str, float]:
    rows, labels = answered.answers, answered.labels.astype(np.int64)
    return {
        "accuracy": metrics.accuracy(rows, labels),
        "nll": metrics.nll(rows, labels),
        "ece": metrics.ece(rows, labels),
    }


def picked(plan: ExperimentPlan, scored: Sequence[Scored]) -> list[tuple[str, Scored]]:
    """Pairs of criterion and setting. More items are always better, but their number is not a
    choice of the method. So the best setting is picked for every number of items, and by other
    measures among those with five, as the paper's companies have. Ties go to the lower NLL."""
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
    items = f", top_k = {DEFAULT['top_k']:g}"
    accurate = min(five, key=lambda one: (-one.raw["accuracy"], raw_nll(one)))
    return [
        (f"Highest accuracy{items}", accurate),
        (f"Lowest ECE{items}", min(five, key=lambda one: one.raw["ece"])),
        (f"Highest NLL{items}", max(five, key=raw_nll)),
    ]


def published(scored: Sequence[Scored]) -> list[tuple[str, Scored]]:
    settings = (("The paper's default", DEFAULT), ("The paper's headline", HEADLINE))
    return [(name, one) for name, setting in settings for one in scored if one.setting == setting]


def with_items(scored: Sequence[Scored], top_k: float) -> list[Scored]:
    return [one for one in scored if one.setting["top_k"] == top_k]


def raw_nll(one: Scored) -> float:
    return one.raw["nll"]


SMALLEST_DIFFERENCE = 0.0001  # smallest difference in NLL that counts


def grid_findings(
    plan: ExperimentPlan, scored: Sequence[Scored], results: ResultReader
) -> list[str]:
    return [
        _calibrated(scored),
        _movers(plan, scored),
        *_ranks(scored),
        *_against_robust(plan, scored, results),
        _printed_words(),
    ]


def _calibrated(scored: Sequence[Scored]) -> str:
    raw = sum(one.raw["ece"] > BAD_ECE for one in scored)
    tempered = sum(one.tempered["ece"] > BAD_ECE for one in scored)
    chance = sum(one.raw["ece"] <= one.chance for one in scored)
    return (
        f"Of {len(scored)} settings {raw} have an ECE above {BAD_ECE:g} without a fitted "
        f"temperature, and {tempered} with one; {chance} cannot be distinguished from a "
        "perfectly calibrated predictor without one (at 5 %)."
    )


def _movers(plan: ExperimentPlan, scored: Sequence[Scored]) -> str:
    """Which knob changes mean accuracy and mean ECE most."""
    movers = []
    for measure, title in (("accuracy", "accuracy"), ("ece", "ECE")):
        reach = {name: _reach(name, values, measure, scored) for name, values in grid(plan).items()}
        most = max(reach, key=lambda name: reach[name])
        others = ", ".join(
            f"{KNOBS[name].symbol} by {moved:z.3f}" for name, moved in reach.items() if name != most
        )
        movers.append(f"{title} {KNOBS[most].symbol}, by {reach[most]:z.3f} ({others})")
    listed = " and for ".join(movers)
    return f"On average over the others, the knob that moves most is for {listed}."


def _reach(name: str, values: Sequence[float], measure: str, scored: Sequence[Scored]) -> float:
    means = [
        fmean(found)
        for value in values
        if (found := [one.raw[measure] for one in scored if one.setting[name] == value])
    ]
    return max(means) - min(means)


def _ranks(scored: Sequence[Scored]) -> list[str]:
    """The ranks of the paper's own settings among those with the same number of items."""
    five = sorted(with_items(scored, DEFAULT["top_k"]), key=raw_nll)
    ranks = [
        f"{name} ({words(one.setting)}) has rank {five.index(one) + 1} of {len(five)} by NLL "
        f"({one.raw['nll']:z.4f}, ECE {one.raw['ece']:z.3f})."
        for name, one in published(scored)
    ]
    return [f"Among settings with five items: {' '.join(ranks)}"] if ranks else []


def _against_robust(
    plan: ExperimentPlan, scored: Sequence[Scored], results: ResultReader
) -> list[str]:
    """The best settings in hindsight against robust mode, paired by company."""
    sentences = []
    for how, tempered in (("as answers come", False), ("at fitted temperatures", True)):
        duels = [
            duel
            for top_k in grid(plan)["top_k"]
            if (duel := _duel(plan, int(top_k), scored, results, tempered)) is not None
        ]
        if duels:
            sentences.append(_duels(how, duels))
    return sentences


def _duel(
    plan: ExperimentPlan,
    top_k: int,
    scored: Sequence[Scored],
    results: ResultReader,
    tempered: bool,
) -> tuple[str, Difference] | None:
    among = with_items(scored, top_k)
    if not among:
        return None
    best = min(among, key=lambda one: (one.tempered if tempered else one.raw)["nll"])
    ours, best_run = (
        results.answered(robust_at(plan, top_k)),
        results.answered(at(plan, best.setting)),
    )
    paper = best_run if tempered else without_temperature(best_run)
    difference = compare([ours], {"best": [paper]})[0].difference
    return None if difference is None else (words(best.setting), difference)


def _duels(how: str, duels: Sequence[tuple[str, Difference]]) -> str:
    # With many items all losses are nearly 0, and tiny differences can be significant.
    compared = [found for _, found in duels if abs(found.mean) >= SMALLEST_DIFFERENCE]
    won, lost = sum(one.high < 0 for one in compared), sum(one.low > 0 for one in compared)
    listed = "; ".join(
        f"{setting}: {found.mean:+z.4f} ({found.low:+z.4f} to {found.high:+z.4f})"
        for setting, found in duels
    )
    return (
        f"Robust mode with the same network, against the setting with the lowest NLL for as many "
        f"items, picked in hindsight, {how}: better beyond chance, and by {SMALLEST_DIFFERENCE:g} "
        f"or more, for {won} and worse for {lost} of {len(duels)} numbers of items. Robust mode's "
        f"NLL less the setting's, with 95 % intervals: {listed}."
    )


def _printed_words() -> str:
    claimed = printed_table("search_space").value("combinations", "count")
    assert claimed is not None  # the paper prints this row
    doubt = f" {' '.join(claimed.doubts)}" if claimed.doubts else ""
    return f"The paper says that it tried {claimed.value:g} settings.{doubt}"


MEASURES = ("accuracy", "nll", "ece")
TEMPERED = ("nll", "ece")


def best_table(plan: ExperimentPlan, scored: Sequence[Scored], results: ResultReader) -> Table:
    columns = (
        *(Column(name, knob.symbol, "number", None, 1) for name, knob in KNOBS.items()),
        *(COLUMNS[name] for name in MEASURES),
        *(renamed_column(name, "tempered", " after T") for name in TEMPERED),
    )
    rows = [_picked_row(name, one) for name, one in picked(plan, scored)]
    rows += [_robust_row(plan, int(top_k), results) for top_k in grid(plan)["top_k"]]
    return Table(
        "grid_best",
        "The best settings",
        f"{where(plan, len(scored))} Each is picked on the companies on which it is scored, which "
        "favours it; nothing was picked on validation data. Measured without a fitted temperature; "
        "'after T' is at a temperature fitted on 135 validation companies with five items each. "
        "Robust mode is fitted on the same 135 and not picked.",
        columns,
        tuple(rows),
    )


def knobs_table(plan: ExperimentPlan, scored: Sequence[Scored]) -> Table:
    """The effect of each knob, averaged over all others."""
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
        "Effect of each knob, over all settings of the others",
        f"{where(plan, len(scored))} Means over settings, without a temperature except in the last "
        "column.",
        columns,
        tuple(row for row in rows if row is not None),
    )


def _picked_row(name: str, one: Scored) -> Row:
    knobs = tuple(Value(float(one.setting[knob])) for knob in KNOBS)
    raw = tuple(Value(one.raw[measure]) for measure in MEASURES)
    tempered = tuple(Value(one.tempered[measure]) for measure in TEMPERED)
    return Row(name, name, (*knobs, *raw, *tempered))


def _robust_row(plan: ExperimentPlan, top_k: int, results: ResultReader) -> Row:
    answered, title = results.answered(robust_at(plan, top_k)), f"Robust mode, top_k = {top_k}"
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


@dataclass(frozen=True)
class PaperGridStudy:
    name: str = "paper_grid"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        references = [robust_at(plan, int(top_k)) for top_k in grid(plan)["top_k"]]
        return [*(at(plan, setting) for setting in settings(plan)), *references]

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        answers = [(one, results.answered(at(plan, one))) for one in settings(plan)]
        scored = [Scored.of(one, run) for one, run in answers if run.error is None]
        shown = bool(scored)
        return StudyResult(
            self.name,
            f"{len(answers)} settings of paper mode",
            "How good can paper mode be made by its knobs alone, and how many of its settings are "
            "calibrated?",
            tuple(grid_findings(plan, scored, results)) if shown else ("Every setting crashed.",),
            (best_table(plan, scored, results), knobs_table(plan, scored)) if shown else (),
            tuple(_scatter(plan, scored, tempered) for tempered in (False, True)) if shown else (),
        )


def _scatter(plan: ExperimentPlan, scored: Sequence[Scored], tempered: bool) -> Figure:
    """One series per α, which separates the settings most."""
    series = [_points(alpha, scored, tempered) for alpha in grid(plan)["alpha"]]
    how = "each at its fitted temperature" if tempered else "as answers come"
    return Figure(
        "grid_tempered" if tempered else "grid",
        f"Accuracy and calibration of all settings, {how}",
        f"{where(plan, len(scored))} The best place is the top left.",
        "points",
        "ECE",
        "Accuracy",
        tuple(one for one in series if one.x),
    )


def _points(alpha: float, scored: Sequence[Scored], tempered: bool) -> Series:
    among = [one for one in scored if one.setting["alpha"] == alpha]
    found = [one.tempered if tempered else one.raw for one in among]
    return Series(
        f"α = {alpha:g}",
        tuple(one["ece"] for one in found),
        tuple(one["accuracy"] for one in found),
    )
