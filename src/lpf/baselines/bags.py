"""Entities as bags of items, for networks: any number of items each, without padding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lpf.baselines.interface import entity_labels
from lpf.training.examples import Examples
from lpf.types import Float32Array


@dataclass(frozen=True)
class Bags:
    """E bags: ``features`` [1, N, width] of all items one after the other, ``counts`` [E]. The
    leading axis is that of the networks' members, here one."""

    features: Tensor
    counts: Tensor

    @classmethod
    def of(cls, features: Float32Array, counts: NDArray[np.intp]) -> Bags:
        rows = torch.from_numpy(np.array(features, np.float32))[None]
        return cls(rows, torch.from_numpy(counts.astype(np.int64)))

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def owner(self) -> Tensor:
        """The bag of each item, [N]."""
        return torch.repeat_interleave(torch.arange(len(self)), self.counts)

    @cached_property
    def log_counts(self) -> Tensor:
        """[1, E, 1]."""
        return torch.log(self.counts.to(torch.float32))[None, :, None]

    def sum(self, rows: Tensor) -> Tensor:
        """[1, N, d] -> [1, E, d]."""
        total = torch.zeros(1, len(self), rows.shape[2], dtype=rows.dtype)
        return total.index_add(1, self.owner, rows)

    def mean(self, rows: Tensor) -> Tensor:
        return self.sum(rows) / self.counts[None, :, None]

    def softmax(self, scores: Tensor) -> Tensor:
        """Over the items of each bag: [1, N, 1] -> [1, N, 1]."""
        top = torch.full((len(self),), -torch.inf, dtype=scores.dtype)
        top = top.scatter_reduce(0, self.owner, scores.detach()[0, :, 0], "amax")
        weights = torch.exp(scores - top[None, self.owner, None])
        return weights / self.sum(weights)[:, self.owner]

    def take(self, places: Tensor) -> Bags:
        """The bags at ``places`` [b]."""
        return Bags(self.features[:, self.rows(places)], self.counts[places])

    def rows(self, places: Tensor) -> Tensor:
        """Where the items of the bags at ``places`` stand."""
        starts = torch.cumsum(self.counts, 0) - self.counts
        counts = self.counts[places]
        within = torch.arange(int(counts.sum()))
        within -= torch.repeat_interleave(torch.cumsum(counts, 0) - counts, counts)
        return torch.repeat_interleave(starts[places], counts) + within


@dataclass(frozen=True)
class LabelledBags:
    """Bags with the position of each one's value, [E]."""

    bags: Bags
    labels: Tensor

    @classmethod
    def of_entities(cls, examples: Examples, predicate: str) -> LabelledBags:
        labels = entity_labels(examples, predicate).astype(np.int64)
        return cls(bags_of(examples), torch.from_numpy(labels))

    @classmethod
    def of_items(cls, examples: Examples, predicate: str) -> LabelledBags:
        """Every labelled item a bag of its own."""
        labels = examples.dataset.item_labels(predicate)
        known = np.flatnonzero(labels >= 0)
        alone = np.ones(len(known), np.intp)
        bags = Bags.of(examples.features[known], alone)
        return cls(bags, torch.from_numpy(labels[known].astype(np.int64)))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, places: Tensor) -> LabelledBags:
        return LabelledBags(self.bags.take(places), self.labels[places])


def bags_of(examples: Examples) -> Bags:
    return Bags.of(examples.features, examples.segments.counts)
