"""Trained networks that the theorems are checked with, and the entities they answer for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lpf.baselines import FittedLpf
from lpf.combine import Segments
from lpf.engine import Answers, Items
from lpf.evaluation import Cell, DomainData, EvalSpec, TrainSpec
from lpf.metrics import LabelArray
from lpf.training import Examples
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.compliance_runs import DOMAIN
from lpf_paper.studies.domains_tables import TEST_SEED, domain_train_spec

if TYPE_CHECKING:
    from lpf.evaluation import Workbench

PAPER, BEST, ROBUST = "lpf_paper", "lpf_paper_best", "lpf_robust"
LEARNED = "lpf_learned_published"
METHODS = (PAPER, BEST, ROBUST, LEARNED)
MOST_ITEMS = 20


@dataclass(frozen=True)
class TrainedNetworks:
    """Networks of one training set. ``entities`` limits the training entities."""

    plan: ExperimentPlan
    folder: Path
    entities: int | None = None

    @cached_property
    def bench(self) -> Workbench:
        from lpf.evaluation import Workbench

        return Workbench(train_spec(self.plan, self.entities), self.folder)

    def fitted(self, method: str) -> FittedLpf:
        found = self.bench.fitted(method)
        assert isinstance(found, FittedLpf)  # every variant of LPF is
        return found

    def answer(self, method: str, items: Items, **changes: int) -> Answers:
        """``changes`` are query options."""
        fitted = self.fitted(method)
        options = replace(fitted.options, **changes)  # type: ignore[arg-type]
        return fitted.engine.answer(items, fitted.predicate, options)

    @cached_property
    def usual(self) -> Examples:
        """New entities with five items each."""
        return self.new_entities()

    @cached_property
    def many(self) -> Examples:
        """New entities with MOST_ITEMS items each."""
        return self.new_entities(f"items={MOST_ITEMS}")

    def new_entities(self, *changes: str) -> Examples:
        data = DomainData(DOMAIN, seed=TEST_SEED, changes=changes)
        return self.bench.test_examples(EvalSpec(data, self.plan.ablation_entities))

    def labels(self, examples: Examples) -> LabelArray:
        return examples.dataset.labels(self.bench.predicate)


def first_items(examples: Examples, count: int, entities: int | None = None) -> Items:
    """The first ``count`` items of every entity, or of the first ``entities``."""
    offsets = examples.segments.offsets[:-1]
    chosen = examples.items.select((offsets[:entities, None] + np.arange(count)).ravel())
    segments = Segments.of_counts([count] * len(offsets[:entities]))
    return Items(chosen.features, chosen.ids, credibility=chosen.credibility, segments=segments)


def train_spec(plan: ExperimentPlan, entities: int | None = None) -> TrainSpec:
    """That of the domains study, so that its networks are used again."""
    return replace(domain_train_spec(plan, DOMAIN, plan.data_seeds[0]), entities=entities)


def training_sizes(plan: ExperimentPlan) -> tuple[int, ...]:
    """Numbers of training entities at which the learned aggregator is measured."""
    return (180, 630) if plan.quick else (90, 180, 360, 630)


def trained_cells(plan: ExperimentPlan) -> list[Cell]:
    """Running them trains every network that the study needs."""
    full = [Cell(train_spec(plan), EvalSpec(), method) for method in METHODS]
    fewer = [
        Cell(train_spec(plan, size), EvalSpec(), LEARNED) for size in training_sizes(plan)[:-1]
    ]
    return [*full, *fewer]
