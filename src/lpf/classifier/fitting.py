"""From a data set to a trained model, the way ``lpf train`` goes.

What ``fit`` is given, X, y and all, as a labelled data set.
"""

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
from lpf.schema import Schema
from lpf.types import Evidence, Float32Array

if TYPE_CHECKING:
    from lpf.training import Trained, TrainingConfig


@dataclass(frozen=True)
class Holdout:
    """Which entities are held back for validation where none are given apart."""

    share: float
    seed: int

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ConfigError(f"validation_share: must lie between 0 and 1, got {self.share!r}.")

    def applied(self, dataset: Dataset) -> Dataset:
        """In train and validation; splits that are there stay."""
        if any(entity.split is not None for entity in dataset):
            return dataset
        shares = (1.0 - self.share, self.share, 0.0)
        return assign_splits(dataset, PREDICATE, shares=shares, seed=self.seed)


@dataclass(frozen=True)
class Plan:
    """How it is trained: the networks, and which entities are held back for validation."""

    config: TrainingConfig
    seeds: tuple[int, ...]
    holdout: Holdout
    copy_similarity: float | None
    tell: Callable[[str], None] | None


def whole_number(name: str, given: object) -> int:
    """Also NumPy's, as a search over parameters sets them. ConfigError for anything else: the same
    number must give the same model."""
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 0:
        raise ConfigError(f"{name}: must be a whole number, 0 or above, got {given!r}.")
    return int(given)


def chosen_seeds(seeds: Sequence[int] | str) -> tuple[int, ...]:
    """Those given, or those of a preset's name."""
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
    """Whether there are too few entities to hold some back, as ``lpf train`` has it."""
    from lpf.training import FEWEST_FOR_SPLITS

    return all(e.split is None for e in dataset) and len(dataset) < FEWEST_FOR_SPLITS


def learn(dataset: Dataset, features: Float32Array, reader_id: str, plan: Plan) -> Trained:
    from lpf.training import Trainer, make_examples, train_few

    wanted, told = (PREDICATE,), plan.tell
    if is_few(dataset):
        examples = make_examples(dataset, features, plan.copy_similarity)
        return train_few(examples, reader_id, wanted, plan.config, plan.seeds, tell=told)
    examples = make_examples(plan.holdout.applied(dataset), features, plan.copy_similarity)
    trainer = Trainer(examples, reader_id, wanted, plan.config, plan.seeds, tell=told)
    return trainer.run()


def require_torch() -> None:
    """TrainingError where it is not installed: answering does without."""
    if find_spec("torch") is None:
        raise TrainingError(
            "fit needs the package torch, which is not installed. Nothing was trained. Install "
            "it: pip install 'lpf[train]'"
        )


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
class TrainingInput:
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
    ) -> TrainingInput:
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
