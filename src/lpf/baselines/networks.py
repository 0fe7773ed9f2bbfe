"""Networks over bags of items, and how they are trained.

Adam at 1e-3, at most 100 epochs, patience 15 on the validation NLL, like LPF's own networks; widths
and dropout are those of the paper's encoder. A bag holds the items of one entity; bags have any
number of items, without padding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lpf.baselines.interface import entity_labels, value_count
from lpf.errors import TrainingError
from lpf.model.layout import Shapes, stack_shapes
from lpf.model.networks import Dropout, Parameters, keep_all, linear, perceptron
from lpf.training.examples import Examples
from lpf.training.members import Members, Tensors, generators
from lpf.types import Float32Array, FloatArray


@dataclass(frozen=True)
class Bags:
    """E bags: ``features`` [1, N, width] of all items in order, ``counts`` [E]. The leading axis is
    that of the networks' members, here one."""

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
        """Positions of the items of the bags at ``places``."""
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
        """Every labelled item is a bag of its own."""
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


HIDDEN = (256, 128)
DROPOUT = 0.2
LEARNING_RATE = 1e-3
MAX_EPOCHS = 100
PATIENCE = 15
ENTITY_BATCH = 32  # as the learned aggregator's
ITEM_BATCH = 64  # as the encoder's
PURPOSE = 3  # separates these random draws from those of other stages with the same seed


class Network(Protocol):
    """Functions over a dictionary of tensors; see ``lpf.model.networks``."""

    def shapes(self, width: int, values: int) -> Shapes:
        """Shapes of all tensors, with the leading axis of one member."""
        ...

    def outputs(self, parameters: Parameters, bags: Bags, dropout: Dropout) -> Tensor:
        """[1, E, V], the input of ``probabilities`` and ``losses``."""
        ...

    def probabilities(self, outputs: Tensor) -> Tensor:
        """[1, E, V]."""
        ...

    def losses(self, outputs: Tensor, labels: Tensor, epoch: int) -> Tensor:
        """The training loss per entity, [E]. ``epoch`` counts from 0."""
        ...


class SoftmaxNetwork:
    """Outputs are logits, and the loss is the cross-entropy."""

    def probabilities(self, outputs: Tensor) -> Tensor:
        return torch.softmax(outputs, dim=2)

    def losses(self, outputs: Tensor, labels: Tensor, epoch: int) -> Tensor:
        return torch.nn.functional.cross_entropy(outputs[0], labels, reduction="none")


@dataclass(frozen=True)
class TrainedNetwork:
    """A network with the weights of its best epoch."""

    network: Network
    parameters: Tensors

    def predict_proba(self, examples: Examples) -> FloatArray:
        with torch.no_grad():
            found = _probabilities(self.network, self.parameters, bags_of(examples))
        return found.numpy()


def train_on_entities(
    network: Network, train: Examples, validation: Examples, predicate: str, seed: int
) -> TrainedNetwork:
    known, held = (LabelledBags.of_entities(part, predicate) for part in (train, validation))
    return train_network(network, known, held, value_count(train, predicate), seed, ENTITY_BATCH)


def train_on_items(
    network: Network, train: Examples, validation: Examples, predicate: str, seed: int
) -> TrainedNetwork:
    """Every item is an example with its own label."""
    known, held = (LabelledBags.of_items(part, predicate) for part in (train, validation))
    return train_network(network, known, held, value_count(train, predicate), seed, ITEM_BATCH)


def train_network(
    network: Network,
    train: LabelledBags,
    validation: LabelledBags,
    values: int,
    seed: int,
    batch: int,
) -> TrainedNetwork:
    """TrainingError if the validation loss is not finite."""
    shapes = network.shapes(train.bags.features.shape[2], values)
    members = Members.of(fresh(shapes, seed), list(shapes), LEARNING_RATE, 0.0)
    best, best_loss, best_epoch = dict[str, Tensor](), np.inf, 0
    for epoch in range(MAX_EPOCHS):
        _one_epoch(network, members, train, seed, epoch, batch)
        loss = _validation_loss(network, members.parameters, validation, epoch)
        if loss < best_loss:
            best_loss, best_epoch = loss, epoch
            best = {name: one.detach().clone() for name, one in members.parameters.items()}
        if epoch - best_epoch >= PATIENCE:
            break
    return TrainedNetwork(network, best)


