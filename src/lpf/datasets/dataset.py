"""Data sets: labelled entities with their evidence, for training and for comparing methods."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lpf.errors import DatasetError
from lpf.schema import Schema

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
UNLABELLED = -1


@dataclass(frozen=True, slots=True)
class DatasetItem:
    """One evidence item. ``labels`` are its own labels by predicate; without them it has those of
    its entity. Items with the same ``report_id`` repeat each other."""

    evidence_id: str
    text: str
    labels: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None
    credibility: float | None = None
    timestamp: datetime | None = None
    report_id: str | None = None
    truth: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class DatasetEntity:
    """One entity with its labels by predicate and its evidence.

    ``facts`` are known values of other predicates, ``fields`` is a structured record. ``truth`` is
    written by a generator (see ``domains``) and used only by the perfect reader. Entities with the
    same ``group_id`` must be in the same split.
    """

    entity_id: str
    labels: Mapping[str, str]
    evidence: tuple[DatasetItem, ...]
    claim: str | None = None
    split: Split | None = None
    group_id: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    truth: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Dataset:
    """Entities under one schema, in file order. ``exclusions`` are sentences about what was left
    out or changed; they are not part of the data set's identity."""

    name: str
    schema: Schema
    entities: tuple[DatasetEntity, ...]
    exclusions: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.entities:
            raise DatasetError(f"dataset {self.name!r} has no entities. Nothing was done.")

    def __len__(self) -> int:
        return len(self.entities)

    def __iter__(self) -> Iterator[DatasetEntity]:
        return iter(self.entities)

    @property
    def items(self) -> Iterator[DatasetItem]:
        """All items, entity by entity: the row order of every array of items."""
        return (item for entity in self.entities for item in entity.evidence)

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Start of each entity's items among all items, and the end of the last, [E+1]."""
        counts = [len(entity.evidence) for entity in self.entities]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)

    def labels(self, predicate: str) -> NDArray[np.intp]:
        """Return the position of each entity's value, [E]; UNLABELLED if it has none."""
        known = self.schema[predicate].index
        values = (entity.labels.get(predicate) for entity in self.entities)
        return np.array([_position(known, value) for value in values], dtype=np.intp)

    def item_labels(self, predicate: str) -> NDArray[np.intp]:
        """Return the position of each item's value, [N]: its own, else its entity's."""
        known = self.schema[predicate].index
        return np.array(
            [
                _position(known, item.labels.get(predicate, entity.labels.get(predicate)))
                for entity in self.entities
                for item in entity.evidence
            ],
            dtype=np.intp,
        )

    def positions(self, split: Split) -> NDArray[np.intp]:
        """Return the positions of the entities of a split."""
        return np.flatnonzero([entity.split == split for entity in self.entities])

    def select(self, positions: Iterable[int]) -> Dataset:
        """Return the data set with only these entities."""
        return replace(self, entities=tuple(self.entities[position] for position in positions))

    def in_splits(self, splits: Sequence[Split | None]) -> Dataset:
        """Return the data set with these splits, one per entity."""
        pairs = zip(self.entities, splits, strict=True)
        return replace(
            self, entities=tuple(replace(entity, split=split) for entity, split in pairs)
        )

    def with_claim(self, claim: str | None) -> Dataset:
        """Return the data set with this claim for the entities that have none."""
        if claim is None or all(entity.claim is not None for entity in self.entities):
            return self
        filled = (replace(entity, claim=entity.claim or claim) for entity in self.entities)
        return replace(self, entities=tuple(filled))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that training depends on: entities, evidence, labels and splits."""
        hashed = hashlib.sha256(self.schema.hash.encode())
        for entity in self.entities:
            hashed.update(json.dumps(_identity(entity), sort_keys=True).encode() + b"\n")
        return hashed.hexdigest()


def _position(known: Mapping[str, int], value: str | None) -> int:
    return UNLABELLED if value is None else known[value]


def _in_utc(moment: datetime) -> datetime:
    """Convert to UTC, so that a time has the same text whatever its time zone."""
    return moment if moment.tzinfo is None else moment.astimezone(UTC)


def _identity(entity: DatasetEntity) -> list[Any]:
    return [
        entity.entity_id,
        dict(entity.labels),
        entity.claim,
        entity.split,
        entity.group_id,
        dict(entity.facts),
        [
            [
                item.evidence_id,
                item.text,
                dict(item.labels),
                item.source,
                None if item.credibility is None else float(item.credibility),
                None if item.timestamp is None else _in_utc(item.timestamp).isoformat(),
                item.report_id,
            ]
            for item in entity.evidence
        ],
    ]
