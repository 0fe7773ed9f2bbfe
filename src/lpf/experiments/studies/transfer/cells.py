"""Pairs of domains, one learned from and one asked about, and their cells."""

from __future__ import annotations

from itertools import product

from lpf.errors import ConfigError
from lpf.experiments.cells import Cell, DomainData, Exam
from lpf.experiments.plan import Plan
from lpf.experiments.studies.domains.runs import TEST_SEED, domain_lesson

ASKED = 300  # entities a domain, fewer where the plan has fewer
METHODS = ("lpf_robust", "deterministic_ensemble_average", "logistic_mean")

Pair = tuple[str, str]  # the domain learned from, the domain asked about


def transfer_cell(plan: Plan, method: str, pair: Pair, seed: int) -> Cell:
    learned, asked = pair
    exam = Exam(DomainData(asked, seed=TEST_SEED), asked_entities(plan))
    return Cell(domain_lesson(plan, learned, seed), exam, method)


def asked_entities(plan: Plan) -> int:
    return min(ASKED, plan.ablation_asked)


def domain_pairs(plan: Plan) -> list[Pair]:
    if len(plan.transfer_domains) < 2:
        raise ConfigError(
            f"transfer_domains: must be two or more, got {list(plan.transfer_domains)}. "
            "Nothing was run."
        )
    return list(product(plan.transfer_domains, plan.transfer_domains))


def home_pairs(plan: Plan) -> list[Pair]:
    return [pair for pair in domain_pairs(plan) if pair[0] == pair[1]]


def away_pairs(plan: Plan) -> list[Pair]:
    return [pair for pair in domain_pairs(plan) if pair[0] != pair[1]]
