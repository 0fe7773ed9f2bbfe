"""A data set's file, evaluated: its own splits where it has them, grouped folds where not."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from lpf.baselines.item_models import SEARCH, drawn_seeds
from lpf.datasets import Dataset
from lpf.experiments.cells import Cell, Exam, FileData, Lesson, Settings
from lpf.experiments.evaluation.cautions import claims_read, few_groups, what_is_shared
from lpf.experiments.evaluation.evaluable import (
    require_claims_of_all,
    require_enough,
    require_field,
    require_groups,
    require_learnable,
    require_whole_splits,
)
from lpf.experiments.evaluation.outcome import Evaluation
from lpf.experiments.evaluation.plan import EvaluationPlan
from lpf.experiments.judging.pooling import pooled
from lpf.experiments.keeping import Keeper
from lpf.experiments.lessons.files import file_dataset, has_own_test, labelled_file
from lpf.experiments.workbench.chosen_transformer import (
    TRANSFORMER,
    checkpoint_settings,
    require_loadable,
)
from lpf.experiments.workbench.claim_only import CLAIM_ONLY
from lpf.experiments.workbench.own import is_own, own_settings

SEARCHED = 7


@dataclass(frozen=True)
class Evaluator:
    """A plan on its file: which cells it needs, and what comes of them."""

    plan: EvaluationPlan
    dataset: Dataset
    predicate: str
    digest: str

    @classmethod
    def of(cls, plan: EvaluationPlan) -> Evaluator:
        """DatasetError where the file cannot be evaluated; found out before anything is run."""
        dataset, predicate = labelled_file(plan.path, plan.predicate)
        require_enough(plan.path, dataset, predicate)
        require_claims_of_all(plan.path, dataset)
        require_field(dataset, plan.protected)
        digest = hashlib.sha256(plan.path.read_bytes()).hexdigest()
        found = cls(plan, dataset, predicate, digest)
        if not plan.resplit:
            require_whole_splits(plan.path, dataset)
        require_groups(plan.path, dataset, found.folds)
        require_learnable(plan.path, found.placed, predicate, in_folds=found.folds > 0)
        return found

    @property
    def folds(self) -> int:
        own = has_own_test(self.dataset) and not self.plan.resplit
        return 0 if own else self.plan.folds

    @cached_property
    def placed(self) -> tuple[Dataset, ...]:
        """The data set in the splits of each part."""
        return tuple(file_dataset(part)[0] for part in self.parts())

    def cells(self) -> list[Cell]:
        return [
            cell
            for method in self.methods
            for seed in self.plan.seeds
            for cell in self.cells_of(method, seed)
        ]

    @property
    def methods(self) -> tuple[str, ...]:
        """Those asked for, the transformer where one is named, and the claim alone where entities
        have claims."""
        claims = all(entity.claim is not None for entity in self.dataset)
        added = {TRANSFORMER: self.plan.model is not None, CLAIM_ONLY: claims}
        return tuple(dict.fromkeys((*self.plan.methods, *(name for name in added if added[name]))))

    def require_model(self, keeper: Keeper) -> None:
        """ConfigError where the transformer that was named cannot be had, and some of its answers
        are not kept yet."""
        if self.plan.model is None:
            return
        needed = (cell for seed in self.plan.seeds for cell in self.cells_of(TRANSFORMER, seed))
        if keeper.missing(needed):
            require_loadable(self.plan.model)

    def cells_of(self, method: str, seed: int) -> list[Cell]:
        seeds = drawn_seeds(seed, SEARCH, SEARCHED)
        return [
            Cell(Lesson(data, seed=seed, seeds=seeds), Exam(), method, self._settings[method])
            for data in self.parts()
        ]

    @cached_property
    def _settings(self) -> Mapping[str, Settings]:
        """Found out once: a source that is edited while it runs must not hide its results."""
        return {name: self._settings_of(name) for name in self.methods}

    def _settings_of(self, method: str) -> Settings:
        if is_own(method):
            return own_settings(method)
        if method == TRANSFORMER and self.plan.model is not None:
            return checkpoint_settings(self.plan.model)
        return ()

    def parts(self) -> list[FileData]:
        folds = self.folds
        return [
            FileData(
                str(self.plan.path.resolve()),
                self.digest,
                self.plan.predicate,
                folds,
                fold,
                self.plan.protected,
            )
            for fold in range(max(folds, 1))
        ]

    def evaluation(self, keeper: Keeper) -> Evaluation:
        """When all cells are there."""
        runs = {
            method: [
                pooled([keeper.answered(cell) for cell in self.cells_of(method, seed)])
                for seed in self.plan.seeds
            ]
            for method in self.methods
        }
        shared, clean = what_is_shared(self.placed, in_folds=self.folds > 0)
        cautions = (
            *self.dataset.exclusions,
            *shared,
            *few_groups(self.placed),
            *claims_read(self.dataset),
        )
        return Evaluation(
            self.plan, self.dataset, self.predicate, self.folds, cautions, runs, clean
        )
