"""y: labels of any type, translated to values of a predicate and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.entities import PREDICATE, is_missing
from lpf.errors import ConfigError, DatasetError
from lpf.schema import Predicate

Prior = Mapping[Any, float] | Sequence[float] | None
_PRIOR_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Classes:
    """The distinct labels in ascending order, and the value of each in schema and model."""

    labels: tuple[Hashable, ...]

    @classmethod
    def of(cls, labels: Iterable[Hashable]) -> Classes:
        """DatasetError if there are fewer than two, or they cannot be sorted."""
        distinct = set(labels)
        if len(distinct) < 2:
            raise DatasetError(
                f"all labels are {next(iter(distinct), None)!r}. Nothing was trained; add "
                "entities of another class.",
                field="y",
            )
        try:
            return cls(tuple(sorted(distinct)))  # type: ignore[type-var]
        except TypeError as error:
            raise DatasetError(
                f"labels cannot be sorted ({error}). Nothing was trained; use labels of one type, "
                "such as texts only.",
                field="y",
            ) from error

    @cached_property
    def array(self) -> NDArray[Any]:
        """[V], as from ``numpy.unique``; of dtype object for labels that NumPy has no type for."""
        if all(isinstance(label, str | int | float) for label in self.labels):
            return np.array(self.labels)
        return np.fromiter(self.labels, dtype=object, count=len(self.labels))

    @cached_property
    def values(self) -> tuple[str, ...]:
        texts = tuple(str(label).strip() for label in self.labels)
        if all(texts) and len(set(texts)) == len(texts):
            return texts
        return tuple(f"class {number}" for number in range(len(texts)))

    @cached_property
    def value_of(self) -> Mapping[Hashable, str]:
        return dict(zip(self.labels, self.values, strict=True))

    def predicate(self, prior: Prior, labels: Sequence[Hashable]) -> Predicate:
        """With the given prior, or (None) the shares of ``labels``."""
        if prior is None:
            counts = Counter(labels)
            numbers = [counts[label] / len(labels) for label in self.labels]
        else:
            numbers = self._numbers(prior)
        return Predicate(PREDICATE, self.values, tuple(numbers))

    def _numbers(self, prior: Mapping[Any, float] | Sequence[float]) -> list[float]:
        if isinstance(prior, Mapping):
            named = set(prior) == set(self.labels)
            given = [prior[label] for label in self.labels] if named else []
        else:
            given = list(prior)
        is_valid = len(given) == len(self.labels) and all(_is_share(number) for number in given)
        if not is_valid or abs(sum(given) - 1.0) > _PRIOR_TOLERANCE:
            raise ConfigError(
                f"must have a number above 0 for each of the classes {list(self.labels)}, in this "
                f"order or by name, with a sum of 1, got {prior!r}. Nothing was trained; None "
                "takes the shares of y.",
                field="prior",
            )
        return [float(number) for number in given]


def read_labels(y: Iterable[Any], count: int, name: str = "y") -> list[Hashable]:
    """Labels as plain Python values. DatasetError if there are not ``count`` of them, or if one is
    missing or not hashable."""
    listed = [] if isinstance(y, str) else list(y)
    if len(listed) != count:
        raise DatasetError(
            f"{len(listed)} labels for {count} entities. Nothing was done; give one label per "
            "entity, in the same order.",
            field=name,
        )
    return [_label(label, f"{name}[{place}]") for place, label in enumerate(listed)]


def read_groups(groups: Iterable[Any] | None, count: int, name: str) -> list[Hashable]:
    """The group of each entity, or None."""
    if groups is None:
        return [None] * count
    listed = list(groups)
    if len(listed) != count:
        raise DatasetError(
            f"{len(listed)} groups for {count} entities. Nothing was trained; give one group per "
            "entity, None for an entity without one.",
            field=name,
        )
    return [_plain(group) for group in listed]


def _label(label: object, place: str) -> Hashable:
    plain = _plain(label)
    if not isinstance(plain, Hashable):
        raise DatasetError(
            f"is of the type {type(label).__name__}. Nothing was done; a label is a text or a "
            "number, one per entity.",
            field=place,
        )
    if is_missing(plain):
        raise DatasetError(
            f"is {plain!r}, not a label. Nothing was done; leave entities without a label out of "
            "X and y.",
            field=place,
        )
    return plain


def _plain(value: Any) -> Any:
    """NumPy scalars as Python values, which JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def _is_share(number: object) -> bool:
    return isinstance(number, int | float | np.floating) and bool(0.0 < number <= 1.0)
