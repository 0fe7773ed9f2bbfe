"""Corrupted evidence at test time: how much does each method lose, and does it notice?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan

import numpy as np

from lpf.evaluation import Cell, DomainData, EvalSpec, TrainSpec, standing_of, title_of
from lpf.metrics import Difference
from lpf_paper.exhibits import Column, Figure, Row, StudyResult, Table, Value
from lpf_paper.perturbations import KINDS, Perturbation
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.compliance_runs import DOMAIN
from lpf_paper.studies.domains_tables import TEST_SEED, domain_train_spec
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.study_figures import (
    Steps,
    gap_figure,
    lost_nll,
    overconfidence,
    step_figure,
    step_table,
)
from lpf_paper.studies.study_tables import comparisons, counted


def compliance_train_spec(
    plan: ExperimentPlan, seed: int, entities: int | None = None
) -> TrainSpec:
    """The training data of the domains study, whose networks are shared."""
    return replace(domain_train_spec(plan, DOMAIN, seed), entities=entities)


def untouched(plan: ExperimentPlan) -> EvalSpec:
    return EvalSpec(DomainData(DOMAIN, seed=TEST_SEED), plan.ablation_entities)


def levels_of(plan: ExperimentPlan, kind: str) -> tuple[float, ...]:
    """0 and the number of levels that the plan has, including the highest."""
    levels = KINDS[kind].levels
    count = min(plan.levels, len(levels))
    places = np.linspace(len(levels) - 1, 0, count).round().astype(int)
    return (0.0, *(levels[place] for place in sorted(places)))


def steps_of(plan: ExperimentPlan, kind: str) -> Steps:
    levels = levels_of(plan, kind)
    runs = {
        method: tuple(_cells(plan, method, kind, level) for level in levels)
        for method in plan.robustness_methods
    }
    return Steps(levels, tuple(level_word(kind, level) for level in levels), runs)


def level_word(kind: str, level: float) -> str:
    if level == 0:
        return "untouched"
    return f"{level:g}" if KINDS[kind].counts else f"{level:.0%}"


def _cells(plan: ExperimentPlan, method: str, kind: str, level: float) -> tuple[Cell, ...]:
    eval_spec = untouched(plan)
    if level > 0:
        eval_spec = EvalSpec(eval_spec.data, eval_spec.entities, Perturbation(kind, level))
    return tuple(
        Cell(compliance_train_spec(plan, seed), eval_spec, method) for seed in plan.study_seeds
    )


def data_sets(plan: ExperimentPlan) -> str:
    """For captions."""
    return counted(len(plan.study_seeds), "data set")


OURS = "lpf_robust"
ATTACK = "adversarial"
SIGNIFICANT = 0.05  # p-value below which one method is called better than another
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
    all_steps: Mapping[str, Steps], lost: Mapping[str, Lost], results: ResultReader
) -> list[str]:
    """``lost`` is what each method loses at the highest level, by kind."""
    sentences = [_least_lost(kind, all_steps[kind], lost[kind], results) for kind in all_steps]
    sentences.append(_where_others_win(all_steps, results))
    sentences.append(_attacked(all_steps[ATTACK], results))
    sentences.append(_surest(all_steps, results))
    return [sentence for sentence in sentences if sentence]


def _least_lost(kind: str, steps: Steps, lost: Lost, results: ResultReader) -> str:
    known = sorted((one.mean, method) for method, one in lost.items() if one is not None)
    if not known:
        return ""
    (least, first), (most, last) = known[0], known[-1]
    best = _lowest(steps, -1, results)
    return (
        f"{KIND_TITLES[kind]}, {steps.words[-1]}: {title_of(first)} loses least NLL "
        f"({least:+z.3f}), {title_of(last)} most ({most:+z.3f})"
        f"{_ours_lost(lost[OURS], (first, last))}. The lowest NLL is then that of "
        f"{title_of(best)} ({steps.mean(best, 'nll', -1, results):z.3f}"
        f"{_ours_beside(steps, best, results)})."
    )


def _ours_lost(lost: Difference | None, named: tuple[str, str]) -> str:
    return "" if lost is None or OURS in named else f", the robust ensemble {lost.mean:+z.3f}"


def _ours_beside(steps: Steps, best: str, results: ResultReader) -> str:
    ours = steps.mean(OURS, "nll", -1, results)
    return "" if best == OURS or isnan(ours) else f"; the robust ensemble has {ours:z.3f}"


def _lowest(steps: Steps, place: int, results: ResultReader) -> str:
    def nll(method: str) -> float:
        found = steps.mean(method, "nll", place, results)
        return np.inf if isnan(found) else found

    return min(steps.runs, key=nll)


def _where_others_win(all_steps: Mapping[str, Steps], results: ResultReader) -> str:
    places = [
        (kind, place) for kind, steps in all_steps.items() for place in range(1, len(steps.x))
    ]
    first = sum(_lowest(all_steps[kind], place, results) == OURS for kind, place in places)
    begin = (
        f"The robust ensemble has the lowest NLL at {first} of {len(places)} levels of "
        "corrupted evidence"
    )
    lost = [
        names for kind, place in places if (names := _better(kind, all_steps[kind], place, results))
    ]
    if not lost:
        return f"{begin}; at none is another method better by more than chance."
    return (
        f"{begin}; by more than chance (p below {SIGNIFICANT:g}, corrected for the number of "
        f"methods) it is beaten at {len(lost)}: {'; '.join(lost)}."
    )


def _better(kind: str, steps: Steps, place: int, results: ResultReader) -> str:
    """Methods that beat the robust ensemble at this level, and by how much."""
    better = [
        (one.name, one.difference.mean)
        for one in comparisons(OURS, steps.at(place), results)
        if one.difference is not None and one.difference.mean > 0
        if one.adjusted is not None and one.adjusted < SIGNIFICANT
    ]
    if not better:
        return ""
    names = ", ".join(f"{title_of(name)} by {mean:z.3f}" for name, mean in better)
    return f"{kind} at {steps.words[place]} ({names})"


def _attacked(steps: Steps, results: ResultReader) -> str:
    """The effect of planted items."""
    parts = []
    for method in steps.runs:
        before, after = (steps.mean(method, "accuracy", place, results) for place in (0, -1))
        if not isnan(after):
            parts.append((before - after, before, after, method))
    if not parts:
        return ""
    parts.sort()
    listed = "; ".join(
        f"{title_of(method)} from {before:z.3f} to {after:z.3f}"
        for _, before, after, method in parts
    )
    items = "one planted item" if steps.x[-1] == 1 else f"{steps.x[-1]:g} planted items"
    return f"Accuracy with {items} of credibility 1 for a wrong value, least loss first: {listed}."


def _surest(all_steps: Mapping[str, Steps], results: ResultReader) -> str:
    gaps = {
        kind: gap
        for kind, steps in all_steps.items()
        if not isnan(gap := overconfidence(steps, OURS, -1, results))
    }
    if not gaps:
        return ""
    kind = max(gaps, key=lambda one: gaps[one])
    if gaps[kind] <= 0:
        return "At the highest level of no kind is the robust ensemble surer than it is right."
    steps = all_steps[kind]
    sure, right = (
        steps.mean(OURS, measure, -1, results) for measure in ("mean_confidence", "accuracy")
    )
    return (
        f"The robust ensemble is most overconfident under {kind} at {steps.words[-1]}: mean "
        f"confidence {sure:.3f} at an accuracy of {right:.3f}, a gap of {gaps[kind]:+z.3f} against "
        f"{overconfidence(steps, OURS, 0, results):+z.3f} untouched."
    )


SMALLEST_CHANGE = 0.05  # smallest change of overconfidence that is worth a figure


@dataclass(frozen=True)
class RobustnessStudy:
    name: str = "robustness"

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        """All kinds share the cells with unchanged evidence."""
        found = (
            cell
            for kind in KINDS
            for places in steps_of(plan, kind).runs.values()
            for cells in places
            for cell in cells
        )
        return list(dict.fromkeys(found))

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        all_steps = {kind: steps_of(plan, kind) for kind in KINDS}
        lost = {
            kind: {method: lost_nll(steps, method, results) for method in steps.runs}
            for kind, steps in all_steps.items()
        }
        tables, figures = [_lost_table(plan, all_steps, lost)], []
        for kind, steps in all_steps.items():
            tables += _tables(plan, kind, steps, results)
            figures += _figures(plan, kind, steps, results)
        return StudyResult(
            self.name,
            "Corrupted evidence",
            "Which methods lose least if items are missing, wrong, meaningless, copied or planted, "
            "and which stay as confident as before?",
            tuple(robustness_findings(all_steps, lost, results)),
            tuple(tables),
            tuple(figures),
        )


def _how(plan: ExperimentPlan) -> str:
    return (
        f"{plan.ablation_entities:,} new companies, mean over {data_sets(plan)} of 630 training "
        "entities. Only test evidence is corrupted: everything was fitted on unchanged evidence, "
        "temperatures by the number of items if it differs from that in fitting."
    )


def _caption(plan: ExperimentPlan, kind: str) -> str:
    caption = f"{KINDS[kind].about} {_how(plan)}"
    if kind != "copies":
        return caption
    return f"{caption} Robust mode looks for texts that are nearly the same; the others do not."


def _tables(plan: ExperimentPlan, kind: str, steps: Steps, results: ResultReader) -> list[Table]:
    caption = _caption(plan, kind)
    return [
        step_table(f"{kind}_nll", f"{KIND_TITLES[kind]}: NLL", caption, steps, "nll", results),
        step_table(
            f"{kind}_accuracy",
            f"{KIND_TITLES[kind]}: accuracy",
            caption,
            steps,
            "accuracy",
            results,
        ),
    ]


def _lost_table(
    plan: ExperimentPlan, all_steps: Mapping[str, Steps], lost: Mapping[str, Lost]
) -> Table:
    columns = tuple(
        Column(kind, f"{kind}, {steps.words[-1]}", "number", "lower", 4)
        for kind, steps in all_steps.items()
    )
    rows = []
    for method in plan.robustness_methods:
        found = [by_method[method] for by_method in lost.values()]
        cells = tuple(
            None if one is None else Value(one.mean, None, one.low, one.high) for one in found
        )
        rows.append(Row(method, title_of(method), cells, standing_of(method)))
    return Table(
        "lost",
        "NLL lost at the highest level of each kind",
        "NLL minus that of the same entities with unchanged evidence, paired, with 95 % intervals "
        "over data sets and entities. A method that was bad before has little to lose. "
        f"{_how(plan)}",
        columns,
        tuple(rows),
    )


def _figures(plan: ExperimentPlan, kind: str, steps: Steps, results: ResultReader) -> list[Figure]:
    x_title = "Number" if KINDS[kind].counts else "Share"
    caption = _caption(plan, kind)
    figures = [
        step_figure(f"{kind}_nll", KIND_TITLES[kind], caption, x_title, steps, "nll", results),
    ]
    if _changes_visibly(steps, results):
        figures.append(
            gap_figure(
                f"{kind}_gap",
                f"{KIND_TITLES[kind]}: overconfidence",
                f"At 0, mean confidence equals accuracy. {caption}",
                x_title,
                steps,
                results,
            )
        )
    return figures


def _changes_visibly(steps: Steps, results: ResultReader) -> bool:
    """Return True if the overconfidence of a method changes visibly."""
    gaps = [
        [overconfidence(steps, method, place, results) for place in range(len(steps.x))]
        for method in steps.runs
    ]
    return bool((np.abs(np.array(gaps) - np.array(gaps)[:, :1]) > SMALLEST_CHANGE).any())
