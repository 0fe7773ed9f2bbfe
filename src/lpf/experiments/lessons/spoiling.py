"""How evidence is spoilt, one function a kind; ``perturbations`` says what each is called.

Every item and entity has its random numbers under its own id, and a level takes the first of an
order that does not depend on it: so higher levels spoil what lower ones do, and more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.domains.streams import stream
from lpf.errors import DatasetError
from lpf.experiments.lessons.borrowing import CLEAR, Lenders

# Nothing that a copy adds may say anything.
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
# The evidence of entities, by their id, where it is another than before.
Changed = dict[str, tuple[DatasetItem, ...]]


@dataclass(frozen=True)
class Task:
    """One call of ``perturbed``, with the random numbers and the names that it may use."""

    dataset: Dataset
    kind: str
    level: float
    seed: int
    predicate: str
    foreign: tuple[str, ...]

    @property
    def entities(self) -> Iterator[DatasetEntity]:
        """Those with evidence; where there is none, there is nothing to spoil."""
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
        """For what takes the place of an item, or for an entity's item of that number."""
        made = f"{name}~{self.kind}" + ("" if number is None else f"-{number}")
        while made in self._ids:  # of data that was perturbed before
            made += "~"
        return made

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
    def made(
        entity: DatasetEntity, item: DatasetItem, generator: np.random.Generator
    ) -> DatasetItem:
        value = task.lenders.wrong_value(entity, generator)
        loan = _one(task.lenders.alike(value, item), generator)
        return replace(loan.to(entity, task.predicate), timestamp=item.timestamp)

    return _replaced(task, made)


def noise(task: Task) -> Changed:
    words = [word for item in task.dataset.items for word in item.text.split()]

    def made(
        entity: DatasetEntity, item: DatasetItem, generator: np.random.Generator
    ) -> DatasetItem:
        drawn = generator.integers(len(words), size=len(item.text.split()))
        return _with_text(item, " ".join(words[place] for place in drawn))

    return _replaced(task, made)


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
    """An attacker keeps to one value, and what it writes is the latest."""
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
    """As many different ones as the level says."""
    if count < task.level:
        raise DatasetError(
            f"dataset {task.dataset.name!r}: an attack with {task.level:g} items needs as many "
            f"that speak for one wrong value, and there are {count}. Nothing was changed."
        )
    return [int(place) for place in generator.permutation(count)[: int(task.level)]]


def _replaced(task: Task, made: Maker) -> Changed:
    """Every item that the level takes, as it is made anew under an id of its own."""
    taken = set(task.taken_items())
    changed = {}
    for entity in task.entities:
        evidence = tuple(
            replace(
                made(entity, item, task.stream("made", item.evidence_id)),
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
    """It repeats nothing any more, and says what nobody labelled."""
    return replace(item, text=text, labels={}, report_id=None, truth=None)


def _one(choices: Sequence[Choice], generator: np.random.Generator) -> Choice:
    return choices[int(generator.integers(len(choices)))]
