"""The paper's R-GCN (Schlichtkrull et al. 2018): two layers of 30 bases over a graph of entities,
items, sources and values.

Training entities are joined to the nodes of their values. An entity that is asked about hears its
items and their sources; its score for a value is Σ_d e_d·r_d·v_d (DistMult, as in that paper), with
e the entity's last state, v the value's and r learned. Two layers reach two steps, so what items
say of a source never comes back to an entity, while values know what their entities' items say.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout

from lpf.baselines.best_epoch import BestEpoch
from lpf.baselines.global_draws import seeded
from lpf.baselines.graphs import Graph, Relation, numbered_sources
from lpf.baselines.interface import FittedMethod, entity_labels, value_count
from lpf.baselines.networks import (
    DROPOUT,
    ENTITY_BATCH,
    HIDDEN,
    LEARNING_RATE,
    MAX_EPOCHS,
    PATIENCE,
)
from lpf.errors import MissingPackageError
from lpf.training.examples import Examples
from lpf.types import FloatArray

WIDTH = HIDDEN[-1]
BASES = 30
START = 0.1  # the spread of learned vectors; with 1 the validation loss is about the same
PURPOSE = 5  # tells these draws apart from those of other networks with the same seed
# Of the items in training, so that the node of unknown sources learns what to stand for.
HIDDEN_SOURCES = 0.1
ANSWER_BATCH = 256


class RelationalNetwork(torch.nn.Module):
    """Items begin as their features through a linear layer, all other nodes as learned vectors:
    one for entities, one a source and one more for unknown ones, one a value."""

    def __init__(self, width: int, sources: int, values: int) -> None:
        super().__init__()
        self.items = torch.nn.Linear(width, WIDTH)
        self.entity = torch.nn.Parameter(START * torch.randn(1, WIDTH))
        self.sources = torch.nn.Parameter(START * torch.randn(sources + 1, WIDTH))
        self.values = torch.nn.Parameter(START * torch.randn(values, WIDTH))
        self.first, self.second = _convolution(), _convolution()
        self.relation = torch.nn.Parameter(torch.ones(WIDTH) / WIDTH)

    @property
    def unknown_source(self) -> int:
        return len(self.sources) - 1

    def forward(self, asked: Graph, value_states: Tensor) -> Tensor:
        """Logits [E, V]."""
        states = self._states(asked)[: len(asked)]
        return (states * self.relation) @ value_states.T

    def value_states(self, known: Graph) -> Tensor:
        """Of the values after what labelled entities told them, [V, WIDTH]."""
        return self._states(known)[-len(self.values) :]

    def _states(self, graph: Graph) -> Tensor:
        """Of all nodes after both layers, [nodes, WIDTH]."""
        pairs, kinds = graph.edges(len(self.sources))
        items = self.items(graph.bags.features[0])
        nodes = torch.cat([self.entity.expand(len(graph), -1), items, self.sources, self.values])
        hidden = torch.relu(self.first(nodes, pairs, kinds))
        last: Tensor = self.second(dropout(hidden, DROPOUT, self.training), pairs, kinds)
        return last


@dataclass(frozen=True)
class TrainedGraph:
    """What ``RelationalGraph`` learns. ``value_states`` [V, WIDTH] come from the training entities
    alone, so that no entity that is asked about hears of another."""

    network: RelationalNetwork
    sources: Mapping[str, int]
    value_states: Tensor

    def predict_proba(self, examples: Examples) -> FloatArray:
        return _probabilities(self.network, Graph.of(examples, self.sources), self.value_states)


@dataclass(frozen=True)
class RelationalGraph:
    """Trained as the other networks are: same optimiser, epochs and patience."""

    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        sources = numbered_sources(train)
        labels, held_labels = (
            torch.from_numpy(entity_labels(part, predicate).astype(np.int64))
            for part in (train, validation)
        )
        known = Graph.of(train, sources).labelled(labels)
        held = Graph.of(validation, sources)
        with seeded(seed, PURPOSE):
            network = RelationalNetwork(
                train.features.shape[1], len(sources), value_count(train, predicate)
            )
            _train(network, known, labels, held, held_labels)
        return TrainedGraph(network, sources, _value_states(network, known))


def _train(
    network: RelationalNetwork, known: Graph, labels: Tensor, held: Graph, held_labels: Tensor
) -> None:
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=0.0, fused=True
    )
    best = BestEpoch(PATIENCE)
    for epoch in range(MAX_EPOCHS):
        network.train()
        for asked, others in _halves(len(known)):
            strangers = _as_strangers(known.take(asked), network.unknown_source)
            logits = network(strangers, network.value_states(known.take(others)))
            optimiser.zero_grad(set_to_none=True)
            cross_entropy(logits, labels[asked]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        if best.is_over(network, _loss(network, known, held, held_labels), epoch):
            break
    best.restore(network)


def _halves(entities: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Every entity once among those asked about, beside as many others whose values are known: no
    entity hears its own."""
    count = max(2, -(-entities // ENTITY_BATCH))
    parts = torch.tensor_split(torch.randperm(entities), count)
    for place, asked in enumerate(parts):
        yield asked, parts[(place + 1) % count]


def _as_strangers(asked: Graph, unknown: int) -> Graph:
    """Without values, and some of their items from a source that nobody knows."""
    hidden = torch.rand(len(asked.sources)) < HIDDEN_SOURCES
    return replace(asked, labels=None, sources=asked.sources.masked_fill(hidden, unknown))


def _loss(network: RelationalNetwork, known: Graph, held: Graph, labels: Tensor) -> float:
    found = _probabilities(network, held, _value_states(network, known))
    return float(-np.log(found[np.arange(len(found)), labels.numpy()]).mean())


def _value_states(network: RelationalNetwork, known: Graph) -> Tensor:
    network.eval()
    with torch.no_grad():
        return network.value_states(known)


def _probabilities(network: RelationalNetwork, asked: Graph, value_states: Tensor) -> FloatArray:
    """[E, V], without dropout."""
    network.eval()
    with torch.no_grad():
        logits = [
            network(asked.take(places), value_states).to(torch.float64)
            for places in torch.split(torch.arange(len(asked)), ANSWER_BATCH)
        ]
    return torch.softmax(torch.cat(logits), dim=1).numpy()


def _convolution() -> torch.nn.Module:
    try:
        with warnings.catch_warnings():
            # Raised while the package is imported, by its own use of TorchScript.
            warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
            from torch_geometric.nn import RGCNConv  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingPackageError(
            "a relational graph needs the package torch-geometric: `pip install 'lpf[baselines]'`."
        ) from error
    made: torch.nn.Module = RGCNConv(WIDTH, WIDTH, len(Relation), num_bases=BASES)
    return made
