"""Your own method beside ours: any class with ``fit(X, y)`` and ``predict_proba(X)``.

It is named as ``package.module:Name``, and called without arguments, or with ``seed`` or
``random_state`` where it takes one: the repetition's. X is a list of entities, each
``{"claim": ..., "evidence": [{"text", "credibility", "source", "timestamp"}, ...]}``, y their
values; what ``predict_proba`` answers has a column a value, in the order of ``classes_``. Where
``fit`` takes ``validation``, it gets the pair (X, y) of the validation entities too, and a seed
under the same names.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lpf.baselines import FittedMethod
from lpf.errors import ConfigError, EvidenceError
from lpf.evaluation.specs import Settings
from lpf.training import Examples
from lpf.types import FloatArray

SEED_NAMES = ("seed", "random_state")


class Estimator(Protocol):
    classes_: Any

    def fit(self, X: list[dict[str, Any]], y: list[str]) -> Any: ...

    def predict_proba(self, X: list[dict[str, Any]]) -> Any: ...


def is_own(name: str) -> bool:
    return ":" in name


def own_settings(name: str) -> Settings:
    """The hash of the file it stands in: another text, another method."""
    method = _imported(name)
    try:
        found = inspect.getsourcefile(method)
    except TypeError as error:  # built in, or neither a class nor a function
        raise ConfigError(
            f"methods: {name!r} is no class of a Python file ({error}). Nothing was evaluated. "
            "Name a class with fit and predict_proba."
        ) from error
    text = b"" if found is None else Path(found).read_bytes()
    return (("source", hashlib.sha256(text).hexdigest()[:16]),)


@dataclass(frozen=True)
class OwnFitted:
    name: str
    estimator: Estimator
    values: tuple[str, ...]

    def predict_proba(self, examples: Examples) -> FloatArray:
        found = np.asarray(self.estimator.predict_proba(entities_of(examples)), np.float64)
        classes = [str(value) for value in self.estimator.classes_]
        unknown = sorted(set(classes) - set(self.values))
        if unknown or found.shape != (len(examples.dataset), len(classes)):
            raise EvidenceError(
                f"{self.name}: predict_proba gave {found.shape} for {len(examples.dataset)} "
                f"entities and the classes {classes}; it must have one row for each entity and one "
                f"column for each of classes_, and these must be among {self.values}."
            )
        answers = np.zeros((len(found), len(self.values)))
        answers[:, [self.values.index(value) for value in classes]] = found
        return answers


@dataclass(frozen=True)
class OwnMethod:
    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        made, seeds = _imported(self.name), dict.fromkeys(SEED_NAMES, seed)
        estimator: Estimator = made(**_taken(made, seeds))
        known, held = (
            (entities_of(part), [entity.labels[predicate] for entity in part.dataset])
            for part in (train, validation)
        )
        estimator.fit(*known, **_taken(estimator.fit, {"validation": held, **seeds}))
        return OwnFitted(self.name, estimator, train.dataset.schema[predicate].values)


def _taken(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Those that it takes by name; none where Python cannot tell."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # what it inherits is not written in Python
        return {}
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: value
        for name, value in offered.items()
        if name in parameters and parameters[name].kind in kinds
    }


def entities_of(examples: Examples) -> list[dict[str, Any]]:
    """Entities as LPFClassifier and your own method take them."""
    return [
        {
            "claim": entity.claim,
            "evidence": [
                {
                    "text": item.text,
                    "credibility": item.credibility,
                    "source": item.source,
                    "timestamp": item.timestamp,
                }
                for item in entity.evidence
            ],
        }
        for entity in examples.dataset
    ]


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # a module of yours may raise anything while it is imported
        raise ConfigError(
            f"methods: {name!r} cannot be imported ({error}). Nothing was evaluated. Write it as "
            "package.module:Name, where Name is a class with fit and predict_proba, and stand in "
            "the folder that holds the package."
        ) from error
