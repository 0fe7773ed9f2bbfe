"""From X and y to a trained model, the way ``lpf train`` goes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from lpf.classifier.entities import PREDICATE, Entity, EntityLike, read_entities
from lpf.classifier.labels import Classes, Prior, read_groups, read_labels
from lpf.datasets import Dataset, DatasetEntity, DatasetItem, Split, assign_splits
from lpf.datasets.exclusions import NO_EVIDENCE, Exclusions
from lpf.errors import ConfigError, DatasetError, TrainingError
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
class Plan:
    """How it is trained: the networks, and which entities are held back for validation."""

    config: TrainingConfig
    seeds: tuple[int, ...]
    validation_share: float
    split_seed: int
    copy_similarity: float | None
    tell: Callable[[str], None] | None

    def __post_init__(self) -> None:
        if not 0.0 < self.validation_share < 1.0:
            raise ConfigError(
                f"validation_share: must lie between 0 and 1, got {self.validation_share!r}."
            )


def whole_number(name: str, given: object) -> int:
    """Also NumPy's, as a search over parameters sets them. ConfigError for anything else: the same
    number must give the same model."""
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 0:
        raise ConfigError(f"{name}: must be a whole number, 0 or above, got {given!r}.")
    return int(given)


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
    if all(entity.split is None for entity in dataset):
        shares = (1.0 - plan.validation_share, plan.validation_share, 0.0)
        dataset = assign_splits(dataset, PREDICATE, shares=shares, seed=plan.split_seed)
    examples = make_examples(dataset, features, plan.copy_similarity)
    trainer = Trainer(examples, reader_id, wanted, plan.config, plan.seeds, tell=told)
    return trainer.run()


def require_torch() -> None:
    """TrainingError where it is not installed: answering does without."""
    if find_spec("torch") is None:
        raise TrainingError(
            "fit needs the package torch, which is not installed. Nothing was trained. Install "
            "it: pip install 'lpf[train]'"
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
        yield DatasetItem(
            f"{where}[{number}]",
            item.text_content,
            _own_label(item, classes, exclusions),
            item.source,
            item.credibility,
            item.timestamp,
            item.report_id,
        )


def _own_label(item: Evidence, classes: Classes, exclusions: Exclusions) -> dict[str, str]:
    value = item.supports_value
    if value is None:
        return {}
    if value not in classes.values:
        exclusions.note(_STRANGE, f"{value!r} of {item.evidence_id}")
        return {}
    return {PREDICATE: value}
