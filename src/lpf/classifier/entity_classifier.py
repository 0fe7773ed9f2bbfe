"""What every classifier of entities does alike, whatever answers behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.conventions import Conventions
from lpf.classifier.entities import Entity, EntityLike
from lpf.classifier.features import Memory, choose_reader, claims_in
from lpf.classifier.labels import read_labels
from lpf.errors import ConfigError, EvidenceError
from lpf.reading import Reader
from lpf.types import Float32Array, FloatArray


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
