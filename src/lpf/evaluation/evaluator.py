"""A data set's file, evaluated: its own splits where it has them, grouped folds where not.

What a file must have to be evaluated, found out before anything is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lpf.baselines.item_models import SEARCH, drawn_seeds
from lpf.datasets import Dataset, require_trainable
from lpf.errors import ConfigError, DatasetError
from lpf.evaluation.chosen_transformer import TRANSFORMER, checkpoint_settings, require_loadable
from lpf.evaluation.claim_only import CLAIM_ONLY
from lpf.evaluation.evaluation import Evaluation, EvaluationPlan
from lpf.evaluation.evaluation_warnings import claims_read, few_groups, what_is_shared
from lpf.evaluation.own_method import is_own, own_settings
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.spec_datasets import file_dataset, has_own_test, labelled_file
from lpf.evaluation.specs import Cell, EvalSpec, FileData, Settings, TrainSpec
from lpf.evaluation.summaries import pooled

FEWEST = 60


def require_enough(path: Path, dataset: Dataset, predicate: str) -> None:
    """Entities, and values to tell apart."""
    if len(dataset) < FEWEST:
        raise DatasetError(
            f"{path}: has {len(dataset)} labelled entities, and an evaluation needs "
            f"{FEWEST} at least: some to learn from, some to fit on, some to ask about. "
            "Nothing was evaluated; 'lpf train' takes fewer and says how far to trust it."
        )
    values = {entity.labels[predicate] for entity in dataset}
    if len(values) == 1:
        raise DatasetError(
            f"{path}: all {len(dataset):,} entities have the value {values.pop()!r} of "
            f"{predicate!r}, so there is nothing to tell apart. Nothing was evaluated. Add "
            "entities of other values."
        )


def require_claims_of_all(path: Path, dataset: Dataset) -> None:
    """Or of none: texts are read against the claim where there are claims."""
    without = [entity.entity_id for entity in dataset if entity.claim is None]
    if without and len(without) < len(dataset):
        raise DatasetError(
            f"{path}: {len(without):,} of {len(dataset):,} entities have no claim (first: "
            f"{without[0]}), the others have one, so they cannot be read alike. Nothing was "
            "evaluated. Give every entity a claim, or none, or leave those without out."
        )


def require_field(dataset: Dataset, protected: str | None) -> None:
    """Of one entity at least, where results are to be told apart by it."""
    if protected is None or any(protected in entity.fields for entity in dataset):
        return
    known = sorted({name for entity in dataset for name in entity.fields})
    raise ConfigError(
        f"protected: no entity has a field {protected!r}; they have {known or 'none'}. Nothing was "
        "evaluated."
    )


def require_whole_splits(path: Path, dataset: Dataset) -> None:
    """Of every entity, or of none."""
    without = [entity.entity_id for entity in dataset if entity.split is None]
    if without and len(without) < len(dataset):
        raise DatasetError(
            f"{path}: {len(without):,} of {len(dataset):,} entities have no split (first: "
            f"{without[0]}), the others have one. Nothing was evaluated. Give every entity a "
            "split, or none, or use --resplit, which forgets them."
        )


def require_groups(path: Path, dataset: Dataset, folds: int) -> None:
    """One a fold at least."""
    named = {entity.group_id for entity in dataset if entity.group_id is not None}
    groups = len(named) + sum(entity.group_id is None for entity in dataset)
    if groups >= folds:
        return
    remedy = f"Use --folds {groups}" if groups > 1 else "Give some entities a test split"
    raise ConfigError(
        f"folds: {folds} were asked for, and {path} has {groups} group{'s' * (groups > 1)} of "
        f"entities, which stay whole. Nothing was evaluated. {remedy}, or add groups."
    )


def require_learnable(
    path: Path, placed: Sequence[Dataset], predicate: str, in_folds: bool
) -> None:
    """That training and validation can do their work, in every fold."""
    for fold, one in enumerate(placed, 1):
        learned = [place for place, entity in enumerate(one) if entity.split != "test"]
        try:
            require_trainable(one.select(learned), predicate)
        except DatasetError as error:
            where = f", fold {fold} of {len(placed)}" if in_folds else ""
            remedy = "" if in_folds else " --resplit evaluates it in folds."
            raise DatasetError(
                f"{path}{where}: those learned from do not suffice: {error}{remedy}"
            ) from error


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

    def require_model(self, store: ResultStore) -> None:
        """ConfigError where the transformer that was named cannot be had, and some of its answers
        are not kept yet."""
        if self.plan.model is None:
            return
        needed = (cell for seed in self.plan.seeds for cell in self.cells_of(TRANSFORMER, seed))
        if store.missing(needed):
            require_loadable(self.plan.model)

    def cells_of(self, method: str, seed: int) -> list[Cell]:
        seeds = drawn_seeds(seed, SEARCH, SEARCHED)
        return [
            Cell(
                TrainSpec(data, seed=seed, seeds=seeds), EvalSpec(), method, self._settings[method]
            )
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

    def evaluation(self, store: ResultStore) -> Evaluation:
        """When all cells are there."""
        runs = {
            method: [
                pooled([store.load(cell) for cell in self.cells_of(method, seed)])
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
