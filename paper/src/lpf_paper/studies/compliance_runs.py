"""The cells of the compliance study: one per seed of the search, one per repetition, or one."""

from __future__ import annotations

from lpf.evaluation import Cell, DomainData, EvalSpec, TrainSpec
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.domains_tables import TEST_SEED
from lpf_paper.studies.study import Runs

DOMAIN = "compliance"
# One network at a time: each run is one seed of the search.
BY_SEED = (
    "lpf_robust_single",
    "lpf_paper",
    "lpf_paper_best",
    "lpf_learned_published",
    "vae_only",
)
REFERENCES = ("prior", "perfect_reader", "oracle")
# These do not depend on the seed that repetitions change.
ONCE = ("lpf_robust", "lpf_learned", "vae_only_ensemble", *REFERENCES)
SLOW = ("transformer",)  # minutes per run


def main_train_spec(plan: ExperimentPlan, repetition: int = 1) -> TrainSpec:
    return TrainSpec(DomainData(DOMAIN), seed=repetition, seeds=plan.main_seeds)


def large_eval_spec(plan: ExperimentPlan) -> EvalSpec:
    return EvalSpec(DomainData(DOMAIN, seed=TEST_SEED), entities=plan.test_entities)


def main_runs(plan: ExperimentPlan, eval_spec: EvalSpec) -> Runs:
    """The cells of each method: one per seed of the search, one per repetition, or one."""
    return {method: _cells(plan, eval_spec, method) for method in plan.methods}


def _cells(plan: ExperimentPlan, eval_spec: EvalSpec, method: str) -> list[Cell]:
    if method in BY_SEED:
        members = range(len(plan.main_seeds))
        return [
            Cell(main_train_spec(plan), eval_spec, method, (("member", place),))
            for place in members
        ]
    repeated = plan.main_repetitions[:1] if method in ONCE else plan.main_repetitions
    if method in SLOW:
        repeated = repeated[:1]
    return [Cell(main_train_spec(plan, repetition), eval_spec, method) for repetition in repeated]
