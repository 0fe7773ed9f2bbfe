"""How evidence is corrupted: one function per kind of ``perturbations.KINDS``.

Each item and entity has its own random numbers, drawn under its ID, and a level takes the first
part of an order that does not depend on the level. So a higher level corrupts everything that a
lower level does, and more. Some kinds borrow items of entities with another value, so that the
evidence supports a wrong value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.domains import stream
from lpf.errors import DatasetError

CLEAR = "clear"


@dataclass(frozen=True)
class Loan:
    """An item, and the entity it belongs to."""

    item: DatasetItem
    lender: DatasetEntity

    def to(self, borrower: DatasetEntity, predicate: str) -> DatasetItem:
        """The item as evidence of the borrower: it names the borrower instead of the lender, keeps
        the value it was labelled with, and belongs to no report."""
        return replace(
            self.item,
            text=_with_names_of(self.item.text, self.lender, borrower),
            labels={predicate: self.lender.labels[predicate], **self.item.labels},
            report_id=None,
            truth=None,
        )


@dataclass(frozen=True)
class Lenders:
    """Items that can be borrowed. The keys of ``loans`` begin with the entity's value: all items
    of a value, those of a source, those of an aspect, and those that support the value only."""

    dataset: Dataset
    predicate: str
    loans: Mapping[tuple[str, ...], list[Loan]]

    @classmethod
    def of(cls, dataset: Dataset, predicate: str) -> Lenders:
        """DatasetError if entities have claims: an item about one claim says nothing about the
        value of another entity."""
        claimed = next((entity for entity in dataset if entity.claim is not None), None)
        if claimed is not None:
            raise DatasetError(
                f"dataset {dataset.name!r}: evidence is about claims (first: entity "
                f"{claimed.entity_id!r}), and an item about one claim says nothing about another. "
                "Nothing was changed; use a kind that borrows no items."
            )
        loans: dict[tuple[str, ...], list[Loan]] = defaultdict(list)
        for entity in dataset:
            for item in entity.evidence:
                for key in _filed_under(entity, item, predicate):
                    loans[key].append(Loan(item, entity))
        return cls(dataset, predicate, dict(loans))

    def wrong_value(
        self, entity: DatasetEntity, generator: np.random.Generator, *filed: str
    ) -> str:
        """A value that the entity does not have, drawn uniformly from those for which items can be
        borrowed. DatasetError if there is none."""
        own = entity.labels.get(self.predicate)
        values = self.dataset.schema[self.predicate].values
        others = [value for value in values if value != own and (value, *filed) in self.loans]
        if own is None or not others:
            raise DatasetError(
                f"dataset {self.dataset.name!r}: entity {entity.entity_id!r} has the value {own!r} "
                f"of {self.predicate!r}; items of another value can be borrowed for {others}. "
                "Nothing was changed; pass labelled entities of at least two values."
            )
        return others[int(generator.integers(len(others)))]

    def alike(self, value: str, item: DatasetItem) -> list[Loan]:
        """Items of entities with the value: of the same source, else the same aspect, else any."""
        keys = [key for key in _source_and_aspect(item) if (value, *key) in self.loans]
        return self.loans[(value, *next(iter(keys), ()))]

    def clear(self, value: str) -> list[Loan]:
        """Items of entities with the value that support this value only, as far as is known."""
        return self.loans[(value, CLEAR)]


def _filed_under(
    entity: DatasetEntity, item: DatasetItem, predicate: str
) -> Iterator[tuple[str, ...]]:
    value = entity.labels.get(predicate)
    if value is None:
        return
    yield (value,)
    for key in _source_and_aspect(item):
        yield (value, *key)
    if _supported_values(item, predicate) in (None, [value]):
        yield (value, CLEAR)


def _source_and_aspect(item: DatasetItem) -> Iterator[tuple[str, str]]:
    if item.source is not None:
        yield "source", item.source
    if item.truth is not None and "aspect" in item.truth:
        yield "aspect", item.truth["aspect"]


def _supported_values(item: DatasetItem, predicate: str) -> list[str] | None:
    """The values that an item leaves open; None if only its entity's value is known."""
    if predicate in item.labels:
        return [item.labels[predicate]]
    symbol = None if item.truth is None else item.truth.get("symbol")
    return None if symbol is None else list(symbol)


