"""What came of a file's evaluation: every method's answers, summed up and compared.

What is to be evaluated: which file, with which methods, how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from lpf.baselines import METHODS
from lpf.datasets import Dataset
from lpf.errors import ConfigError
from lpf.evaluation.chosen_transformer import TRANSFORMER
from lpf.evaluation.claim_only import CLAIM_ONLY
from lpf.evaluation.comparisons import Comparison, compare
from lpf.evaluation.measures import SubsetScores, by_group
from lpf.evaluation.method_names import standing_of, title_of
from lpf.evaluation.model_cache import CHOSEN
from lpf.evaluation.own_method import is_own
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.summaries import Summary, summarise

# Those that take a minute, not an hour, and no file lacks what they need.
DEFAULT_METHODS = (
    "lpf_robust",
    "lpf_chosen",
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
    not say who is to be asked, or ``resplit`` forgets that it does. ``model`` is the transformer
    that is fine-tuned, a folder or a name on the hub; the default reader's without."""

    path: Path
    methods: tuple[str, ...] = DEFAULT_METHODS
    seeds: tuple[int, ...] = (1, 2, 3)
    folds: int = 5
    resplit: bool = False
    predicate: str | None = None
    protected: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        known = (*METHODS, CHOSEN, CLAIM_ONLY)
        unknown = [name for name in self.methods if name not in known and not is_own(name)]
        if unknown or not self.methods:
            near = [name for one in unknown for name in get_close_matches(one, known, n=1)]
            meant = f"; did you mean {', '.join(near)}? All" if near else "; those"
            raise ConfigError(
                f"methods: {unknown or 'none'} given{meant} are {list(known)}, and your own as "
                "package.module:Name. Nothing was evaluated."
            )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ConfigError(f"seeds: must be different numbers, got {list(self.seeds)}.")
        if self.folds < 2:
            raise ConfigError(f"folds: must be at least 2, got {self.folds}.")
        if self.model is not None and not self.model.strip():
            raise ConfigError("model: is empty; name a folder or a transformer on the hub.")


# Whom all others are held against: what ``lpf train`` leaves, else the networks it has in any case.
OURS = (CHOSEN, "lpf_robust")


@dataclass(frozen=True)
class Evaluation:
    """``runs`` has one run a seed for each method. ``folds`` is 0 where the file's own splits
    hold. ``unshared_ids`` are the entities asked about that share no text, claim or group with
    those learned from; None where nothing is shared."""

    plan: EvaluationPlan
    dataset: Dataset
    predicate: str
    folds: int
    warnings: tuple[str, ...]
    runs: dict[str, list[Predictions]]
    unshared_ids: frozenset[str] | None
    _summaries: dict[str, Summary] = field(default_factory=dict)

    def scores(self, method: str) -> Summary:
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

    @property
    def ours(self) -> str | None:
        """The LPF that the others are held against; None where it was not asked for."""
        return next((name for name in OURS if name in self.runs), None)

    def comparisons(self) -> list[Comparison]:
        """``ours`` against each other method by NLL; empty without it."""
        if self.ours is None:
            return []
        others = {
            name: runs
            for name, runs in self.runs.items()
            if name != self.ours and standing_of(name) != "reference"
        }
        return compare(self.runs[self.ours], others, groups=self.group_of)

    def unshared_scores(self, method: str) -> Summary | None:
        """Of the entities that share nothing; None where all or none do."""
        if self.unshared_ids is None or not self.unshared_ids:
            return None
        clean = [only(one, self.unshared_ids) for one in self.runs[method]]
        return summarise(clean, groups=self.group_of)

    def answered(self, method: str) -> list[Predictions]:
        """Its repetitions that have answers."""
        return [one for one in self.runs[method] if one.error is None]

    def parts(
        self, method: str, by: Callable[[Predictions], list[SubsetScores]] = by_group
    ) -> list[SubsetScores]:
        """By the protected field or otherwise, means over repetitions; empty without that field or
        without answers."""
        runs = [by(one) for one in self.answered(method)]
        return [_mean_part(alike) for alike in zip(*runs, strict=True)]

    def title(self, method: str) -> str:
        """What people call it; the transformer by its own name where one was chosen."""
        if method == TRANSFORMER and self.plan.model is not None:
            return f"Fine-tuned {self.plan.model}"
        return title_of(method)


def only(answered: Predictions, names: frozenset[str]) -> Predictions:
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


def numbers_of(part: SubsetScores) -> dict[str, float]:
    return {name: value for name, value in vars(part).items() if isinstance(value, int | float)}


def _mean_part(parts: Sequence[SubsetScores]) -> SubsetScores:
    """One part over repetitions, which ask about the same entities."""
    numbers = [numbers_of(part) for part in parts]
    means: dict[str, Any] = {name: fmean(one[name] for one in numbers) for name in numbers[0]}
    return replace(parts[0], **{**means, "entities": parts[0].entities})
