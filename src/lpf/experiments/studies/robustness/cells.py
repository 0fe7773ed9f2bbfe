"""Which evidence is spoilt how far, and the cells in which it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lpf.experiments.cells import Cell, DomainData, Exam, Lesson
from lpf.experiments.lessons.perturbations import KINDS
from lpf.experiments.plan import Plan
from lpf.experiments.studies.compliance.cells import DOMAIN
from lpf.experiments.studies.domains.runs import TEST_SEED, domain_lesson
from lpf.experiments.studies.steps import Steps
from lpf.experiments.studies.tables import counted


def compliance_lesson(plan: Plan, seed: int, entities: int | None = None) -> Lesson:
    """The same as in the study of domains, whose networks it shares."""
    return replace(domain_lesson(plan, DOMAIN, seed), entities=entities)


def untouched(plan: Plan) -> Exam:
    return Exam(DomainData(DOMAIN, seed=TEST_SEED), plan.ablation_asked)


def levels_of(plan: Plan, kind: str) -> tuple[float, ...]:
    """0, and as many of the kind's own as the plan has, the highest among them."""
    levels = KINDS[kind].levels
    count = min(plan.levels, len(levels))
    places = np.linspace(len(levels) - 1, 0, count).round().astype(int)
    return (0.0, *(levels[place] for place in sorted(places)))


def steps_of(plan: Plan, kind: str) -> Steps:
    levels = levels_of(plan, kind)
    runs = {
        method: tuple(_cells(plan, method, kind, level) for level in levels)
        for method in plan.sturdy_methods
    }
    return Steps(levels, tuple(level_word(kind, level) for level in levels), runs)


def level_word(kind: str, level: float) -> str:
    if level == 0:
        return "untouched"
    return f"{level:g}" if KINDS[kind].counts else f"{level:.0%}"


def _cells(plan: Plan, method: str, kind: str, level: float) -> tuple[Cell, ...]:
    exam = untouched(plan)
    if level > 0:
        exam = Exam(exam.data, exam.entities, kind, level)
    return tuple(Cell(compliance_lesson(plan, seed), exam, method) for seed in plan.study_seeds)


def data_sets(plan: Plan) -> str:
    """For captions."""
    return counted(len(plan.study_seeds), "data set")
