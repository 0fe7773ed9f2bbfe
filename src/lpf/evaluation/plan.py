"""What to evaluate: which data, with which methods, how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lpf.baselines import CLAIM_ONLY, METHODS, ZERO_LABEL, needs_of
from lpf.datasets import Dataset
from lpf.errors import ConfigError
from lpf.evaluation.method_names import CHOSEN
from lpf.evaluation.own_method import is_own
from lpf.ingest import FileOptions
from lpf.training.config import DEFAULT_BUDGET, TrainingConfig

ALL = "all"
# Methods that take a minute, not an hour, and that work with every data set.
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
    "lexical_regression",
    "confidence_vote",
    "majority_vote",
    "dawid_skene",
    "prior",
)
DEFAULT_SEEDS = (1, 2, 3)
# What data with claims gets besides, where it can be answered.
WITH_CLAIMS = (CLAIM_ONLY, ZERO_LABEL)


@dataclass(frozen=True)
class EvaluationPlan:
    """``data`` is a file or a data set in memory. Each of ``seeds`` is one repetition with its own
    networks. ``folds`` apply if the data has no test entities, or if ``resplit`` ignores its
    splits. ``model`` is the transformer to fine-tune, a folder or a name on the hub; by default
    that of the reader. ``estimators`` are own methods given as objects, by method name.
    ``options`` say how to read a table. ``budget`` is how many seconds the training of
    ``lpf_chosen`` may take in each fold."""

    data: Path | Dataset
    methods: tuple[str, ...] = DEFAULT_METHODS
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    folds: int = 5
    resplit: bool = False
    predicate: str | None = None
    protected: str | None = None
    model: str | None = None
    estimators: Mapping[str, object] = field(default_factory=dict)
    options: FileOptions = field(default_factory=FileOptions)
    budget: float = DEFAULT_BUDGET

    def __post_init__(self) -> None:
        self._check_methods()
        TrainingConfig(budget=self.budget)  # ConfigError if it is out of range
        if not self.seeds or len(set(self.seeds)) != len(self.seeds) or min(self.seeds) < 0:
            raise ConfigError(
                f"must be different numbers, 0 or above, got {list(self.seeds)}.", field="seeds"
            )
        if self.folds < 2:
            raise ConfigError(f"must be at least 2, got {self.folds}.", field="folds")
        if self.model is not None and not self.model.strip():
            raise ConfigError(
                "is empty.", field="model", hint="Name a folder or a transformer on the hub."
            )

    def _check_methods(self) -> None:
        known = known_methods()
        if not self.methods:
            raise ConfigError(f"no methods were given; choose from {list(known)}.", field="methods")
        unknown = [
            name
            for name in self.methods
            if name not in known and name not in self.estimators and not is_own(name)
        ]
        if unknown:
            near = [name for one in unknown for name in get_close_matches(one, known, n=1)]
            raise ConfigError(
                f"unknown methods {unknown}; choose from {list(known)}, or name your own as "
                "package.module:Name. Nothing was evaluated.",
                field="methods",
                hint=f"Did you mean {', '.join(near)}?" if near else None,
            )

    @property
    def data_name(self) -> str:
        """For messages: the path of a file, the name of a data set."""
        return self.data.name if isinstance(self.data, Dataset) else str(self.data)


def known_methods() -> tuple[str, ...]:
    """The names of all methods of this package."""
    return (*METHODS, CHOSEN, *WITH_CLAIMS)


def chosen_methods(
    given: object,
) -> tuple[tuple[str, ...], dict[str, object]]:
    """Method names, each once, and the own methods that were given as objects, by name.

    ``given`` is one method or several: a name, ``"all"``, ``"package.module:Name"``, a class, an
    estimator, or a pair (name, class or estimator). None gives ``DEFAULT_METHODS``.
    """
    if given is None:
        return DEFAULT_METHODS, {}
    is_single = not isinstance(given, list | tuple) or _is_pair(given)
    methods: Sequence[Any] = (given,) if is_single else given  # type: ignore[assignment]
    names: list[str] = []
    estimators: dict[str, object] = {}
    for method in methods:
        if isinstance(method, str) and method == ALL:
            # Without what only generated data can answer, and what data with claims gets anyway.
            names += [
                name
                for name in known_methods()
                if needs_of(name) != "truth" and name not in WITH_CLAIMS
            ]
        elif isinstance(method, str):
            names.append(method)
        else:
            name, estimator = method if _is_pair(method) else (_name_of(method), method)
            if name in estimators or name in known_methods():
                raise ConfigError(
                    f"the name {name!r} is given twice, or is that of a method of this package. "
                    "Nothing was evaluated.",
                    field="methods",
                    hint="Give your own methods as pairs (name, estimator).",
                )
            estimators[name] = estimator
            names.append(name)
    return tuple(dict.fromkeys(names)), estimators


def _is_pair(given: object) -> bool:
    """Return True for (name, class or estimator)."""
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], str)
        and not isinstance(given[1], str)
    )


def _name_of(estimator: object) -> str:
    return estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__


def chosen_seeds(given: int | Sequence[int]) -> tuple[int, ...]:
    """3 gives 1, 2, 3; a sequence is used unchanged."""
    if isinstance(given, int):
        if given < 1:
            raise ConfigError(f"must be 1 or more repetitions, got {given}.", field="seeds")
        return tuple(range(1, given + 1))
    return tuple(given)
