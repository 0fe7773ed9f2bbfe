"""A data set's file, evaluated: its own splits where it has them, grouped folds where not."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from lpf.baselines import METHODS
from lpf.baselines.item_models import SEARCH, drawn_seeds
from lpf.datasets import Dataset, find_leakage
from lpf.errors import ConfigError
from lpf.experiments.answered import Answered
from lpf.experiments.cells import Cell, Exam, FileData, Lesson, Settings
from lpf.experiments.claim_only import CLAIM_ONLY
from lpf.experiments.comparisons import Comparison, compare
from lpf.experiments.evaluable import (
    require_claims_of_all,
    require_enough,
    require_groups,
    require_learnable,
    require_whole_splits,
)
from lpf.experiments.keeping import Keeper
from lpf.experiments.lessons import file_dataset, has_own_test, labelled_file
from lpf.experiments.measures import Part, by_group, plain
from lpf.experiments.naming import standing_of
from lpf.experiments.own import is_own, own_settings
from lpf.experiments.pooling import pooled
from lpf.experiments.sharing import unshared
from lpf.experiments.summaries import FEWEST_GROUPS, Summary, summarise

SEARCHED = 7
SHARED_KINDS = ("text", "claim", "group_id")
REFERENCE = "lpf_robust"
# Those that take a minute, not an hour, and no file lacks what they need.
DEFAULT_METHODS = (
    "lpf_robust",
    "lpf_robust_single",
    "lpf_paper_best",
    "lpf_learned",
    "vae_only_ensemble",
    "deterministic_ensemble_average",
    "spn_only",
    "logistic_mean",
    "confidence_vote",
    "majority_vote",
    "dawid_skene",
    "prior",
)


@dataclass(frozen=True)
class EvaluationPlan:
    """``seeds`` are repetitions: each draws its own networks. ``folds`` hold where the file does
    not say who is to be asked, or ``resplit`` forgets that it does."""

    path: Path
    methods: tuple[str, ...] = DEFAULT_METHODS
    seeds: tuple[int, ...] = (1, 2, 3)
    folds: int = 5
    resplit: bool = False
    predicate: str | None = None
    protected: str | None = None

    def __post_init__(self) -> None:
        known = (*METHODS, CLAIM_ONLY)
        unknown = [name for name in self.methods if name not in known and not is_own(name)]
        if unknown or not self.methods:
            raise ConfigError(
                f"methods: {unknown or 'none'} given; those are {list(known)}, and your own as "
                "package.module:Name. Nothing was evaluated."
            )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ConfigError(f"seeds: must be different numbers, got {list(self.seeds)}.")
        if self.folds < 2:
            raise ConfigError(f"folds: must be at least 2, got {self.folds}.")


@dataclass(frozen=True)
class Evaluation:
    """``runs`` has one run a seed for each method. ``folds`` is 0 where the file's own splits
    hold. ``unshared_ids`` are the entities asked about that share no text, claim or group with
    those learned from; None where nothing is shared."""

    plan: EvaluationPlan
    dataset: Dataset
    predicate: str
    folds: int
    cautions: tuple[str, ...]
    runs: dict[str, list[Answered]]
    unshared_ids: frozenset[str] | None
    _summaries: dict[str, Summary] = field(default_factory=dict)

    def summary(self, method: str) -> Summary:
        if method not in self._summaries:
            self._summaries[method] = summarise(self.runs[method], groups=self.group_of)
        return self._summaries[method]

    @cached_property
    def group_of(self) -> dict[str, str]:
        """Of the entities that have a group: those of one are alike, and drawn together."""
        return {
            entity.entity_id: entity.group_id
            for entity in self.dataset
            if entity.group_id is not None
        }

    def comparisons(self) -> list[Comparison]:
        """Robust LPF against each other method by NLL; empty where it was not asked for."""
        if REFERENCE not in self.runs:
            return []
        others = {
            name: runs
            for name, runs in self.runs.items()
            if name != REFERENCE and standing_of(name) != "reference"
        }
        return compare(self.runs[REFERENCE], others, groups=self.group_of)

    def clean_summary(self, method: str) -> Summary | None:
        """Of the entities that share nothing; None where all or none do."""
        if self.unshared_ids is None or not self.unshared_ids:
            return None
        clean = [only(one, self.unshared_ids) for one in self.runs[method]]
        return summarise(clean, groups=self.group_of)

    def parts(self, method: str) -> list[Part]:
        """By the protected field, means over repetitions; empty without one or without answers."""
        runs = [by_group(one) for one in self.runs[method] if one.error is None]
        return [_mean_part(alike) for alike in zip(*runs, strict=True)]


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
        _require_field(dataset, plan.protected)
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
        """Those asked for, and the claim alone where entities have claims."""
        claims = all(entity.claim is not None for entity in self.dataset)
        added = (CLAIM_ONLY,) if claims and CLAIM_ONLY not in self.plan.methods else ()
        return (*self.plan.methods, *added)

    def cells_of(self, method: str, seed: int) -> list[Cell]:
        seeds = drawn_seeds(seed, SEARCH, SEARCHED)
        return [
            Cell(Lesson(data, seed=seed, seeds=seeds), Exam(), method, self._settings[method])
            for data in self.parts()
        ]

    @cached_property
    def _settings(self) -> Mapping[str, Settings]:
        """Found out once: a source that is edited while it runs must not hide its results."""
        return {name: own_settings(name) if is_own(name) else () for name in self.methods}

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
        shared, clean = self._shared()
        cautions = (*self.dataset.exclusions, *shared, *self._few_groups())
        return Evaluation(
            self.plan, self.dataset, self.predicate, self.folds, cautions, runs, clean
        )

    def _few_groups(self) -> list[str]:
        asked = [entity for one in self.placed for entity in one if entity.split == "test"]
        groups = {(entity.group_id, entity.group_id or entity.entity_id) for entity in asked}
        if len(groups) >= FEWEST_GROUPS:
            return []
        return [
            f"Those asked about are of {len(groups)} group{'s' * (len(groups) > 1)}: too few for "
            f"intervals and p-values, which need {FEWEST_GROUPS}, since entities of one are alike."
        ]

    def _shared(self) -> tuple[list[str], frozenset[str] | None]:
        """What those asked about share with those learned from, over all folds."""
        asked = sum(len(one.positions("test")) for one in self.placed)
        clean = frozenset(name for one in self.placed for name in unshared(one))
        if len(clean) == asked:
            return [], None
        others = " What is said of the others alone is told beside." if clean else ""
        caution = (
            f"{asked - len(clean):,} of {asked:,} entities share a text, claim or group with those "
            f"learned from{self._largest_leak()}.{others}"
        )
        return [caution], clean

    def _largest_leak(self) -> str:
        """In brackets; empty where claims of some are texts of others, which is no leak by kind."""
        leaks = [
            (leak, fold)
            for fold, one in enumerate(self.placed, 1)
            for leak in find_leakage(one)
            if leak.splits[0] == "test" and leak.kind in SHARED_KINDS
        ]
        if not leaks:
            return ""
        largest, fold = max(leaks, key=lambda pair: pair[0].entities)
        where = f"in fold {fold}, " if self.folds else ""
        return f" ({where}{largest.sentence.rstrip('.')})"


def only(answered: Answered, names: frozenset[str]) -> Answered:
    """The answers about these entities."""
    kept = np.array([name in names for name in answered.entity_ids])
    groups = zip(answered.groups, kept, strict=True) if answered.groups else ()
    return replace(
        answered,
        raw=None if answered.raw is None else answered.raw[kept],
        tempered=None if answered.tempered is None else answered.tempered[kept],
        labels=answered.labels[kept],
        counts=answered.counts[kept],
        credibility=answered.credibility[kept],
        entity_ids=tuple(name for name in answered.entity_ids if name in names),
        groups=tuple(group for group, chosen in groups if chosen),
    )


def evaluation_document(evaluation: Evaluation) -> dict[str, Any]:
    """What ``lpf evaluate --json`` prints."""
    plan, dataset = evaluation.plan, evaluation.dataset
    return {
        "dataset": dataset.name,
        "predicate": evaluation.predicate,
        "values": list(dataset.schema[evaluation.predicate].values),
        "entities": len(dataset),
        "asked": len(next(iter(evaluation.runs.values()))[0].labels),
        "seeds": list(plan.seeds),
        "folds": evaluation.folds,
        "cautions": list(evaluation.cautions),
        "methods": {name: _method(evaluation, name) for name in evaluation.runs},
        "against": {
            "method": REFERENCE,
            "measure": "nll",
            "others": {one.name: _against(one) for one in evaluation.comparisons()},
        },
    }


def _method(evaluation: Evaluation, name: str) -> dict[str, Any]:
    summary = evaluation.summary(name)
    document: dict[str, Any] = plain({key: one.mean for key, one in summary.spreads.items()})
    for key, one in summary.spreads.items():
        if one.sd is not None:
            document[f"{key}_sd"] = one.sd
        if one.low is not None:
            document[f"{key}_interval"] = [one.low, one.high]
    clean = evaluation.clean_summary(name)
    if clean is not None:
        document["unshared"] = plain({key: one.mean for key, one in clean.spreads.items()})
    parts = evaluation.parts(name)
    if parts:
        document["groups"] = {part.name: plain(_numbers(part)) for part in parts}
    document["runs"] = summary.runs
    document["error"] = "; ".join(summary.notes) or None
    return document


def _numbers(part: object) -> dict[str, float]:
    return {name: value for name, value in vars(part).items() if isinstance(value, int | float)}


def _mean_part(parts: Sequence[Part]) -> Part:
    """One part over repetitions, which ask about the same entities."""
    numbers = [_numbers(part) for part in parts]
    means: dict[str, Any] = {name: fmean(one[name] for one in numbers) for name in numbers[0]}
    return replace(parts[0], **{**means, "entities": parts[0].entities})


def _against(one: Comparison) -> dict[str, Any]:
    found = one.difference
    return {
        "difference": None if found is None else found.mean,
        "interval": None if found is None else [found.low, found.high],
        "p_holm": one.adjusted,
        "note": one.note,
    }


def _require_field(dataset: Dataset, protected: str | None) -> None:
    if protected is None or any(protected in entity.fields for entity in dataset):
        return
    known = sorted({name for entity in dataset for name in entity.fields})
    raise ConfigError(
        f"protected: no entity has a field {protected!r}; they have {known or 'none'}. Nothing was "
        "evaluated."
    )
