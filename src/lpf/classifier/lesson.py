"""What ``fit`` is given, X, y and all, as a labelled data set."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lpf.classifier.entities import PREDICATE, Entity, EntityLike, read_entities
from lpf.classifier.features import claims_in
from lpf.classifier.labels import Classes, Prior, read_groups, read_labels
from lpf.datasets import Dataset, DatasetEntity, DatasetItem, Split
from lpf.datasets.exclusions import NO_EVIDENCE, Exclusions
from lpf.errors import DatasetError
from lpf.schema import Schema
from lpf.types import Evidence

NAME = "X and y"
_STRANGE = (
    "supports_value is no class and was ignored",
    "supports_values are no classes and were ignored",
)


@dataclass(frozen=True)
class Part:
    """Entities with a label and a group each; ``name`` is what errors call X."""

    name: str
    entities: tuple[Entity, ...]
    labels: list[Hashable]
    groups: list[Hashable]
    split: Split | None = None

    @classmethod
    def training(
        cls, X: Iterable[EntityLike], y: Iterable[Any], groups: Iterable[Any] | None, apart: bool
    ) -> Part:
        """``apart`` is whether validation entities are given apart from these."""
        entities = read_entities(X)
        count = len(entities)
        split: Split | None = "train" if apart else None
        return cls(
            "X", entities, read_labels(y, count), read_groups(groups, count, "groups"), split
        )

    @classmethod
    def validation(cls, given: Sequence[Any]) -> Part:
        if not isinstance(given, tuple | list) or len(given) not in (2, 3):
            raise DatasetError(
                "validation: must be (X, y), or (X, y, groups). Nothing was trained; leave it out "
                "to have some entities held back."
            )
        X, y, *rest = given
        entities = read_entities(X, "validation X")
        labels = read_labels(y, len(entities), "validation y")
        groups = read_groups(rest[0] if rest else None, len(entities), "validation groups")
        return cls("validation X", entities, labels, groups, "validation")


@dataclass(frozen=True)
class Lesson:
    """All that is learned from. ``entities`` are those of the data set, in its order, and those
    without evidence among them."""

    classes: Classes
    dataset: Dataset
    entities: tuple[Entity, ...]

    @classmethod
    def of(
        cls,
        X: Iterable[EntityLike],
        y: Iterable[Any],
        groups: Iterable[Any] | None,
        validation: Sequence[Any] | None,
        prior: Prior,
    ) -> Lesson:
        parts = [Part.training(X, y, groups, validation is not None)]
        if validation is not None:
            parts.append(Part.validation(validation))
        classes = Classes.of(parts[0].labels)
        dataset = make_dataset(parts, classes, prior)
        return cls(classes, dataset, tuple(e for part in parts for e in part.entities))

    @cached_property
    def with_claim(self) -> bool:
        """EvidenceError where only some entities have a claim."""
        return claims_in(self.entities)


def make_dataset(parts: Sequence[Part], classes: Classes, prior: Prior) -> Dataset:
    """Those with evidence; the others are counted. DatasetError where a group is in two parts, or
    the classes of a part are not those of the first."""
    _check_labels(parts, classes)
    groups = _group_names(parts)
    exclusions = Exclusions()
    made = []
    for part in parts:
        for place, entity in enumerate(part.entities):
            where = f"{part.name}[{place}]"
            if not entity.evidence:
                exclusions.note(NO_EVIDENCE, where)
                continue
            items = tuple(_items(entity, where, classes, exclusions))
            labels = {PREDICATE: classes.value_of[part.labels[place]]}
            group = groups.get(part.groups[place])
            made.append(
                DatasetEntity(where, labels, items, entity.claim, part.split, group_id=group)
            )
    predicate = classes.predicate(prior, parts[0].labels)
    return Dataset(NAME, Schema((predicate,)), tuple(made), exclusions.sentences)


def dataset_item(item: Evidence, evidence_id: str, labels: Mapping[str, str]) -> DatasetItem:
    return DatasetItem(
        evidence_id,
        item.text_content,
        labels,
        item.source,
        item.credibility,
        item.timestamp,
        item.report_id,
    )


def _check_labels(parts: Sequence[Part], classes: Classes) -> None:
    for part in parts:
        found = set(part.labels)
        for label in (*sorted(found - set(classes.labels), key=repr), *classes.labels):
            if (label in found) != (label in classes.value_of):
                what = "is in no label of y" if label in found else "has no entity"
                raise DatasetError(
                    f"{part.name}: the class {label!r} {what}. Nothing was trained; training and "
                    "validation entities must have the same classes."
                )


def _group_names(parts: Sequence[Part]) -> dict[Hashable, str]:
    """Numbered: two groups may be told alike, such as 1 and "1"."""
    where: dict[Hashable, str] = {}
    for part in parts:
        for group in part.groups:
            first = where.setdefault(group, part.name)
            if group is not None and first != part.name:
                raise DatasetError(
                    f"groups: {group!r} is both in {first} and in {part.name}. Nothing was "
                    "trained; keep all entities of a group on one side."
                )
    return {g: f"group {n}" for n, g in enumerate(where) if g is not None}


def _items(
    entity: Entity, where: str, classes: Classes, exclusions: Exclusions
) -> Iterable[DatasetItem]:
    for number, item in enumerate(entity.evidence):
        yield dataset_item(item, f"{where}[{number}]", _own_label(item, classes, exclusions))


def _own_label(item: Evidence, classes: Classes, exclusions: Exclusions) -> dict[str, str]:
    value = item.supports_value
    if value is None:
        return {}
    if value not in classes.values:
        exclusions.note(_STRANGE, f"{value!r} of {item.evidence_id}")
        return {}
    return {PREDICATE: value}
