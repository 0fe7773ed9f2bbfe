"""Leaks between splits are found, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from labelled_data import dataset, entity

from lpf.datasets import Dataset, DatasetEntity, Leak, find_leakage

CLEAN = [
    entity(i, split=split, group=f"G{i}", claim=f"claim {i}", source="register", report_id=f"R{i}")
    for i, split in enumerate(["train"] * 60 + ["validation"] * 20 + ["test"] * 20)
]


def planted(*entities: DatasetEntity) -> Dataset:
    return dataset([*CLEAN, *entities])


def only_leak(data: Dataset) -> Leak:
    (leak,) = find_leakage(data)
    return leak


def test_clean_splits_have_no_leaks() -> None:
    assert find_leakage(dataset(CLEAN)) == ()


@pytest.mark.parametrize(
    ("kind", "name", "one", "other"),
    [
        ("group_id", "group", {"group": "G500"}, {"group": "G500"}),
        ("claim", "claim", {"claim": "It rains."}, {"claim": " it  RAINS."}),
        ("text", "text", {"text": "A dry\nspring."}, {"text": "a dry spring. "}),
        ("report_id", "report", {"report_id": "R500"}, {"report_id": "R500"}),
        ("source", "source", {"source": "A. Nobody"}, {"source": "A. Nobody"}),
    ],
)
def test_planted_leaks_are_found(kind: str, name: str, one: Any, other: Any) -> None:
    first = entity(500, split="train", **one)
    leak = only_leak(planted(first, entity(501, split="test", **other)))
    assert (leak.kind, leak.splits, leak.count) == (kind, ("test", "train"), 1)
    assert (leak.entities, leak.of_entities) == (1, 21)
    assert leak.sentence.startswith(
        f"1 {name} of 'test' is also in 'train', in 1 of its 21 entities (first: "
    )


def test_entity_in_two_splits_is_found() -> None:
    twice = entity(500, split="validation", text="one")
    leaks = find_leakage(planted(twice, entity(500, split="test", text="two")))
    assert [(leak.kind, leak.splits) for leak in leaks] == [("entity_id", ("test", "validation"))]


def test_counts_entities_and_examples() -> None:
    texts = [f"shared {number}" for number in range(4)]
    train = [entity(500 + i, split="train", text=text) for i, text in enumerate(texts)]
    test = [entity(600 + i, split="test", text=texts[i % 4]) for i in range(10)]
    leak = only_leak(planted(*train, *test))
    assert (leak.count, leak.entities, leak.of_entities) == (4, 10, 30)
    assert leak.examples == ("shared 0", "shared 1", "shared 2")
    assert leak.sentence == (
        "4 texts of 'test' are also in 'train', in 10 of its 30 entities (first: 'shared 0')."
    )


def test_common_sources_are_not_leaks() -> None:
    """A source of five in a hundred entities is common, one of four is not."""
    sources = ["train", "test", "test", "test", "test"]
    shared = [entity(i, split=s, source="weekly") for i, s in enumerate(sources)]
    others = [e for e in CLEAN if e.entity_id > "C0004"]
    assert find_leakage(dataset([*shared, *others])) == ()
    fewer = [*shared[:4], entity(4, split="test", source="register")]
    assert only_leak(dataset([*fewer, *others])).kind == "source"


def test_repetition_within_a_split_is_not_a_leak() -> None:
    within = [entity(500, split="train", text="same"), entity(501, split="train", text="same")]
    assert find_leakage(planted(*within, entity(502, text="same"))) == ()


def test_long_examples_are_shortened_in_the_sentence_only() -> None:
    text = "word " * 40 + "end"
    leak = only_leak(
        planted(entity(500, split="train", text=text), entity(501, split="test", text=text))
    )
    assert leak.examples == (text,)
    assert len(leak.sentence) < 140
