"""Who is run how often on compliance: by seed of the search, by repetition, or once."""

from __future__ import annotations

from lpf.experiments.cells import Cell, DomainData, Exam, Lesson
from lpf.experiments.plan import Plan
from lpf.experiments.studies.book import Runs
from lpf.experiments.studies.domains.runs import TEST_SEED

DOMAIN = "compliance"
# One network at a time: a run of these is one seed of the search.
BY_SEED = (
    "lpf_robust_single",
    "lpf_paper",
    "lpf_paper_best",
    "lpf_learned_published",
    "vae_only",
)
REFERENCES = ("prior", "perfect_reader", "oracle")
# Nothing in these depends on the seed that repetitions change.
ONCE = ("lpf_robust", "lpf_learned", "vae_only_ensemble", *REFERENCES)
SLOW = ("transformer",)  # minutes a run


def lesson(plan: Plan, repetition: int = 1) -> Lesson:
    return Lesson(DomainData(DOMAIN), seed=repetition, seeds=plan.main_seeds)


def large_exam(plan: Plan) -> Exam:
    return Exam(DomainData(DOMAIN, seed=TEST_SEED), entities=plan.asked)


def main_runs(plan: Plan, exam: Exam) -> Runs:
    """The cells of each method: one a seed of the search, one a repetition, or one."""
    return {method: _cells(plan, exam, method) for method in plan.methods}


def _cells(plan: Plan, exam: Exam, method: str) -> list[Cell]:
    if method in BY_SEED:
        members = range(len(plan.main_seeds))
        return [Cell(lesson(plan), exam, method, (("member", place),)) for place in members]
    repeated = plan.main_repetitions[:1] if method in ONCE else plan.main_repetitions
    if method in SLOW:
        repeated = repeated[:1]
    return [Cell(lesson(plan, repetition), exam, method) for repetition in repeated]
