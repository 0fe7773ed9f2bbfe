"""Items of one entity put among those of another: evidence that speaks for a wrong value."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.errors import DatasetError

CLEAR = "clear"


@dataclass(frozen=True)
class Loan:
    """An item and whose it is."""

    item: DatasetItem
    lender: DatasetEntity

    def to(self, borrower: DatasetEntity, predicate: str) -> DatasetItem:
        """The item as it stands with its borrower: it names the borrower where it named its lender,
        keeps the value it was labelled with, and is of no report."""
        return replace(
            self.item,
            text=_readdressed(self.item.text, self.lender, borrower),
            labels={predicate: self.lender.labels[predicate], **self.item.labels},
            report_id=None,
            truth=None,
        )


@dataclass(frozen=True)
class Lenders:
    """``loans`` by what they are filed under, the entity's value first: all of a value, those of a
    source, those of an aspect, and those that speak for the value and no other."""

    dataset: Dataset
    predicate: str
    loans: Mapping[tuple[str, ...], list[Loan]]

    @classmethod
    def of(cls, dataset: Dataset, predicate: str) -> Lenders:
        """DatasetError where items cannot speak for another entity's value: each is about its own
        entity's claim."""
        claimed = next((entity for entity in dataset if entity.claim is not None), None)
        if claimed is not None:
            raise DatasetError(
                f"dataset {dataset.name!r}: evidence is about claims (first: entity "
                f"{claimed.entity_id!r}), and what speaks against one claim says nothing about "
                "another. Nothing was changed; use a kind that borrows no items."
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
        """A value that the entity does not have and something can be borrowed for, each as likely
        as the others. DatasetError where there is none."""
        own = entity.labels.get(self.predicate)
        values = self.dataset.schema[self.predicate].values
        others = [value for value in values if value != own and (value, *filed) in self.loans]
        if own is None or not others:
            raise DatasetError(
                f"dataset {self.dataset.name!r}: entity {entity.entity_id!r} has the value {own!r} "
                f"of {self.predicate!r}, and evidence can be borrowed for {others} besides. "
                "Nothing was changed; hand over labelled entities of at least two values."
            )
        return others[int(generator.integers(len(others)))]

    def alike(self, value: str, item: DatasetItem) -> list[Loan]:
        """Items of entities with the value: of the item's source, else of its aspect, else any."""
        keys = [key for key in _kinships(item) if (value, *key) in self.loans]
        return self.loans[(value, *next(iter(keys), ()))]

    def clear(self, value: str) -> list[Loan]:
        """Items of entities with the value that speak for it and no other, as far as is known."""
        return self.loans[(value, CLEAR)]


def _filed_under(
    entity: DatasetEntity, item: DatasetItem, predicate: str
) -> Iterator[tuple[str, ...]]:
    value = entity.labels.get(predicate)
    if value is None:
        return
    yield (value,)
    for kinship in _kinships(item):
        yield (value, *kinship)
    if _spoken_for(item, predicate) in (None, [value]):
        yield (value, CLEAR)


def _kinships(item: DatasetItem) -> Iterator[tuple[str, str]]:
    if item.source is not None:
        yield "source", item.source
    if item.truth is not None and "aspect" in item.truth:
        yield "aspect", item.truth["aspect"]


def _spoken_for(item: DatasetItem, predicate: str) -> list[str] | None:
    """The values that an item leaves open; None where only its entity's value is known."""
    if predicate in item.labels:
        return [item.labels[predicate]]
    symbol = None if item.truth is None else item.truth.get("symbol")
    return None if symbol is None else list(symbol)


def _readdressed(text: str, lender: DatasetEntity, borrower: DatasetEntity) -> str:
    """The lender's name, country and the like, wherever they stand, become the borrower's."""
    words = {
        theirs: ours
        for name, theirs in lender.fields.items()
        if theirs and isinstance(theirs, str) and isinstance(ours := borrower.fields.get(name), str)
    }
    if not words:
        return text
    longest_first = sorted(words, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
    return re.sub(pattern, lambda match: words[match[0]], text)
