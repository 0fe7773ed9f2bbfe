"""The interface that all methods share."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lpf.errors import DatasetError
from lpf.training.examples import Examples
from lpf.types import FloatArray

# "ours" is what we recommend, "reference" a bound that no method competes with.
Standing = Literal["ours", "rival", "reference"]


class FittedMethod(Protocol):
    """A trained method. It never looks at the labels of the entities it answers."""

    def predict_proba(self, examples: Examples) -> FloatArray:
        """One distribution per entity, [E, V]. The order of its items makes no difference."""
        ...


class Method(Protocol):
    """A method before training. ``is_reference`` marks bounds such as the perfect reader, which get
    no temperature."""

    @property
    def name(self) -> str: ...

    @property
    def is_reference(self) -> bool: ...

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        """Trains on ``train``; early stopping and choices use ``validation``. Every entity of both
        needs a value of ``predicate``. The same arguments give the same predictions."""
        ...


def labelled(examples: Examples, predicate: str) -> Examples:
    """The entities that have a value of ``predicate``; DatasetError if none has."""
    places = np.flatnonzero(examples.dataset.labels(predicate) >= 0)
    if not len(places):
        raise DatasetError(
            f"dataset {examples.dataset.name!r}: no entity has a value of {predicate!r}. Nothing "
            "was compared.",
            hint="Label some, or choose another predicate.",
        )
    return examples if len(places) == len(examples.dataset) else examples.select(places)


def entity_labels(examples: Examples, predicate: str) -> NDArray[np.intp]:
    """The position of each entity's value, [E]; DatasetError if one has none."""
    labels = examples.dataset.labels(predicate)
    without = np.flatnonzero(labels < 0)
    if len(without):
        first = examples.dataset.entities[int(without[0])].entity_id
        raise DatasetError(
            f"dataset {examples.dataset.name!r}: {len(without):,} entities have no value of "
            f"{predicate!r} (first: {first}). Nothing was fitted.",
            hint="Leave them out.",
        )
    return labels


def value_count(examples: Examples, predicate: str) -> int:
    """V, the number of values."""
    return len(examples.dataset.schema[predicate].values)
