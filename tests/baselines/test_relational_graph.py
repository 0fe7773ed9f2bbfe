"""The graph of the relational network, and which nodes send messages to which."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from baseline_examples import SEED, parts, predicate

from lpf.baselines.networks import Bags
from lpf.baselines.relational_graph import (
    EdgeType,
    EvidenceGraph,
    RelationalGraph,
    RelationalNetwork,
    TrainedGraph,
    copy_pairs,
    numbered_sources,
)

# Two entities of two items and one; the second item has the unknown source; items 0 and 1 repeat.
SMALL = EvidenceGraph(
    Bags.of(np.zeros((3, 4), np.float32), np.array([2, 1])),
    sources=torch.tensor([0, 1, 0]),
    copies=torch.tensor([7, 7, -1]),
)
# Entities 0-1, items 2-4, sources 5-6 (the last unknown), values 7-9.


@cache
def trained() -> TrainedGraph:
    train, validation, _ = parts()
    found = RelationalGraph("few").fit(train.select(np.arange(40)), validation, predicate(), SEED)
    assert isinstance(found, TrainedGraph)
    return found


def edges(graph: EvidenceGraph) -> set[tuple[str, int, int]]:
    pairs, kinds = graph.edges(2)
    rows = zip(kinds.tolist(), *pairs.tolist(), strict=True)
    return {(EdgeType(kind).name, begin, end) for kind, begin, end in rows}


def test_the_edges_of_a_small_graph_by_hand() -> None:
    asked = {
        *{("ITEM_ABOUT_ENTITY", 2, 0), ("ITEM_ABOUT_ENTITY", 3, 0), ("ITEM_ABOUT_ENTITY", 4, 1)},
        *{("ENTITY_HAS_ITEM", 0, 2), ("ENTITY_HAS_ITEM", 0, 3), ("ENTITY_HAS_ITEM", 1, 4)},
        *{("SOURCE_OF_ITEM", 5, 2), ("SOURCE_OF_ITEM", 6, 3), ("SOURCE_OF_ITEM", 5, 4)},
        *{("COPY_OF_ITEM", 2, 3), ("COPY_OF_ITEM", 3, 2)},
    }
    assert edges(SMALL) == asked
    known = {
        *{("ITEM_FROM_SOURCE", 2, 5), ("ITEM_FROM_SOURCE", 3, 6), ("ITEM_FROM_SOURCE", 4, 5)},
        *{("ENTITY_HAS_VALUE", 0, 9), ("ENTITY_HAS_VALUE", 1, 7)},
        *{("VALUE_OF_ENTITY", 9, 0), ("VALUE_OF_ENTITY", 7, 1)},
    }
    assert edges(SMALL.labelled(torch.tensor([2, 0]))) == asked | known


def test_test_entities_send_no_messages() -> None:
    pairs, _ = SMALL.edges(2)
    assert pairs[1].max() < 5  # no edge ends at a source or a value


def test_entities_are_taken_with_their_items() -> None:
    taken = SMALL.labelled(torch.tensor([2, 0])).take(torch.tensor([1]))
    assert taken.sources.tolist() == [0]
    assert taken.copies.tolist() == [-1]
    assert taken.labels is not None
    assert taken.labels.tolist() == [0]


def test_copies_of_different_entities_are_no_copies_of_each_other() -> None:
    _, _, test = parts()
    same = replace(test, groups=np.zeros_like(test.groups))
    graph = EvidenceGraph.of(same, {})
    begins, ends = copy_pairs(graph.copies)
    assert torch.equal(graph.bags.owner[begins], graph.bags.owner[ends])
    counts = test.segments.counts
    assert len(begins) == (counts * (counts - 1)).sum()


def test_a_source_that_training_did_not_see_is_the_unknown_one() -> None:
    train, _, test = parts()
    sources = numbered_sources(train)
    first, *rest = test.dataset.entities
    strange = replace(
        first, evidence=tuple(replace(item, source="a stranger") for item in first.evidence)
    )
    changed = replace(test, dataset=replace(test.dataset, entities=(strange, *rest)))
    found = EvidenceGraph.of(changed, sources).sources[: len(first.evidence)]
    assert (found == len(sources)).all()
    moved = trained().predict_proba(changed)[0] - trained().predict_proba(test)[0]
    assert np.abs(moved).max() > 1e-6


def test_copies_count_for_less_or_more_but_not_for_nothing() -> None:
    _, _, test = parts()
    method = trained()
    same = replace(test, groups=np.zeros_like(test.groups))
    assert np.abs(method.predict_proba(same) - method.predict_proba(test)).max() > 1e-4


def test_value_nodes_receive_messages_of_their_entities() -> None:
    """Relabelled training entities move the states of values, by which answers are scored."""
    network = RelationalNetwork(4, 1, 3).eval()
    with torch.no_grad():
        one, other = (
            network.value_states(SMALL.labelled(torch.tensor(labels)))
            for labels in ([2, 0], [1, 0])
        )
    assert (one[0] - other[0]).abs().max() < 1e-6
    assert (one[2] - other[2]).abs().max() > 1e-4


def test_training_leaves_the_global_generator_as_it_was() -> None:
    train, validation, _ = parts()
    before = torch.get_rng_state()
    RelationalGraph("few").fit(train.select(np.arange(12)), validation, predicate(), SEED)
    assert torch.equal(torch.get_rng_state(), before)
