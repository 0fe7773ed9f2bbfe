"""Entities, items, sources and values as nodes of one graph, with typed edges between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from lpf.baselines.bags import Bags, bags_of
from lpf.training.examples import Examples


class Relation(IntEnum):
    """Of an edge, from its beginning to its end; each has its inverse, and copies are their own."""

    ITEM_ABOUT_ENTITY = 0
    ENTITY_HAS_ITEM = 1
    ITEM_FROM_SOURCE = 2
    SOURCE_OF_ITEM = 3
    ENTITY_HAS_VALUE = 4
    VALUE_OF_ENTITY = 5
    COPY_OF_ITEM = 6


@dataclass(frozen=True)
class Graph:
    """Entities with their items. ``sources`` [N] numbers the source of each item; ``copies`` [N]
    numbers groups of copies, alike in no two entities, -1 for none; ``labels`` [E] are the
    entities' values where they may be known, else None.

    Nodes are numbered entities first, then items, sources and values.
    """

    bags: Bags
    sources: Tensor
    copies: Tensor
    labels: Tensor | None = None

    @classmethod
    def of(cls, examples: Examples, sources: Mapping[str, int]) -> Graph:
        """Without labels. A source that has no number, or none that is named, is the last one."""
        bags = bags_of(examples)
        unknown = len(sources)
        named = [
            unknown if item.source is None else sources.get(item.source, unknown)
            for item in examples.dataset.items
        ]
        groups = torch.from_numpy(examples.groups.astype(np.int64))
        apart = bags.owner * (len(groups) + 1) + groups
        return cls(bags, torch.tensor(named), torch.where(groups < 0, -1, apart))

    def __len__(self) -> int:
        return len(self.bags)

    def labelled(self, labels: Tensor) -> Graph:
        return replace(self, labels=labels)

    def take(self, places: Tensor) -> Graph:
        """The entities at ``places`` with their items."""
        rows = self.bags.rows(places)
        labels = None if self.labels is None else self.labels[places]
        return Graph(self.bags.take(places), self.sources[rows], self.copies[rows], labels)

    def edges(self, source_count: int) -> tuple[Tensor, Tensor]:
        """Beginnings and ends [2, M], and the relation of each [M].

        Only entities with known values speak to sources and values: what is asked about hears of
        them, and nobody hears of it.
        """
        items = len(self) + torch.arange(len(self.sources))
        sources = len(self) + len(items) + self.sources
        owners = self.bags.owner
        found = [
            (Relation.ITEM_ABOUT_ENTITY, items, owners),
            (Relation.ENTITY_HAS_ITEM, owners, items),
            (Relation.SOURCE_OF_ITEM, sources, items),
            (Relation.COPY_OF_ITEM, *items[copy_pairs(self.copies)]),
        ]
        if self.labels is not None:
            entities = torch.arange(len(self))
            values = len(self) + len(items) + source_count + self.labels
            found += [
                (Relation.ITEM_FROM_SOURCE, items, sources),
                (Relation.ENTITY_HAS_VALUE, entities, values),
                (Relation.VALUE_OF_ENTITY, values, entities),
            ]
        pairs = torch.cat([torch.stack([begin, end]) for _, begin, end in found], dim=1)
        kinds = [torch.full((len(begin),), int(kind)) for kind, begin, _ in found]
        return pairs, torch.cat(kinds)


def copy_pairs(copies: Tensor) -> Tensor:
    """Both directions between items of one group, [2, P]."""
    grouped = torch.nonzero(copies >= 0)[:, 0]
    same = copies[grouped][:, None] == copies[grouped][None, :]
    same.fill_diagonal_(False)
    return grouped[torch.nonzero(same).T]


def numbered_sources(examples: Examples) -> dict[str, int]:
    """Numbers for all sources that are named."""
    seen = {item.source for item in examples.dataset.items}
    named = sorted(source for source in seen if source is not None)
    return {source: number for number, source in enumerate(named)}
