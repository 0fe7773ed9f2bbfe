"""The paper's R-GCN (Schlichtkrull et al. 2018): two layers of 30 bases over a graph.

The nodes of the graph are entities, items, sources and values.

Training entities are connected to the nodes of their values. A test entity receives messages from
its items and their sources; its score for a value is Σ_d e_d·r_d·v_d (DistMult, as in that paper),
with e the last state of the entity, v that of the value, and r learned. Two layers reach two steps:
what items say about a source never reaches an entity, while values receive what the items of their
entities say.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout

from lpf.baselines.interface import FittedMethod, entity_labels, value_count
from lpf.baselines.networks import (
    DROPOUT,
    ENTITY_BATCH,
    HIDDEN,
    LEARNING_RATE,
    MAX_EPOCHS,
    PATIENCE,
    Bags,
    BestEpoch,
    bags_of,
    seeded,
)
from lpf.errors import MissingPackageError
from lpf.training.examples import Examples
from lpf.types import FloatArray


class EdgeType(IntEnum):
    """The type of an edge. Each type has its inverse; copies are symmetric."""

    ITEM_ABOUT_ENTITY = 0
    ENTITY_HAS_ITEM = 1
    ITEM_FROM_SOURCE = 2
    SOURCE_OF_ITEM = 3
    ENTITY_HAS_VALUE = 4
    VALUE_OF_ENTITY = 5
    COPY_OF_ITEM = 6


@dataclass(frozen=True)
class EvidenceGraph:
    """Entities with their items. ``sources`` [N] is the number of each item's source; ``copies``
    [N] that of its group of copies, unique over all entities, -1 for none; ``labels`` [E] are the
    values of training entities, None for test entities.

    Nodes are numbered: entities first, then items, sources and values.
    """

    bags: Bags
    sources: Tensor
    copies: Tensor
    labels: Tensor | None = None

    @classmethod
    def of(cls, examples: Examples, sources: Mapping[str, int]) -> EvidenceGraph:
        """Without labels. Unknown and missing sources have the last number."""
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

    def labelled(self, labels: Tensor) -> EvidenceGraph:
        return replace(self, labels=labels)

    def take(self, places: Tensor) -> EvidenceGraph:
        """The entities at ``places`` with their items."""
        rows = self.bags.rows(places)
        labels = None if self.labels is None else self.labels[places]
        return EvidenceGraph(self.bags.take(places), self.sources[rows], self.copies[rows], labels)

    def edges(self, source_count: int) -> tuple[Tensor, Tensor]:
        """Starts and ends [2, M], and the type of each edge [M].

        Only entities with known values send messages to sources and values: a test entity receives
        from them, and sends nothing to others.
        """
        items = len(self) + torch.arange(len(self.sources))
        sources = len(self) + len(items) + self.sources
        owners = self.bags.owner
        found = [
            (EdgeType.ITEM_ABOUT_ENTITY, items, owners),
            (EdgeType.ENTITY_HAS_ITEM, owners, items),
            (EdgeType.SOURCE_OF_ITEM, sources, items),
            (EdgeType.COPY_OF_ITEM, *items[copy_pairs(self.copies)]),
        ]
        if self.labels is not None:
            entities = torch.arange(len(self))
            values = len(self) + len(items) + source_count + self.labels
            found += [
                (EdgeType.ITEM_FROM_SOURCE, items, sources),
                (EdgeType.ENTITY_HAS_VALUE, entities, values),
                (EdgeType.VALUE_OF_ENTITY, values, entities),
            ]
        pairs = torch.cat([torch.stack([begin, end]) for _, begin, end in found], dim=1)
        kinds = [torch.full((len(begin),), int(kind)) for kind, begin, _ in found]
        return pairs, torch.cat(kinds)


def copy_pairs(copies: Tensor) -> Tensor:
    """Pairs of items of one group, in both directions, [2, P]."""
    grouped = torch.nonzero(copies >= 0)[:, 0]
    same = copies[grouped][:, None] == copies[grouped][None, :]
    same.fill_diagonal_(False)
    return grouped[torch.nonzero(same).T]


def numbered_sources(examples: Examples) -> dict[str, int]:
    """A number for every named source."""
    seen = {item.source for item in examples.dataset.items}
    named = sorted(source for source in seen if source is not None)
    return {source: number for number, source in enumerate(named)}


WIDTH = HIDDEN[-1]
BASES = 30
START = 0.1  # initial sd of learned vectors; with 1 the validation loss is about the same
PURPOSE = 5  # separates these random draws from those of other networks with the same seed
# Share of training items whose source is hidden, to train the node of unknown sources.
HIDDEN_SOURCES = 0.1
ANSWER_BATCH = 256


class RelationalNetwork(torch.nn.Module):
    """Items start as their features through a linear layer, all other nodes as learned vectors: one
    for all entities, one per source and one for unknown sources, one per value."""

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

    def forward(self, test: EvidenceGraph, value_states: Tensor) -> Tensor:
        """Logits [E, V]."""
        states = self._states(test)[: len(test)]
        return (states * self.relation) @ value_states.T

    def value_states(self, known: EvidenceGraph) -> Tensor:
        """States of the values after messages from labelled entities, [V, WIDTH]."""
        return self._states(known)[-len(self.values) :]

    def _states(self, graph: EvidenceGraph) -> Tensor:
        """States of all nodes after both layers, [nodes, WIDTH]."""
        pairs, kinds = graph.edges(len(self.sources))
        items = self.items(graph.bags.features[0])
        nodes = torch.cat([self.entity.expand(len(graph), -1), items, self.sources, self.values])
        hidden = torch.relu(self.first(nodes, pairs, kinds))
        last: Tensor = self.second(dropout(hidden, DROPOUT, self.training), pairs, kinds)
        return last


@dataclass(frozen=True)
class TrainedGraph:
    """A fitted ``RelationalGraph``. ``value_states`` [V, WIDTH] come from training entities only,
    so that no test entity affects another."""

    network: RelationalNetwork
    sources: Mapping[str, int]
    value_states: Tensor

    def predict_proba(self, examples: Examples) -> FloatArray:
        return _probabilities(
            self.network, EvidenceGraph.of(examples, self.sources), self.value_states
        )


@dataclass(frozen=True)
class RelationalGraph:
    """Trained like the other networks: same optimiser, epochs and patience."""

    name: str
    is_reference: bool = False

    def fit(self, train: Examples, validation: Examples, predicate: str, seed: int) -> FittedMethod:
        sources = numbered_sources(train)
        labels, held_labels = (
            torch.from_numpy(entity_labels(part, predicate).astype(np.int64))
            for part in (train, validation)
        )
        known = EvidenceGraph.of(train, sources).labelled(labels)
        held = EvidenceGraph.of(validation, sources)
        with seeded(seed, PURPOSE):
            network = RelationalNetwork(
                train.features.shape[1], len(sources), value_count(train, predicate)
            )
            _train(network, known, labels, held, held_labels)
        return TrainedGraph(network, sources, _value_states(network, known))


def _train(
    network: RelationalNetwork,
    known: EvidenceGraph,
    labels: Tensor,
    held: EvidenceGraph,
    held_labels: Tensor,
) -> None:
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=0.0, fused=True
    )
    best = BestEpoch(PATIENCE)
    for epoch in range(MAX_EPOCHS):
        network.train()
        for queried, others in _batches(len(known)):
            unlabelled = _as_test_entities(known.take(queried), network.unknown_source)
            logits = network(unlabelled, network.value_states(known.take(others)))
            optimiser.zero_grad(set_to_none=True)
            cross_entropy(logits, labels[queried]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        if best.is_over(network, _loss(network, known, held, held_labels), epoch):
            break
    best.restore(network)


def _batches(entities: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Every entity once among those to predict, with as many others whose values are known: no
    entity sees its own value."""
    count = max(2, -(-entities // ENTITY_BATCH))
    parts = torch.tensor_split(torch.randperm(entities), count)
    for place, queried in enumerate(parts):
        yield queried, parts[(place + 1) % count]


def _as_test_entities(graph: EvidenceGraph, unknown: int) -> EvidenceGraph:
    """Without values, and with some sources hidden."""
    hidden = torch.rand(len(graph.sources)) < HIDDEN_SOURCES
    return replace(graph, labels=None, sources=graph.sources.masked_fill(hidden, unknown))


def _loss(
    network: RelationalNetwork, known: EvidenceGraph, held: EvidenceGraph, labels: Tensor
) -> float:
    found = _probabilities(network, held, _value_states(network, known))
    return float(-np.log(found[np.arange(len(found)), labels.numpy()]).mean())


def _value_states(network: RelationalNetwork, known: EvidenceGraph) -> Tensor:
    network.eval()
    with torch.no_grad():
        return network.value_states(known)


def _probabilities(
    network: RelationalNetwork, test: EvidenceGraph, value_states: Tensor
) -> FloatArray:
    """[E, V], without dropout."""
    network.eval()
    with torch.no_grad():
        logits = [
            network(test.take(places), value_states).to(torch.float64)
            for places in torch.split(torch.arange(len(test)), ANSWER_BATCH)
        ]
    return torch.softmax(torch.cat(logits), dim=1).numpy()


def _convolution() -> torch.nn.Module:
    try:
        with warnings.catch_warnings():
            # The package itself uses TorchScript while it is imported.
            warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
            from torch_geometric.nn import RGCNConv  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingPackageError(
            "a relational graph needs the package torch-geometric.",
            hint="Install it: `pip install 'lpf[baselines]'`.",
        ) from error
    layer: torch.nn.Module = RGCNConv(WIDTH, WIDTH, len(EdgeType), num_bases=BASES)
    return layer