def _with_names_of(text: str, lender: DatasetEntity, borrower: DatasetEntity) -> str:
    """The text with the lender's name, country and other fields replaced by the borrower's."""
    words = {
        word: other
        for name, word in lender.fields.items()
        if word and isinstance(word, str) and isinstance(other := borrower.fields.get(name), str)
    }
    if not words:
        return text
    longest_first = sorted(words, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
    return re.sub(pattern, lambda match: words[match[0]], text)


# What is added to a copy must not say anything about the value.
REWORDINGS = (
    "{} This was noted again.",
    "Again: {}",
    "As noted elsewhere: {}",
    "{} (Repeated for the file.)",
    "For the record: {}",
    "{} The same was said before.",
    "From the summary: {}",
    "{} This is on file.",
)

Choice = TypeVar("Choice")
Maker = Callable[[DatasetEntity, DatasetItem, np.random.Generator], DatasetItem]
# New evidence by entity ID, for the entities whose evidence changes.
Changed = dict[str, tuple[DatasetItem, ...]]


@dataclass(frozen=True)
class Task:
    """One call of ``perturbed``: its arguments, random streams and new IDs."""

    dataset: Dataset
    kind: str
    level: float
    seed: int
    predicate: str
    foreign: tuple[str, ...]

    @property
    def entities(self) -> Iterator[DatasetEntity]:
        """Entities with evidence; the others have nothing to corrupt."""
        return (entity for entity in self.dataset if entity.evidence)

    def stream(self, what: str, name: str) -> np.random.Generator:
        return stream(self.seed, "perturbed", self.kind, what, name)

    def taken(self, names: Iterable[str]) -> list[str]:
        """The share of the names that the level takes, in the order in which they are taken."""
        order = sorted(names, key=lambda name: (self.stream("order", name).random(), name))
        return order[: round(self.level * len(order))]

    def taken_items(self) -> list[str]:
        return self.taken(item.evidence_id for item in self.dataset.items)

    @cached_property
    def lenders(self) -> Lenders:
        return Lenders.of(self.dataset, self.predicate)

    def new_id(self, name: str, number: int | None = None) -> str:
        """An unused ID for the replacement of an item, or for a new item of an entity."""
        evidence_id = f"{name}~{self.kind}" + ("" if number is None else f"-{number}")
        while evidence_id in self._ids:  # the data was perturbed before
            evidence_id += "~"
        return evidence_id

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(item.evidence_id for item in self.dataset.items)


def missing(task: Task) -> Changed:
    order = {name: place for place, name in enumerate(task.taken_items())}
    changed = {}
    for entity in task.entities:
        last = max(entity.evidence, key=lambda item: order.get(item.evidence_id, len(order)))
        left = tuple(
            item for item in entity.evidence if item is last or item.evidence_id not in order
        )
        if len(left) < len(entity.evidence):
            changed[entity.entity_id] = left
    return changed


def flipped(task: Task) -> Changed:
    def make_item(
        entity: DatasetEntity, item: DatasetItem, generator: np.random.Generator
    ) -> DatasetItem:
        value = task.lenders.wrong_value(entity, generator)
        loan = _one(task.lenders.alike(value, item), generator)
        return replace(loan.to(entity, task.predicate), timestamp=item.timestamp)

    return _replaced(task, make_item)


def noise(task: Task) -> Changed:
    words = [word for item in task.dataset.items for word in item.text.split()]

    def make_item(
        entity: DatasetEntity, item: DatasetItem, generator: np.random.Generator
    ) -> DatasetItem:
        drawn = generator.integers(len(words), size=len(item.text.split()))
        return _with_text(item, " ".join(words[place] for place in drawn))

    return _replaced(task, make_item)


def foreign(task: Task) -> Changed:
    return _replaced(
        task,
        lambda entity, item, generator: _with_text(item, _one(task.foreign, generator)),
    )


def contradiction(task: Task) -> Changed:
    taken = set(task.taken(entity.entity_id for entity in task.entities))
    changed = {}
    for entity in (entity for entity in task.entities if entity.entity_id in taken):
        generator = task.stream("made", entity.entity_id)
        value = task.lenders.wrong_value(entity, generator, CLEAR)
        loan = _one(task.lenders.clear(value), generator)
        item = replace(
            loan.to(entity, task.predicate),
            evidence_id=task.new_id(entity.entity_id, 1),
            timestamp=_one(entity.evidence, generator).timestamp,
        )
        changed[entity.entity_id] = (*entity.evidence, item)
    return changed


def copies(task: Task) -> Changed:
    changed = {}
    for entity in task.entities:
        generator = task.stream("made", entity.entity_id)
        original = _one(entity.evidence, generator)
        wordings = generator.permutation(len(REWORDINGS))[: int(task.level)]
        changed[entity.entity_id] = entity.evidence + tuple(
            replace(
                original,
                evidence_id=task.new_id(entity.entity_id, number),
                text=REWORDINGS[wording].format(original.text),
                report_id=None,
                truth=None,
            )
            for number, wording in enumerate(wordings, start=1)
        )
    return changed


def adversarial(task: Task) -> Changed:
    """The attacker supports one value, and its items are the latest."""
    changed = {}
    for entity in task.entities:
        generator = task.stream("made", entity.entity_id)
        loans = task.lenders.clear(task.lenders.wrong_value(entity, generator, CLEAR))
        moments = [item.timestamp for item in entity.evidence if item.timestamp is not None]
        changed[entity.entity_id] = entity.evidence + tuple(
            replace(
                loans[place].to(entity, task.predicate),
                evidence_id=task.new_id(entity.entity_id, number),
                credibility=1.0,
                timestamp=max(moments, default=None),
            )
            for number, place in enumerate(_places(len(loans), task, generator), start=1)
        )
    return changed


def _places(count: int, task: Task, generator: np.random.Generator) -> list[int]:
    """As many different positions as the level says."""
    if count < task.level:
        raise DatasetError(
            f"dataset {task.dataset.name!r}: an attack with {task.level:g} items needs as many "
            f"items that support one wrong value, and there are {count}. Nothing was changed."
        )
    return [int(place) for place in generator.permutation(count)[: int(task.level)]]


def _replaced(task: Task, make_item: Maker) -> Changed:
    """Replaces every item that the level takes by a new item with a new ID."""
    taken = set(task.taken_items())
    changed = {}
    for entity in task.entities:
        evidence = tuple(
            replace(
                make_item(entity, item, task.stream("made", item.evidence_id)),
                evidence_id=task.new_id(item.evidence_id),
            )
            if item.evidence_id in taken
            else item
            for item in entity.evidence
        )
        if evidence != entity.evidence:
            changed[entity.entity_id] = evidence
    return changed


def _with_text(item: DatasetItem, text: str) -> DatasetItem:
    """The item with another text: it is no longer a copy and has no labels."""
    return replace(item, text=text, labels={}, report_id=None, truth=None)


def _one(choices: Sequence[Choice], generator: np.random.Generator) -> Choice:
    return choices[int(generator.integers(len(choices)))]
