"""Which entities asked about have nothing in common with those learned from."""

from __future__ import annotations

from collections.abc import Iterator

from lpf.datasets import Dataset, DatasetEntity


def unshared(dataset: Dataset) -> tuple[str, ...]:
    """Ids of the test entities that share neither a text nor a claim nor a group with an entity of
    another split. Case and blanks make no difference."""
    learned = {thing for entity in dataset if entity.split != "test" for thing in _things(entity)}
    return tuple(
        entity.entity_id
        for entity in dataset
        if entity.split == "test" and not any(thing in learned for thing in _things(entity))
    )


def _things(entity: DatasetEntity) -> Iterator[tuple[str, str]]:
    if entity.group_id is not None:
        yield "group", entity.group_id
    if entity.claim is not None:
        yield "text", _same(entity.claim)
    for item in entity.evidence:
        yield "text", _same(item.text)


def _same(text: str) -> str:
    return " ".join(text.casefold().split())
