"""Stage 2: the learned aggregator, on whole entities, all members in one pass.

    L = -log p(y | z_agg),   z_agg = Σ wᵢ μᵢ

Encoder and decoder are frozen unless the config says ``unfreeze``. Early stopping and weight decay
correct the published recipe, which memorises the entities if there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lpf.model.config import ModelConfig
from lpf.model.networks import aggregate, decode, encode, to_numpy
from lpf.training.config import StageTwoConfig
from lpf.training.members import Members, Tensors, generators
from lpf.types import Float32Array

STAGE = 2
TRAINED_PREFIX = "aggregator."


@dataclass(frozen=True)
class EntityRows:
    """Entities of one split: the rows of their items [E, K], padded; ``present`` [E, K] is True for
    real items, ``labels`` [E] is the position of each entity's value."""

    rows: Tensor
    present: Tensor
    labels: Tensor

    @classmethod
    def of(
        cls,
        offsets: NDArray[np.intp],
        labels: NDArray[np.intp],
        entities: NDArray[np.intp],
        top_k: int,
    ) -> EntityRows:
        """The first ``top_k`` items of each labelled entity."""
        chosen = entities[labels[entities] >= 0]
        counts = np.minimum(np.diff(offsets)[chosen], top_k)
        width = int(counts.max(initial=1))
        present = np.arange(width) < counts[:, None]
        rows = np.where(present, offsets[chosen][:, None] + np.arange(width), 0)
        return cls(
            torch.from_numpy(rows.astype(np.int64)),
            torch.from_numpy(present),
            torch.from_numpy(labels[chosen].astype(np.int64)),
        )

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows, presence and labels of the entities at ``places`` [S, b]."""
        return self.rows[places], self.present[places], self.labels[places]


@dataclass(frozen=True)
class AggregatorEpoch:
    """One epoch of one member."""

    train_loss: float
    validation_loss: float
    validation_accuracy: float


AggregatorHistory = tuple[tuple[AggregatorEpoch, ...], ...]


class StageTwo:
    """The second stage of one model: each predicate in turn, on the entities that have it."""

    def __init__(self, model: ModelConfig, config: StageTwoConfig, features: Float32Array) -> None:
        self._model = model
        self._config = config
        self._features = torch.from_numpy(np.ascontiguousarray(features))

    def run(
        self,
        tensors: Mapping[str, Float32Array],
        train: Mapping[str, EntityRows],
        validation: Mapping[str, EntityRows],
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[dict[str, Float32Array], AggregatorHistory]:
        """The tensors of each member's best epoch, and every epoch's losses. ``train`` and
        ``validation`` are by predicate."""
        members = self._members(tensors)
        posteriors = None if self._config.unfreeze else self._posteriors(members.parameters)
        best = {name: tensor.detach().clone() for name, tensor in members.parameters.items()}
        epochs: list[list[AggregatorEpoch]] = [[] for _ in self._model.seeds]
        for epoch in range(self._config.epochs):
            loss = self._train(members, posteriors, train, epoch)
            validated = self._validate(members, posteriors, validation)
            for place, row in enumerate(zip(loss.tolist(), *validated.tolist(), strict=True)):
                epochs[place].append(AggregatorEpoch(*row))
                self._keep_if_best(best, members.parameters, epochs[place], place)
            if progress is not None:
                progress(epoch + 1, self._config.epochs)
            if all(self._is_out_of_patience(one) for one in epochs):
                break
        return to_numpy(best), tuple(map(tuple, epochs))

    def _members(self, tensors: Mapping[str, Float32Array]) -> Members:
        names = [name for name in tensors if self._config.unfreeze or _is_of_aggregator(name)]
        return Members.of(tensors, names, self._config.learning_rate, self._config.weight_decay)

    def _posteriors(self, parameters: Tensors) -> tuple[Tensor, Tensor]:
        """μ and σ of all items under all members, computed once because they do not change."""
        with torch.no_grad():
            shared = self._features.expand(len(self._model.seeds), -1, -1)
            return encode(parameters, self._model, shared)

    def _train(
        self,
        members: Members,
        posteriors: tuple[Tensor, Tensor] | None,
        train: Mapping[str, EntityRows],
        epoch: int,
    ) -> Tensor:
        drawn_by = generators(self._model.seeds, STAGE, epoch)
        total, count = torch.zeros(len(drawn_by)), 0
        for predicate, entities in train.items():
            order = torch.stack([torch.randperm(len(entities), generator=one) for one in drawn_by])
            for places in torch.split(order, self._config.batch_size, dim=1):
                batch = entities.take(places)
                dropout = _dropout(drawn_by)
                losses, _ = self._losses(members, posteriors, predicate, batch, dropout)
                members.step(losses.sum())
                total += places.shape[1] * losses.detach()
                count += places.shape[1]
        return total / count

    def _validate(
        self,
        members: Members,
        posteriors: tuple[Tensor, Tensor] | None,
        validation: Mapping[str, EntityRows],
    ) -> Tensor:
        """Loss and accuracy [2, S], the mean over predicates."""
        by_predicate = []
        with torch.no_grad():
            for predicate, entities in validation.items():
                places = torch.arange(len(entities)).expand(len(self._model.seeds), -1)
                batch = entities.take(places)
                by_predicate.append(
                    torch.stack(self._losses(members, posteriors, predicate, batch, _keep))
                )
        return torch.stack(by_predicate).mean(dim=0)

    def _losses(
        self,
        members: Members,
        posteriors: tuple[Tensor, Tensor] | None,
        predicate: str,
        batch: tuple[Tensor, Tensor, Tensor],
        dropout: Callable[[Tensor, float], Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Mean loss and accuracy of a batch, each [S]."""
        rows, present, labels = batch
        mu, sigma = self._items(members, posteriors, rows)
        z, _ = aggregate(members.parameters, self._model, mu, sigma, present, dropout)
        logits = decode(members.parameters, self._model, z, predicate)
        log_probabilities = self._of_entities(logits, predicate)
        logs = log_probabilities.gather(2, labels[:, :, None])[:, :, 0]
        right = (log_probabilities.argmax(dim=2) == labels).to(logs.dtype)
        return -logs.mean(dim=1), right.mean(dim=1)

    def _of_entities(self, logits: Tensor, predicate: str) -> Tensor:
        """log p(y) of the entities' values, [S, b, V]."""
        channel = self._model.head(predicate).channel
        if not channel:
            return torch.log_softmax(logits, dim=2)
        probabilities = torch.softmax(logits, dim=2) @ torch.tensor(channel, dtype=logits.dtype)
        return torch.log(probabilities.clamp_min(torch.finfo(logits.dtype).tiny))

    def _items(
        self, members: Members, posteriors: tuple[Tensor, Tensor] | None, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        """μ and σ of items [S, b, K], each [S, b, K, d]."""
        if posteriors is not None:
            place = torch.arange(len(rows))[:, None, None]
            return posteriors[0][place, rows], posteriors[1][place, rows]
        flat = self._features[rows.reshape(len(rows), -1)]
        mu, sigma = encode(members.parameters, self._model, flat)
        return mu.reshape(*rows.shape, -1), sigma.reshape(*rows.shape, -1)

    def _keep_if_best(
        self, best: Tensors, parameters: Tensors, epochs: Sequence[AggregatorEpoch], place: int
    ) -> None:
        """The published recipe uses the last epoch; with patience it is the best one."""
        losses = [epoch.validation_loss for epoch in epochs]
        if self._config.patience is None or losses[-1] <= min(losses):
            for name, tensor in parameters.items():
                best[name][place] = tensor.detach()[place]

    def _is_out_of_patience(self, epochs: Sequence[AggregatorEpoch]) -> bool:
        if self._config.patience is None:
            return False
        losses = [epoch.validation_loss for epoch in epochs]
        return len(losses) - 1 - int(np.argmin(losses)) >= self._config.patience


def _is_of_aggregator(name: str) -> bool:
    return name.startswith(TRAINED_PREFIX)


def _keep(activation: Tensor, rate: float) -> Tensor:
    return activation


def _dropout(drawn_by: Sequence[torch.Generator]) -> Callable[[Tensor, float], Tensor]:
    def dropout(activation: Tensor, rate: float) -> Tensor:
        uniform = torch.empty(activation.shape)
        for place, generator in enumerate(drawn_by):
            uniform[place].uniform_(generator=generator)
        return activation * (uniform >= rate) / (1.0 - rate)

    return dropout