def fresh(shapes: Shapes, seed: int) -> dict[str, Float32Array]:
    """Initial weights, uniform in ±1/sqrt(inputs) as in ``torch.nn.Linear``."""
    generator = np.random.default_rng([seed, PURPOSE])
    return {
        name: (
            generator.uniform(-1.0, 1.0, shape)
            / np.sqrt(shapes[name.removesuffix(".bias").removesuffix(".weight") + ".weight"][1])
        ).astype(np.float32)
        for name, shape in shapes.items()
    }


def item_shapes(width: int) -> Shapes:
    """Shapes of φ, the network that encodes single items."""
    return stack_shapes("items", 1, (width, *HIDDEN))


def item_codes(parameters: Parameters, rows: Tensor, dropout: Dropout) -> Tensor:
    """φ(x): [1, N, width] -> [1, N, 128]."""
    return perceptron(parameters, "items", rows, DROPOUT, dropout)


def head_shapes(width: int, values: int, hidden: tuple[int, ...] = ()) -> Shapes:
    """Shapes of the network from pooled items to values."""
    trunk = stack_shapes("answer", 1, (width, *hidden)) if hidden else {}
    return trunk | stack_shapes("head", 1, ((width, *hidden)[-1], values))


def head_outputs(parameters: Parameters, pooled: Tensor, dropout: Dropout) -> Tensor:
    """[1, E, width] -> [1, E, V]."""
    hidden = perceptron(parameters, "answer", pooled, DROPOUT, dropout)
    return linear(parameters, "head.0", hidden)


def _one_epoch(
    network: Network, members: Members, train: LabelledBags, seed: int, epoch: int, batch: int
) -> None:
    (generator,) = generators([seed], PURPOSE, epoch)

    def dropout(activation: Tensor, rate: float) -> Tensor:
        mask = torch.rand(activation.shape, generator=generator) >= rate
        return activation * mask / (1.0 - rate)

    for places in torch.split(torch.randperm(len(train), generator=generator), batch):
        part = train.take(places)
        outputs = network.outputs(members.parameters, part.bags, dropout)
        members.step(network.losses(outputs, part.labels, epoch).mean())


def _validation_loss(
    network: Network, parameters: Parameters, validation: LabelledBags, epoch: int
) -> float:
    """Mean NLL of the labels: the same criterion for every network, whatever its training loss."""
    with torch.no_grad():
        found = _probabilities(network, parameters, validation.bags)
    scored = found[torch.arange(len(validation)), validation.labels]
    loss = float(-torch.log(scored).mean())
    if not np.isfinite(loss):
        raise TrainingError(
            f"{type(network).__name__}: the validation loss is {loss} after epoch {epoch + 1}. "
            "No network was saved.",
            hint="Look for features that are not finite.",
        )
    return loss


def _probabilities(network: Network, parameters: Parameters, bags: Bags) -> Tensor:
    """[E, V] in float64, so that rows sum to 1 precisely."""
    outputs = network.outputs(parameters, bags, keep_all).to(torch.float64)
    return network.probabilities(outputs)[0]


@contextlib.contextmanager
def seeded(seed: int, *purpose: int) -> Iterator[None]:
    """Seeds PyTorch's global generator, for libraries that draw from it. Afterwards it is in its
    earlier state."""
    (drawn_by,) = generators([seed], *purpose)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(drawn_by.initial_seed())
        yield


@dataclass
class BestEpoch:
    """The weights of the epoch with the lowest validation NLL. Training stops after ``patience``
    epochs without a better one."""

    patience: int
    loss: float = np.inf
    epoch: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)

    def is_over(self, module: torch.nn.Module, loss: float, epoch: int) -> bool:
        """Records an epoch and returns True if training should stop. TrainingError if the loss is
        not finite."""
        if not np.isfinite(loss):
            raise TrainingError(
                f"{type(module).__name__}: the validation loss is {loss} after epoch {epoch + 1}. "
                "No network was saved.",
                hint="Look for features that are not finite, or a learning rate that is too high.",
            )
        if loss < self.loss:
            self.loss, self.epoch = loss, epoch
            self.weights = {name: one.clone() for name, one in module.state_dict().items()}
        return epoch - self.epoch >= self.patience

    def restore(self, module: torch.nn.Module) -> None:
        """Loads the best weights into the module and sets it to evaluation mode."""
        module.load_state_dict(self.weights)
        module.eval()
