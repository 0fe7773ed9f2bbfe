"""What every classifier of entities does alike, whatever answers behind it.

What scikit-learn asks of an estimator, without scikit-learn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.answering import Memory, choose_reader, claims_in
from lpf.classifier.entities import Entity, EntityLike
from lpf.classifier.labels import read_labels
from lpf.errors import ConfigError, EvidenceError
from lpf.reading import Reader
from lpf.types import Float32Array, FloatArray


class Conventions:
    """For a dataclass whose fields are the hyper-parameters. It keeps them as they were given and
    checks them when it is fitted, since ``clone`` and a search set them one by one."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    _estimator_type = "classifier"  # how scikit-learn before 1.6 asks for the kind

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The hyper-parameters by name. ``deep`` is there for scikit-learn and changes nothing."""
        return {one.name: getattr(self, one.name) for one in _parameters(self)}

    def set_params(self, **parameters: Any) -> Self:
        """Changes some. What is asked from now on follows them; what was learned does not."""
        known = [one.name for one in _parameters(self)]
        strange = sorted(parameters.keys() - set(known))
        if strange:
            raise ConfigError(
                f"{strange[0]!r} is no parameter of {type(self).__name__}. Nothing was set; "
                f"its parameters are {known}."
            )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in _parameters(self)
            if one.default is MISSING or getattr(self, one.name) is not one.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        tags = import_module("sklearn.utils")  # only scikit-learn calls this, so it is there
        return tags.Tags(
            estimator_type="classifier",
            target_tags=tags.TargetTags(required=True),
            classifier_tags=tags.ClassifierTags(),
            input_tags=tags.InputTags(two_d_array=False, string=True),
        )


def _parameters(estimator: Conventions) -> list[Field[Any]]:
    return [one for one in fields(estimator) if one.init]


class EntityClassifier(Conventions, ABC):
    """For a dataclass with these fields; ``_fitted`` is None before ``fit``."""

    reader: str | Reader | None
    classes_: NDArray[Any]
    _fitted: object | None
    _memory: Memory

    @abstractmethod
    def predict_proba(self, X: Iterable[EntityLike]) -> FloatArray:
        """[E, V], columns as in ``classes_``. An entity without evidence gets the prior."""

    def predict(self, X: Iterable[EntityLike]) -> NDArray[Any]:
        """The most probable class of each entity, [E]."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Iterable[EntityLike], y: Iterable[Any]) -> float:
        """The share of entities whose class is predicted."""
        given = self.predict(X)
        labels = read_labels(y, len(given))
        if not labels:
            raise EvidenceError("X: has no entities. Nothing was scored.")
        right = [bool(a == b) for a, b in zip(given.tolist(), labels, strict=True)]
        return sum(right) / len(right)

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    def __sklearn_clone__(self) -> Self:
        """Unfitted, with the same parameters. Texts that were read need not be read again."""
        fresh = type(self)(**self.get_params())
        fresh._memory = self._memory
        return fresh

    def _features(
        self, entities: Sequence[Entity], with_claim: bool, reader_id: str
    ) -> Float32Array:
        """Of all items of entities asked about, [N, width], read as those of ``fit`` were."""
        if any(e.evidence for e in entities) and claims_in(entities) != with_claim:
            learned = "with" if with_claim else "without"
            raise EvidenceError(
                f"X: this model was fitted {learned} claims, and these entities are the other way "
                "round. Nothing was answered; give them as they were given to fit."
            )
        reader = choose_reader(self.reader, with_claim)
        if reader.reader_id != reader_id:
            raise ConfigError(
                f"reader: the model was fitted on {reader_id}, and this is {reader.reader_id}. "
                "Nothing was answered; give reader= the one it was fitted with (to load, where it "
                "was loaded), or fit again."
            )
        return self._memory.features(reader, entities)
