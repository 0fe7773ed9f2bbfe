"""The data of stage 1 as tensors: features, labels, and the rows that each member trains on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lpf.datasets.dataset import Dataset
from lpf.errors import TrainingError
from lpf.model.config import PredicateHead
from lpf.training.config import UNEQUAL, TrainingConfig
from lpf.types import Float32Array, FloatArray

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Material:
    """Items with features [N, width] and, by predicate, the position of their value [N] (-1 if
    unlabelled). Member s trains on rows ``train[s]`` and validates on ``validation[s]``."""

    features: Tensor
    labels: Mapping[str, Tensor]
    train: Tensor
    validation: Tensor
    validation_weight: Tensor
    sampling: Tensor | None

    def read(self, rows: Tensor) -> Tensor:
        """Features [S, n, width] of rows [S, n]."""
        chosen = torch.index_select(self.features, 0, rows.reshape(-1))
        return chosen.view(*rows.shape, -1)

    def member(self, keep: Sequence[int]) -> Material:
        """The material of some of the members."""
        places = list(keep)
        return Material(
            self.features,
            self.labels,
            self.train[places],
            self.validation[places],
            self.validation_weight[places],
            None if self.sampling is None else self.sampling[places],
        )


def make_material(
    features: Float32Array,
    labels: Mapping[str, Rows],
    train: Sequence[Rows],
    validation: Sequence[Rows],
    config: TrainingConfig,
) -> Material:
    """``train`` and ``validation`` have one array of rows per member. Shorter arrays are padded: in
    training by repeating rows, in validation with rows of weight 0."""
    train_length = max(len(rows) for rows in train)
    filled = np.stack([np.resize(rows, train_length) for rows in train])
    length = max(len(rows) for rows in validation)
    weight = np.stack([np.arange(length) < len(rows) for rows in validation])
    return Material(
        torch.from_numpy(np.ascontiguousarray(features)),
        {name: torch.from_numpy(values.astype(np.int64)) for name, values in labels.items()},
        torch.from_numpy(filled.astype(np.int64)),
        torch.from_numpy(np.stack([np.resize(rows, length) for rows in validation]).astype(int)),
        torch.from_numpy(weight.astype(np.float32)),
        _sampling(labels, filled, config),
    )


def labelled_with(dataset: Dataset, predicate: str) -> Dataset:
    """The entities that are labelled with ``predicate``. TrainingError if there are none."""
    places = np.flatnonzero(dataset.labels(predicate) >= 0)
    if not len(places):
        raise TrainingError(
            f"dataset {dataset.name!r}: no entity is labelled with {predicate!r}. Nothing was "
            "trained. Leave the predicate out, or label the data."
        )
    return dataset.select(places.tolist())


def labels_of(dataset: Dataset, predicates: Sequence[str]) -> dict[str, Rows]:
    """The items' labels by predicate, -1 for none."""
    return {name: dataset.item_labels(name) for name in predicates}


def entity_labels_of(dataset: Dataset, predicates: Sequence[str]) -> dict[str, Rows]:
    """For every item the label of its entity, by predicate [N], -1 for none."""
    counts = np.diff(dataset.offsets)
    return {name: np.repeat(dataset.labels(name), counts) for name in predicates}


def training_shares(values: NDArray[np.intp], count: int, weights: FloatArray) -> FloatArray:
    """π: the shares of the labels that a network sees if items are drawn in proportion to
    ``weights``. One is added to each count, so that no share is 0."""
    known = values >= 0
    seen = np.bincount(values[known], weights[known], minlength=count)
    total = known.sum() / max(weights[known].sum(), 1e-300)
    smoothed = seen * total + 1.0
    return np.asarray(smoothed / smoothed.sum())


def item_weights(labels: Mapping[str, Rows], rows: Rows, config: TrainingConfig) -> FloatArray:
    """How often each of ``rows`` is drawn, with mean 1: all equally often, or so that the values of
    the most unequal predicate are balanced."""
    counts = {name: np.bincount(values[rows][values[rows] >= 0]) for name, values in labels.items()}
    ratios = {name: _ratio(one) for name, one in counts.items()}
    name = max(ratios, key=ratios.__getitem__)
    if config.balance == "never" or (config.balance == "auto" and ratios[name] <= UNEQUAL):
        return np.ones(len(rows))
    values = labels[name][rows]
    weights = np.zeros(len(rows))
    known = values >= 0
    weights[known] = 1.0 / counts[name][values[known]]
    weights[~known] = weights[known].mean()
    return np.asarray(weights / weights.mean())


def heads_of(
    dataset: Dataset, predicates: Sequence[str], train: Rows, config: TrainingConfig
) -> list[PredicateHead]:
    """One head per predicate, with the shares of the labels that training draws from ``train``."""
    labels, of_entities = labels_of(dataset, predicates), entity_labels_of(dataset, predicates)
    weights = item_weights(labels, train, config)
    heads = []
    for name, values in labels.items():
        known = dataset.schema[name].values
        shares = training_shares(values[train], len(known), weights)
        channel = None
        if config.model == "best":
            channel = channel_between(values[train], of_entities[name][train], len(known))
        heads.append(head_through(name, known, shares, channel))
    return heads


def head_through(
    name: str, values: tuple[str, ...], shares: FloatArray, channel: FloatArray | None
) -> PredicateHead:
    """A head whose π is ``shares``, those of the items' own labels, mapped through ``channel``."""
    if channel is None:
        return PredicateHead(name, values, tuple(shares.tolist()))
    rows = tuple(tuple(row) for row in channel.tolist())
    return PredicateHead(name, values, tuple((shares @ channel).tolist()), rows)


def channel_between(own: Rows, of_entities: Rows, count: int) -> FloatArray | None:
    """P(entity's value | item's value) [V, V], smoothed by one average item per row; None if every
    item's label is its entity's."""
    known = (own >= 0) & (of_entities >= 0)
    if (own == of_entities)[known].all():
        return None
    counts = np.zeros((count, count))
    np.add.at(counts, (own[known], of_entities[known]), 1.0)
    average_item = training_shares(of_entities[known], count, np.ones(int(known.sum())))
    smoothed = counts + average_item
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))


def _sampling(labels: Mapping[str, Rows], train: Rows, config: TrainingConfig) -> Tensor | None:
    weights = np.stack([item_weights(labels, rows, config) for rows in train])
    if (weights == 1.0).all():
        return None
    return torch.from_numpy(weights.astype(np.float32))


def _ratio(counts: NDArray[np.intp]) -> float:
    present = counts[counts > 0]
    return float(present.max() / present.min()) if len(present) else 1.0
