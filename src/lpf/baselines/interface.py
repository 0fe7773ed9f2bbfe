"""What every method promises, so that one loop can compare them all."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lpf.errors import DatasetError
from lpf.training.examples import Examples
from lpf.types import FloatArray


class FittedMethod(Protocol):
    """A method that has learned. It never looks at the labels of what it is asked about."""

    def predict_proba(self, examples: Examples) -> FloatArray:
        """One distribution an entity, [E, V], from all its items, in any order."""
        ...


class Method(Protocol):
    """A way to answer. ``is_reference`` marks bounds such as the perfect reader: they are shown as
    they are, never tempered."""

    @property
    def name(self) -> str: ...

    @property
    def is_reference(self) -> bool: ...

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        """Learns from ``train`` and stops or chooses by ``validation``. Every entity of both needs
        a value of ``predicate``. The same arguments give the same answers."""
        ...


def labelled(examples: Examples, predicate: str) -> Examples:
    """The entities that have a value of ``predicate``; DatasetError where none has."""
    places = np.flatnonzero(examples.dataset.labels(predicate) >= 0)
    if not len(places):
        raise DatasetError(
            f"dataset {examples.dataset.name!r}: no entity has a value of {predicate!r}. Nothing "
            "was compared; label some, or ask about another predicate."
        )
    return examples if len(places) == len(examples.dataset) else examples.select(places)


def entity_labels(examples: Examples, predicate: str) -> NDArray[np.intp]:
    """The position of each entity's value, [E]; DatasetError where one has none."""
    labels = examples.dataset.labels(predicate)
    without = np.flatnonzero(labels < 0)
    if len(without):
        first = examples.dataset.entities[int(without[0])].entity_id
        raise DatasetError(
            f"dataset {examples.dataset.name!r}: {len(without):,} entities have no value of "
            f"{predicate!r} (first: {first}). Nothing was fitted; leave them out (labelled)."
        )
    return labels


def value_count(examples: Examples, predicate: str) -> int:
    """V."""
    return len(examples.dataset.schema[predicate].values)
