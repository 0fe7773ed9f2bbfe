"""Methods that users bring: any class with ``fit(X, y)``, ``predict_proba(X)`` and ``classes_``.

X is a list of entities, ``{"claim": ..., "evidence": [{"text", "credibility", "source",
"timestamp"}, ...]}``; y holds their values. ``predict_proba`` returns one column per value, in the
order of ``classes_``. If ``fit`` takes ``validation``, it gets the pair (X, y) of the validation
entities. If the class or ``fit`` takes ``seed`` or ``random_state``, it gets the repetition's seed.

A method is named as ``package.module:Name``, or given in Python as a class or an unfitted
estimator. An estimator is copied before each fit.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import pickle
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
    """Return True for a name of the form ``package.module:Name``."""
    return ":" in name


def own_settings(name: str, estimator: object | None = None) -> Settings:
    """Settings of a cell that identify the code of an own method: the hash of its source file, and
    for an estimator that was given as an object the hash of its parameters."""
    if estimator is None:
        return (("source", _source_digest(name, _imported(name))),)
    cls = estimator if isinstance(estimator, type) else type(estimator)
    if not callable(getattr(cls, "fit", None)) or not callable(getattr(cls, "predict_proba", None)):
        raise ConfigError(
            f"{name!r} has no fit and predict_proba. Nothing was evaluated.",
            field="methods",
            hint="Give a class or an estimator with fit(X, y), predict_proba(X) and classes_.",
        )
    try:
        content = pickle.dumps(estimator)
    except Exception as error:  # pickling user code may raise anything
        raise ConfigError(
            f"{name!r} cannot be pickled ({error}), so its results cannot be stored. Nothing was "
            "evaluated.",
            field="methods",
            hint="Give a class that is defined in a module.",
        ) from error
    digest = hashlib.sha256(content).hexdigest()[:16]
    return (("source", _source_digest(name, cls, required=False)), ("estimator", digest))


def _source_digest(name: str, method: Any, required: bool = True) -> str:
    try:
        source = inspect.getsourcefile(method)
    except TypeError as error:  # built in, or neither a class nor a function
        if not required:
            return ""
        raise ConfigError(
            f"{name!r} is not a class of a Python file ({error}). Nothing was evaluated.",
            field="methods",
            hint="Name a class with fit and predict_proba.",
        ) from error
    path = None if source is None else Path(source)
    text = path.read_bytes() if path is not None and path.is_file() else b""
    return hashlib.sha256(text).hexdigest()[:16]


@dataclass(frozen=True)
class OwnFitted:
    name: str
    estimator: Estimator
    values: tuple[str, ...]

    def predict_proba(self, examples: Examples) -> FloatArray:
        rows = np.asarray(self.estimator.predict_proba(entities_of(examples)), np.float64)
        classes = [str(value) for value in self.estimator.classes_]
        unknown = sorted(set(classes) - set(self.values))
        if unknown or rows.shape != (len(examples.dataset), len(classes)):
            raise EvidenceError(
                f"{self.name}: predict_proba gave {rows.shape} for {len(examples.dataset)} "
                f"entities and the classes {classes}; it must have one row for each entity and one "
                f"column for each of classes_, and these must be among {self.values}."
            )
        answers = np.zeros((len(rows), len(self.values)))
        answers[:, [self.values.index(value) for value in classes]] = rows
        return answers


@dataclass(frozen=True)
class OwnMethod:
    """``given`` is a class, a function that returns an estimator, or an unfitted estimator; None
    imports ``name``."""

    name: str
    given: Any = None
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        given = _imported(self.name) if self.given is None else self.given
        estimator, seeds = _new_estimator(given, seed), dict.fromkeys(SEED_NAMES, seed)
        labelled, held_out = (
            (entities_of(part), [entity.labels[predicate] for entity in part.dataset])
            for part in (train, validation)
        )
        offered = {"validation": held_out, **seeds}
        estimator.fit(*labelled, **_accepted(estimator.fit, offered))
        return OwnFitted(self.name, estimator, train.dataset.schema[predicate].values)


def _new_estimator(given: Any, seed: int) -> Estimator:
    """A fresh estimator with the repetition's seed, unless it already has one."""
    if (callable(given) and not hasattr(given, "predict_proba")) or isinstance(given, type):
        new: Estimator = given(**_accepted(given, dict.fromkeys(SEED_NAMES, seed)))
        return new
    estimator = copy.deepcopy(given)
    for name in SEED_NAMES:
        if getattr(estimator, name, seed) is None:
            setattr(estimator, name, seed)
    return estimator  # type: ignore[no-any-return]


def _accepted(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the function takes by name; none if it has no Python signature."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # such as a class whose constructor is written in C
        return {}
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: value
        for name, value in offered.items()
        if name in parameters and parameters[name].kind in kinds
    }


def entities_of(examples: Examples) -> list[dict[str, Any]]:
    """Entities in the form that LPFClassifier and own methods take."""
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
    except Exception as error:  # importing user code may raise anything
        raise ConfigError(
            f"{name!r} cannot be imported ({error}). Nothing was evaluated.",
            field="methods",
            hint="Write it as package.module:Name, where Name is a class with fit and "
            "predict_proba, and run the command in the folder that holds the package.",
        ) from error
