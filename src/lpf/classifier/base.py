"""Base class of the classifiers: parameters, prediction, and the methods that scikit-learn expects
of an estimator. scikit-learn itself is not needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.entities import Entity, EntityLike, claims_in
from lpf.classifier.features import TextFeatureCache, choose_reader
from lpf.classifier.labels import read_labels
from lpf.errors import ConfigError, EvidenceError, TrainingError
from lpf.model.artefact import Artefact
from lpf.reading import Reader
from lpf.types import Float32Array, FloatArray


class EntityClassifier(ABC):
    """Base of the classifiers, which are dataclasses: their init fields are the parameters.

    Parameters are stored as given and checked by ``fit``, because ``clone`` and parameter searches
    set them one by one. ``_fitted`` is None before ``fit``.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    _estimator_type = "classifier"  # for scikit-learn before 1.6
    reader: str | Reader | None
    classes_: NDArray[Any]
    _fitted: object | None
    _feature_cache: TextFeatureCache

    @abstractmethod
    def predict_proba(self, X: Iterable[EntityLike]) -> FloatArray:
        """Class probabilities [E, V], columns as in ``classes_``. An entity without evidence gets
        the prior."""

    def predict(self, X: Iterable[EntityLike]) -> NDArray[Any]:
        """The most probable class of each entity, [E]."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Iterable[EntityLike], y: Iterable[Any]) -> float:
        """Accuracy: the share of entities whose class is predicted correctly."""
        predicted = self.predict(X)
        labels = read_labels(y, len(predicted))
        if not labels:
            raise EvidenceError("there are no entities. Nothing was scored.", field="X")
        right = [bool(a == b) for a, b in zip(predicted.tolist(), labels, strict=True)]
        return sum(right) / len(right)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. ``deep`` is there for scikit-learn and has no effect."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters. Later answers use them; the fitted model does not change."""
        known = self._parameters()
        unknown = sorted(parameters.keys() - known.keys())
        if unknown:
            raise ConfigError(
                f"{unknown[0]!r} is not a parameter of {type(self).__name__}. Nothing was set; "
                f"choose from {list(known)}."
            )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._parameters().items()
            if default is MISSING or getattr(self, name) is not default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        utils = import_module("sklearn.utils")  # only scikit-learn calls this, so it is installed
        return utils.Tags(
            estimator_type="classifier",
            target_tags=utils.TargetTags(required=True),
            classifier_tags=utils.ClassifierTags(),
            input_tags=utils.InputTags(two_d_array=False, string=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    def __sklearn_clone__(self) -> Self:
        """An unfitted classifier with the same parameters, and the features read so far."""
        copy = type(self)(**self.get_params())
        copy._feature_cache = self._feature_cache
        return copy

    @classmethod
    def _parameters(cls) -> dict[str, Any]:
        """Names and defaults."""
        return {one.name: one.default for one in fields(cls) if one.init}

    def _not_fitted(self, hint: str) -> TrainingError:
        from lpf.classifier.not_fitted import NotFittedError

        return NotFittedError(
            f"this {type(self).__name__} is not fitted. Nothing was answered.", hint=hint
        )

    def _features(
        self,
        entities: Sequence[Entity],
        with_claim: bool,
        reader_id: str,
        model: Artefact | None = None,
    ) -> Float32Array:
        """Features of all items [N, width], from the reader that ``fit`` used: for a ``model``,
        with what it adds to the reader."""
        if claims_in(entities) and not with_claim:
            raise EvidenceError(
                "this model was fitted without claims, but these entities have claims, which it "
                "cannot read. Nothing was answered; leave them out, or fit with claims.",
                field="X",
            )
        opened = choose_reader(self.reader, with_claim)
        reader = opened.pinned(reader_id) if model is None else model.reader(opened)
        if reader.reader_id != reader_id:
            raise ConfigError(
                f"the model was fitted with {reader_id}, but this is {reader.reader_id}. Nothing "
                "was answered; set reader= to the one it was fitted with (a loaded classifier: "
                "load(folder, reader=...)), or fit again.",
                field="reader",
            )
        return self._feature_cache.features(reader, entities)
