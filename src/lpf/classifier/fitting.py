"""Build a labelled data set from X and y, and train on it as ``lpf train`` does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from lpf.classifier.entities import PREDICATE, Entity, EntityLike, claims_in, read_entities
from lpf.classifier.labels import Classes, Prior, read_groups, read_labels
from lpf.datasets import Dataset, DatasetEntity, DatasetItem, Split, assign_splits
from lpf.datasets.dataset_file import NO_EVIDENCE, Exclusions
from lpf.errors import ConfigError, DatasetError, TrainingError
from lpf.reading import Reader
from lpf.schema import Schema
from lpf.types import Evidence, Float32Array

if TYPE_CHECKING:
    from lpf.training import Trained, TrainingConfig


NAME = "X and y"
_STRANGE = (
    "supports_value is no class and was ignored",
    "supports_values are no classes and were ignored",
)


@dataclass(frozen=True)
class LabelledPart:
    """Entities with a label and a group each. ``name`` is the argument's name in errors."""

    name: str
    entities: tuple[Entity, ...]
    labels: list[Hashable]
    groups: list[Hashable]
    split: Split | None = None

    @classmethod
    def training(
        cls,
        X: Iterable[EntityLike],
        y: Iterable[Any],
        groups: Iterable[Any] | None,
        has_validation: bool,
    ) -> LabelledPart:
        """``has_validation`` is True if validation entities are given separately."""
        entities = read_entities(X)
        count = len(entities)
        split: Split | None = "train" if has_validation else None
        return cls(
            "X", entities, read_labels(y, count), read_groups(groups, count, "groups"), split
        )

    @classmethod
    def validation(cls, given: Sequence[Any]) -> LabelledPart:
        if not isinstance(given, tuple | list) or len(given) not in (2, 3):
            raise DatasetError(
                "validation: must be (X, y) or (X, y, groups). Nothing was trained; leave it out "
                "to hold back some of the entities."
            )
        X, y, *rest = given
        entities = read_entities(X, "validation X")
        labels = read_labels(y, len(entities), "validation y")
        groups = read_groups(rest[0] if rest else None, len(entities), "validation groups")
        return cls("validation X", entities, labels, groups, "validation")


@dataclass(frozen=True)
class TrainingInput:
    """The data that ``fit`` was given. ``entities`` are in the order of the data set and include
    those without evidence, which it leaves out."""

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
    ) -> TrainingInput:
        parts = [LabelledPart.training(X, y, groups, validation is not None)]
        if validation is not None:
            parts.append(LabelledPart.validation(validation))
        classes = Classes.of(parts[0].labels)
        dataset = make_dataset(parts, classes, prior)
        return cls(classes, dataset, tuple(e for part in parts for e in part.entities))

    @cached_property
    def with_claim(self) -> bool:
        """True if the entities have claims. EvidenceError if only some have one."""
        return claims_in(self.entities)


def make_dataset(parts: Sequence[LabelledPart], classes: Classes, prior: Prior) -> Dataset:
    """The entities with evidence; the others are counted as exclusions. DatasetError if a group is
    in two parts, or if a part does not have the same classes as the first."""
    _check_labels(parts, classes)
    groups = _group_names(parts)
    exclusions = Exclusions()
    entities = []
    for part in parts:
        for place, entity in enumerate(part.entities):
            where = f"{part.name}[{place}]"
            if not entity.evidence:
                exclusions.note(NO_EVIDENCE, where)
                continue
            items = tuple(_items(entity, where, classes, exclusions))
            labels = {PREDICATE: classes.value_of[part.labels[place]]}
            group = groups.get(part.groups[place])
            entities.append(
                DatasetEntity(where, labels, items, entity.claim, part.split, group_id=group)
            )
    predicate = classes.predicate(prior, parts[0].labels)
    return Dataset(NAME, Schema((predicate,)), tuple(entities), exclusions.sentences)


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


def _check_labels(parts: Sequence[LabelledPart], classes: Classes) -> None:
    for part in parts:
        present = set(part.labels)
        for label in (*sorted(present - set(classes.labels), key=repr), *classes.labels):
            if (label in present) != (label in classes.value_of):
                what = "is not in y" if label in present else "has no entity"
                raise DatasetError(
                    f"{part.name}: the class {label!r} {what}. Nothing was trained; training and "
                    "validation entities must have the same classes."
                )


def _group_names(parts: Sequence[LabelledPart]) -> dict[Hashable, str]:
    """Group IDs are numbered, because different groups can look the same as text (1 and "1")."""
    where: dict[Hashable, str] = {}
    for part in parts:
        for group in part.groups:
            first = where.setdefault(group, part.name)
            if group is not None and first != part.name:
                raise DatasetError(
                    f"groups: {group!r} is in both {first} and {part.name}. Nothing was trained; "
                    "keep all entities of a group in one of them."
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


@dataclass(frozen=True)
class Holdout:
    """Which entities are held back for validation, if no validation entities are given."""

    share: float
    seed: int

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ConfigError(f"validation_share: must lie between 0 and 1, got {self.share!r}.")

    def applied(self, dataset: Dataset) -> Dataset:
        """Assign entities to training and validation, unless they have splits already."""
        if any(entity.split is not None for entity in dataset):
            return dataset
        shares = (1.0 - self.share, self.share, 0.0)
        return assign_splits(dataset, PREDICATE, shares=shares, seed=self.seed)


@dataclass(frozen=True)
class FitPlan:
    """How to train: settings, seeds, and which entities are held back for validation."""

    config: TrainingConfig
    seeds: tuple[int, ...]
    holdout: Holdout
    copy_similarity: float | None
    on_status: Callable[[str], None] | None


def whole_number(name: str, given: object) -> int:
    """``given`` as an int; NumPy's integers, which parameter searches set, are fine. ConfigError
    for anything else, because the same number must give the same model."""
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 0:
        raise ConfigError(f"{name}: must be a whole number, 0 or above, got {given!r}.")
    return int(given)


def chosen_seeds(seeds: Sequence[int] | str) -> tuple[int, ...]:
    """The seeds themselves, or those of the named preset."""
    from lpf.training import SEED_PRESETS
    from lpf.training.config import check_seeds

    if isinstance(seeds, str):
        if seeds not in SEED_PRESETS:
            raise ConfigError(
                f"seeds: must be numbers or one of {sorted(SEED_PRESETS)}, got {seeds!r}."
            )
        seeds = SEED_PRESETS[seeds]
    return check_seeds([whole_number("seeds", seed) for seed in seeds])


def is_few(dataset: Dataset) -> bool:
    """Return True if there are too few entities to hold some back, as in ``lpf train``."""
    from lpf.training import FEWEST_FOR_SPLITS

    return all(e.split is None for e in dataset) and len(dataset) < FEWEST_FOR_SPLITS


def learn(dataset: Dataset, features: Float32Array, reader: Reader, plan: FitPlan) -> Trained:
    from lpf.training import Trainer, make_examples, train_small

    few = is_few(dataset)
    if not few:
        dataset = plan.holdout.applied(dataset)
    examples = make_examples(dataset, features, plan.copy_similarity)
    data = examples, reader.reader_id, (PREDICATE,)
    if few:
        return train_small(*data, plan.config, plan.seeds, on_status=plan.on_status)
    return Trainer(*data, plan.config, plan.seeds, on_status=plan.on_status, reader=reader).run()


def require_torch() -> None:
    """TrainingError if torch is not installed; only ``fit`` needs it."""
    if find_spec("torch") is None:
        raise TrainingError(
            "fit needs the package torch, which is not installed. Nothing was trained. Install "
            "it: pip install 'lpf[train]'"
        )
