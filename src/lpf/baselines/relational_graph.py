"""The paper's R-GCN (Schlichtkrull et al. 2018): two layers of 30 bases over a graph of entities,
items, sources and values.

Training entities are joined to the nodes of their values. An entity that is asked about hears its
items and their sources; its score for a value is Σ_d e_d·r_d·v_d (DistMult, as in that paper), with
e the entity's last state, v the value's and r learned. Two layers reach two steps, so what items
say of a source never comes back to an entity, while values know what their entities' items say.

Entities, items, sources and values as nodes of one graph, with typed edges between them.
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
    """Of an edge, from its beginning to its end; each has its inverse, and copies are their own."""

    ITEM_ABOUT_ENTITY = 0
    ENTITY_HAS_ITEM = 1
    ITEM_FROM_SOURCE = 2
    SOURCE_OF_ITEM = 3
    ENTITY_HAS_VALUE = 4
    VALUE_OF_ENTITY = 5
    COPY_OF_ITEM = 6


@dataclass(frozen=True)
class EvidenceGraph:
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
    def of(cls, examples: Examples, sources: Mapping[str, int]) -> EvidenceGraph:
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

    def labelled(self, labels: Tensor) -> EvidenceGraph:
        return replace(self, labels=labels)

    def take(self, places: Tensor) -> EvidenceGraph:
        """The entities at ``places`` with their items."""
        rows = self.bags.rows(places)
        labels = None if self.labels is None else self.labels[places]
        return EvidenceGraph(self.bags.take(places), self.sources[rows], self.copies[rows], labels)

    def edges(self, source_count: int) -> tuple[Tensor, Tensor]:
        """Beginnings and ends [2, M], and the relation of each [M].

        Only entities with known values speak to sources and values: what is asked about hears of
        them, and nobody hears of it.
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

    def forward(self, asked: EvidenceGraph, value_states: Tensor) -> Tensor:
        """Logits [E, V]."""
        states = self._states(asked)[: len(asked)]
        return (states * self.relation) @ value_states.T

    def value_states(self, known: EvidenceGraph) -> Tensor:
        """Of the values after what labelled entities told them, [V, WIDTH]."""
        return self._states(known)[-len(self.values) :]

    def _states(self, graph: EvidenceGraph) -> Tensor:
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
        return _probabilities(
            self.network, EvidenceGraph.of(examples, self.sources), self.value_states
        )


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


def _as_strangers(asked: EvidenceGraph, unknown: int) -> EvidenceGraph:
    """Without values, and some of their items from a source that nobody knows."""
    hidden = torch.rand(len(asked.sources)) < HIDDEN_SOURCES
    return replace(asked, labels=None, sources=asked.sources.masked_fill(hidden, unknown))


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
    network: RelationalNetwork, asked: EvidenceGraph, value_states: Tensor
) -> FloatArray:
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
    made: torch.nn.Module = RGCNConv(WIDTH, WIDTH, len(EdgeType), num_bases=BASES)
    return made
